// The processes of a measurement: started with an IPC channel, asked one thing at a time by name, ended with the bench.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** What a child process is asked, and what it answers. */
interface Ask {
  id: number;
  what: string;
  arg: unknown;
}
interface ChildAnswer {
  id: number;
  result?: unknown;
  error?: string;
}

export interface Child {
  pid: number;
  ask<T>(what: string, arg?: unknown): Promise<T>;
  stop(): Promise<void>;
}

export async function startChild(file: string): Promise<Child> {
  const child: ChildProcess = fork(join(import.meta.dirname, file), {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const waiting = new Map<number, { done: (value: unknown) => void; fail: (error: Error) => void }>();
  let asked = 0;
  child.on("message", (told: ChildAnswer) => {
    const one = waiting.get(told.id);
    waiting.delete(told.id);
    if (told.error === undefined) one?.done(told.result);
    else one?.fail(new Error(`${file}: ${told.error}`));
  });
  child.on("exit", (code) => {
    for (const { fail } of waiting.values()) fail(new Error(`${file} ended with ${code}`));
    waiting.clear();
  });
  const ask = <T>(what: string, arg?: unknown): Promise<T> =>
    new Promise((done, fail) => {
      const id = ++asked;
      waiting.set(id, { done: (value) => done(value as T), fail });
      if (child.exitCode !== null || !child.connected) return fail(new Error(`${file} has ended`));
      child.send({ id, what, arg } satisfies Ask);
    });
  await ask("ready");
  return {
    pid: child.pid ?? 0,
    ask,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

/** The other side: what a child can be asked. It ends with its parent. */
export function answering(can: Record<string, (arg: never) => unknown>): void {
  process.on("disconnect", () => process.exit(0));
  process.on("message", ({ id, what, arg }: Ask) => {
    const answer = async (): Promise<unknown> => (what === "ready" ? null : can[what]?.(arg as never));
    answer().then(
      (result) => process.send?.({ id, result } satisfies ChildAnswer),
      (error: unknown) => process.send?.({ id, error: String(error) } satisfies ChildAnswer),
    );
  });
}

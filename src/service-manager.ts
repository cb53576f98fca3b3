// What is said to systemd, or whatever else started the service with a NOTIFY_SOCKET (sd_notify(3)): that it serves, reads
// its files again, stops; and, as often as it asks for, that the program is alive (WATCHDOG_USEC). Node.js has no sockets of
// that kind: one small shell beside the service reads what is to be said and runs systemd-notify for each line, so that
// the service itself starts a process once and never waits for one.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import type { Clock, Timer } from "./clock.ts";
import type { Log } from "./log.ts";

export interface ServiceManager {
  /** It serves now. */
  ready(status: string): void;
  reloading(): void;
  stopping(): void;
  /** From now on says that the program is alive for as long as `answers` resolves or rejects: what hangs does neither. */
  watch(answers: () => Promise<unknown>): void;
  /** Says nothing more. */
  end(): void;
}

export interface ServiceManagerDeps {
  /** Of which it reads NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID and PATH. */
  env: Readonly<Record<string, string | undefined>>;
  pid: number;
  clock: Clock;
  log: Log;
}

/** Says each line to the socket. It ends when the service does, however that ends. */
const shell = 'while IFS= read -r line; do systemd-notify -- "$line"; done';
/** Of what the shell has not read yet: more says nothing new. */
const mostWaitingBytes = 4096;
/** So many times within the time that the watchdog waits. */
const pingsInTime = 3;

export function createServiceManager({ env, pid, clock, log }: ServiceManagerDeps): ServiceManager {
  const { NOTIFY_SOCKET: socket, PATH: path = "/usr/bin:/bin" } = env;
  if (!socket) return silent;
  const everyMs = watchdogMs(env, pid) / pingsInTime;
  let helper: ChildProcessWithoutNullStreams | null = null;
  let timer: Timer | null = null;
  let ended = false;

  const start = (): ChildProcessWithoutNullStreams => {
    const child = spawn("/bin/sh", ["-c", shell], { env: { PATH: path, NOTIFY_SOCKET: socket } });
    const lost = (detail: string): void => {
      if (helper !== child) return;
      helper = null;
      if (!ended) log.warn({ detail }, "what tells the service manager of the service's state ended");
    };
    child.on("error", (error) => lost(error.message));
    child.on("exit", (code, signal) => lost(`the shell ended with ${signal ?? code}`));
    child.stdin.on("error", (error) => lost(error.message));
    child.stderr.on("data", (text: Buffer) =>
      log.warn({ detail: text.toString("utf8", 0, 500).trim() }, "systemd-notify failed"),
    );
    child.stdout.resume();
    for (const handle of [child, child.stdin, child.stdout, child.stderr])
      (handle as { unref?: () => void }).unref?.(); // it keeps no process alive
    return child;
  };

  const say = (assignment: string): void => {
    if (ended) return;
    helper ??= start();
    if (helper.stdin.writableLength < mostWaitingBytes) helper.stdin.write(`${assignment}\n`);
  };

  const watch = (answers: () => Promise<unknown>): void => {
    if (everyMs === 0 || ended) return;
    const ask = (): void => {
      let answered = false;
      const alive = (): void => {
        answered = true;
        say("WATCHDOG=1");
      };
      answers().then(alive, alive);
      timer = clock.after(everyMs, () => {
        if (answered) return ask();
        log.error(
          {},
          "the store's writer does not answer; the service manager starts the service again unless it does",
        );
        timer = clock.after(everyMs, ask);
      });
    };
    ask();
  };

  say("STATUS=Starting");
  return {
    ready(status) {
      say(`STATUS=${status.replaceAll(/\s+/g, " ")}`);
      say("READY=1");
    },
    reloading: () => say("RELOADING=1"),
    stopping() {
      say("STOPPING=1");
      say("STATUS=Stopping");
    },
    watch,
    end() {
      ended = true;
      timer?.cancel();
      helper?.stdin.end();
    },
  };
}

/** Started by hand, or by what does not ask. */
const silent: ServiceManager = {
  ready: () => undefined,
  reloading: () => undefined,
  stopping: () => undefined,
  watch: () => undefined,
  end: () => undefined,
};

/** Within which the service manager wants to hear that the program is alive; 0: it does not. */
function watchdogMs(
  { WATCHDOG_USEC: micros, WATCHDOG_PID: of }: ServiceManagerDeps["env"],
  pid: number,
): number {
  if (micros === undefined || !/^[1-9]\d{0,15}$/.test(micros)) return 0;
  return of === undefined || of === "" || of === String(pid) ? Number(micros) / 1000 : 0;
}

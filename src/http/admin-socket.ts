// A Unix socket, the operator's or one that a proxy uses: its file's mode is the permission (0660), so it must never stand with a
// wider one. A file that a dead process left behind is replaced; a living process's is not.
import { existsSync, mkdirSync, unlinkSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { listen, type Listener, type ListenerDeps } from "./listener.ts";

export async function listenOnSocket(path: string, deps: ListenerDeps): Promise<Listener> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  if (existsSync(path)) {
    if (await answers(path)) throw new Error(`another process listens on ${path}`);
    unlinkSync(path);
  }
  const mask = process.umask(0o117);
  const bound = listen({ path }, deps); // binds before it first waits, so the mask covers the bind and nothing else
  process.umask(mask);
  return await bound;
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    const end = (alive: boolean) => (): void => {
      probe.destroy();
      resolve(alive);
    };
    probe.once("connect", end(true));
    probe.once("error", end(false));
  });
}

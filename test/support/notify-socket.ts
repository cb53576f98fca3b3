// A service manager's notify socket (sd_notify(3)), which Node.js cannot open: Debian's Python holds it, says what came,
// and plays the watchdog: it notes where nothing was heard for the time that it was promised.
import { spawn } from "node:child_process";
import { once } from "node:events";

const script = `
import os, select, socket, struct, sys, time
name, patience = sys.argv[1], float(sys.argv[2])
held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
held.bind("\\0" + name[1:] if name[0] == "@" else name)
print("up", flush=True)
last = None
while True:
    wait = None if last is None else max(0, last + patience - time.monotonic())
    if not select.select([held], [], [], wait)[0]:
        print("watchdog timeout", flush=True)
        last = None
        continue
    text, extra, _, _ = held.recvmsg(4096, socket.CMSG_SPACE(64))
    for _, kind, data in extra:
        if kind == socket.SCM_RIGHTS:
            for fd in struct.unpack("i" * (len(data) // 4), data): os.close(fd)
    text = text.decode()
    if text == "BARRIER=1": continue
    if text == "WATCHDOG=1": last = time.monotonic()
    print(text, flush=True)
`;

export interface NotifySocket {
  /** What came so far, with `watchdog timeout` where the watchdog heard nothing in time. */
  heard(): string[];
  /** Resolves when `line` came, of the lines from number `from` on, with the number of the next one. */
  hears(line: string, from?: number): Promise<number>;
  stop(): Promise<void>;
}

/** `name`: a path, or `@` and a name of the abstract namespace. */
export async function openNotifySocket(name: string, watchdogMs: number): Promise<NotifySocket> {
  const child = spawn("/usr/bin/python3", ["-c", script, name, String(watchdogMs / 1000)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  let more = Promise.withResolvers<void>();
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    more.resolve();
    more = Promise.withResolvers<void>();
  });
  child.on("exit", () => more.reject(new Error("the notify socket ended")));
  const heard = (): string[] => text.split("\n").slice(1, -1);
  while (!text.startsWith("up\n")) await more.promise;
  return {
    heard,
    async hears(line, from = 0) {
      for (;;) {
        const at = heard().indexOf(line, from);
        if (at >= 0) return at + 1;
        await more.promise;
      }
    },
    async stop() {
      more.promise.catch(() => undefined);
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill();
      await gone;
    },
  };
}

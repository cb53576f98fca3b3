// The world as the command line sees it: streams, environment, files' owner, time. main.ts
// makes it of the process; tests make one that records.
import { homedir } from "node:os";
import { systemClock, type Clock } from "../clock.ts";

/** The part of a writable stream that commands use. */
export interface Sink {
  readonly isTTY: boolean;
  /** Width of the terminal in columns. */
  readonly columns: number;
  write(bytes: string | Uint8Array): boolean;
  /** Resolves when the sink takes more. */
  drained(): Promise<void>;
}

export interface Io {
  stdout: Sink;
  stderr: Sink;
  stdin: { readonly isTTY: boolean; readonly stream: NodeJS.ReadableStream };
  env: Record<string, string | undefined>;
  home: string;
  uid: number;
  cwd: string;
  clock: Clock;
  /** Calls back at each such signal until the answer is called. */
  onSignal(name: "SIGTERM" | "SIGINT" | "SIGHUP", run: () => void): () => void;
  /** Ends the process at once. */
  exit(code: number): void;
}

export function processIo(): Io {
  const sink = (stream: NodeJS.WriteStream): Sink => ({
    get isTTY() {
      return stream.isTTY;
    },
    get columns() {
      return stream.columns || 80;
    },
    write: (bytes) => stream.write(bytes),
    drained: () =>
      new Promise((resolve) => void (stream.writableNeedDrain ? stream.once("drain", resolve) : resolve())),
  });
  return {
    stdout: sink(process.stdout),
    stderr: sink(process.stderr),
    stdin: {
      get isTTY() {
        return process.stdin.isTTY;
      },
      get stream() {
        return process.stdin;
      },
    },
    env: process.env,
    home: homedir(),
    uid: process.getuid?.() ?? 1,
    cwd: process.cwd(),
    clock: systemClock,
    onSignal(name, run) {
      process.on(name, run);
      return () => void process.off(name, run);
    },
    exit: (code) => process.exit(code),
  };
}

/** A reader that goes away (`svc events list | head`) ends the program in silence; a file that takes no more, in words. */
export function endOnOutputFault(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    process.stderr.write(`svc: the output cannot be written, and is not whole: ${error.message}\n`);
    process.exit(1);
  });
  process.stderr.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
}

// Starts a thread of a module. One that exits by itself is started again by the module's next call: a fault in it fails
// only the calls that it had.
import { getPriority, setPriority } from "node:os";
import { Worker, type ResourceLimits } from "node:worker_threads";

export type ThreadName =
  | "writer-thread"
  | "reader-thread"
  | "backup-thread"
  | "signing-thread"
  | "parsing-thread"
  | "large-body-thread";

export interface ThreadHandlers<Report> {
  onReport(report: Report): void;
  /** It ended, wanted or not; `error` is why, where something was thrown. */
  onEnd(error: Error | null): void;
}

/** `beside`: the URL of the module's file; as built the thread is a `.js` beside it, and a `.ts` when the source runs. */
export function startThread<Report>(
  name: ThreadName,
  beside: string,
  workerData: unknown,
  handlers: ThreadHandlers<Report>,
  /** Of its heap; a thread that passes them ends with an error, and nothing else does. */
  resourceLimits?: ResourceLimits,
): Worker {
  const extension = beside.endsWith(".ts") ? "ts" : "js";
  const worker = new Worker(new URL(`./${name}.${extension}`, beside), {
    workerData,
    name,
    execArgv: [],
    ...(resourceLimits ? { resourceLimits } : {}),
  });
  let thrown: Error | null = null;
  worker.on("message", (report: Report) => handlers.onReport(report));
  worker.on("error", (error) => (thrown = error instanceof Error ? error : new Error(String(error))));
  worker.on("exit", () => handlers.onEnd(thrown));
  return worker;
}

/** What waits for the rest of the program (nice(1)). */
const niceness = 10;

/**
 * Of the calling thread alone, on Linux (setpriority(2), 0). Where the whole program was started with a lower priority, that
 * is kept: raising it again takes rights that the service does not have.
 */
export function lowerPriority(): void {
  setPriority(0, Math.max(niceness, getPriority(0)));
}

/**
 * Of the calling thread: what loading the program took and nothing needs any more. It holds the thread for some tens of
 * milliseconds, and is therefore called once, at the end of a start. Nothing where the collector is
 * out of reach (`--expose-gc`, which bin/svc gives).
 */
export function giveBackMemory(): void {
  globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
}

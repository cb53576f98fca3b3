// Starts the store's threads. A thread that ends before it is told to is started again by the next call: a fault in it
// fails the calls it had, and nothing else.
import { Worker } from "node:worker_threads";

export type ThreadName = "writer-thread" | "reader-thread";

export interface ThreadHandlers<Report> {
  onReport(report: Report): void;
  /** It ended, wanted or not; `error` is why, where something was thrown. */
  onEnd(error: Error | null): void;
}

/** Beside this file: as built (`.js`), or as written (`.ts`, types stripped by Node) when the source runs. */
export function startThread<Report>(
  name: ThreadName,
  workerData: unknown,
  handlers: ThreadHandlers<Report>,
): Worker {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const worker = new Worker(new URL(`./${name}.${extension}`, import.meta.url), {
    workerData,
    name,
    execArgv: [],
  });
  let thrown: Error | null = null;
  worker.on("message", (report: Report) => handlers.onReport(report));
  worker.on("error", (error) => (thrown = error instanceof Error ? error : new Error(String(error))));
  worker.on("exit", () => handlers.onEnd(thrown));
  return worker;
}

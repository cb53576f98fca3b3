// The writer's thread: batches in, results out. All that it does is in batch.ts.
import { parentPort, workerData } from "node:worker_threads";
import type { Database } from "better-sqlite3";
import { systemClock } from "../../../clock.ts";
import { createBatchRunner } from "./batch.ts";
import type { Batch, BatchResult, PreparedWriter } from "./batch.ts";
import { isHeld } from "./held-log.ts";
import type { PragmasReadBack } from "./open.ts";

export type WriterRequest = Batch | "ask" | "close";
export type WriterReport = BatchResult | { kind: "ready"; pragmas: PragmasReadBack } | { kind: "answer" };

/** To be called once, in the thread. */
export function serveWriter<Mark>(prepare: (db: Database) => PreparedWriter<Mark>): void {
  const port = parentPort;
  if (!port) throw new Error("the writer's thread is started by the store, not by hand");
  const { path, held } = workerData as { path: string; held?: SharedArrayBuffer };
  const runner = createBatchRunner(path, systemClock, prepare, () => isHeld(held));
  const report = (message: WriterReport): void => port.postMessage(message);

  report({ kind: "ready", pragmas: runner.pragmas() });
  port.on("message", (request: WriterRequest) => {
    if (request === "ask") return report({ kind: "answer" });
    if (request === "close") {
      runner.close();
      port.close();
      return;
    }
    report(runner.run(request));
    runner.tidy();
  });
}

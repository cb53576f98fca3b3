// The reader's thread: one question at a time, each in a read transaction of its own, so that no snapshot outlives a page;
// and the checkpoint that copies the write-ahead log into the database beside the writer.
import { parentPort, workerData } from "node:worker_threads";
import type { Database } from "better-sqlite3";
import { openReading, openWriting } from "./open.ts";

export interface Question {
  id: number;
  name: string;
  arg: unknown;
}
export type ReaderRequest = Question | "close";
export type ReaderReport =
  | { kind: "ready" }
  | { kind: "answer"; id: number; value: unknown }
  | { kind: "failure"; id: number; detail: string };

/** The one question that is the engine's own. */
export const checkpointName = "checkpoint";

/** To be called once, in the thread. `prepare`: the questions, each a function of one value. */
export function serveReader(prepare: (db: Database) => Record<string, (arg: never) => unknown>): void {
  const port = parentPort;
  if (!port) throw new Error("the reader's thread is started by the store, not by hand");
  const { path } = workerData as { path: string };
  const db = openReading(path, 8192);
  const checkpointer = openWriting(path);
  checkpointer.pragma("busy_timeout = 0");
  const questions = prepare(db);
  const report = (message: ReaderReport): void => port.postMessage(message);

  const answer = ({ id, name, arg }: Question): void => {
    try {
      report({
        kind: "answer",
        id,
        value: name === checkpointName ? checkpoint(checkpointer) : ask(name, arg),
      });
    } catch (error) {
      if (db.inTransaction) db.exec("ROLLBACK");
      report({
        kind: "failure",
        id,
        detail: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
      });
    }
  };
  const ask = (name: string, arg: unknown): unknown => {
    const question = questions[name];
    if (!question) throw new Error("no such question");
    db.exec("BEGIN");
    const value = question(arg as never);
    db.exec("COMMIT");
    return value;
  };

  report({ kind: "ready" });
  port.on("message", (request: ReaderRequest) => {
    if (request !== "close") return answer(request);
    checkpointer.close();
    db.close();
    port.close();
  });
}

/** PASSIVE: waits for no reader and blocks no writer. */
function checkpoint(db: Database): void {
  db.pragma("wal_checkpoint(PASSIVE)");
}

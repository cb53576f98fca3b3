// The reader's thread: one question at a time, each in a read transaction of its own.
import { parentPort, workerData } from "node:worker_threads";
import { openReading, openWriting } from "./open.ts";
import { createReader } from "./reader.ts";
import type { QuestionName } from "./reader.ts";

export interface Question {
  id: number;
  name: QuestionName;
  arg: unknown;
}
export type ReaderRequest = Question | "close";
export type ReaderReport =
  | { kind: "ready" }
  | { kind: "answer"; id: number; value: unknown }
  | { kind: "failure"; id: number; detail: string };

const port = parentPort;
if (!port) throw new Error("reader-thread is started by the store, not by hand");
const { path } = workerData as { path: string };
const db = openReading(path, 8192);
const checkpointer = openWriting(path);
checkpointer.pragma("busy_timeout = 0");
const questions: Record<QuestionName, (arg: never) => unknown> = createReader(db, checkpointer);
const report = (message: ReaderReport): void => port.postMessage(message);

const answer = ({ id, name, arg }: Question): void => {
  try {
    const inside = name !== "checkpoint";
    if (inside) db.exec("BEGIN");
    const value = questions[name](arg as never);
    if (inside) db.exec("COMMIT");
    report({ kind: "answer", id, value });
  } catch (error) {
    if (db.inTransaction) db.exec("ROLLBACK");
    report({
      kind: "failure",
      id,
      detail: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    });
  }
};

report({ kind: "ready" });
port.on("message", (request: ReaderRequest) => {
  if (request !== "close") return answer(request);
  checkpointer.close();
  db.close();
  port.close();
});

// The loop's side of the reader's thread: a question is a promise.
import type { Worker } from "node:worker_threads";
import type { Log } from "../../../log.ts";
import type { ThreadHandlers } from "../../../thread.ts";
import { checkpointName, type ReaderReport, type ReaderRequest } from "./reader.ts";

export interface ReaderLink {
  ask(question: string, arg: unknown): Promise<unknown>;
  /** Copies the write-ahead log into the database beside the writer. */
  checkpoint(): Promise<void>;
  ready(): Promise<void>;
  close(): Promise<void>;
}

interface Asked {
  name: string;
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

/** `startReader` starts the thread that runs serveReader. */
export function createReaderLink(
  log: Log,
  startReader: (handlers: ThreadHandlers<ReaderReport>) => Worker,
): ReaderLink {
  const asked = new Map<number, Asked>();
  let lastId = 0;
  let worker: Worker | null = null;
  let closing = false;
  let ended: (() => void) | null = null;
  const opening = Promise.withResolvers<void>();
  opening.promise.catch(() => undefined); // whoever waits for it hears of it

  const onReport = (report: ReaderReport): void => {
    if (report.kind === "ready") return opening.resolve();
    const question = asked.get(report.id);
    asked.delete(report.id);
    if (report.kind === "answer") question?.resolve(report.value);
    else question?.reject(new Error(`${question.name}: ${report.detail}`));
  };
  const onEnd = (error: Error | null): void => {
    worker = null;
    const cause = error ?? new Error("the reader's thread ended");
    opening.reject(cause);
    if (!closing)
      log.error({ detail: cause.message }, "the store's reader ended; it is started again by the next read");
    for (const question of asked.values()) question.reject(cause);
    asked.clear();
    ended?.();
  };
  const start = (): Worker => (worker ??= startReader({ onReport, onEnd }));
  const post = (request: ReaderRequest): void => start().postMessage(request);

  const ask = (name: string, arg: unknown): Promise<unknown> => {
    if (closing) return Promise.reject(new Error("the store is closed"));
    return new Promise((resolve, reject) => {
      const id = ++lastId;
      asked.set(id, { name, resolve, reject });
      post({ id, name, arg });
    });
  };

  start();
  return {
    ask,
    async checkpoint() {
      await ask(checkpointName, null);
    },
    ready: () => opening.promise,
    async close() {
      closing = true;
      if (!worker) return;
      await new Promise<void>((resolve) => {
        ended = resolve;
        post("close"); // answered after every question before it
      });
    },
  };
}

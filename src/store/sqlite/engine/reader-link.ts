// The loop's side of the reader's thread: a read is a promise.
import type { Worker } from "node:worker_threads";
import type { Log } from "../../../log.ts";
import type { ThreadHandlers } from "../../../thread.ts";
import { checkpointName, type ReaderReport, type ReaderRequest } from "./reader.ts";

export interface ReaderLink {
  ask(read: string, arg: unknown): Promise<unknown>;
  /** Copies the write-ahead log into the database beside the writer. */
  checkpoint(): Promise<void>;
  ready(): Promise<void>;
  close(): Promise<void>;
}

interface PendingRead {
  name: string;
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

/** `startReader` starts the thread that runs serveReader. */
export function createReaderLink(
  log: Log,
  startReader: (handlers: ThreadHandlers<ReaderReport>) => Worker,
): ReaderLink {
  const pending = new Map<number, PendingRead>();
  let lastId = 0;
  let worker: Worker | null = null;
  let closing = false;
  let ended: (() => void) | null = null;
  const opening = Promise.withResolvers<void>();
  opening.promise.catch(() => undefined); // its callers get the error

  const onReport = (report: ReaderReport): void => {
    if (report.kind === "ready") return opening.resolve();
    const read = pending.get(report.id);
    pending.delete(report.id);
    if (report.kind === "answer") read?.resolve(report.value);
    else read?.reject(new Error(`${read.name}: ${report.detail}`));
  };
  const onEnd = (error: Error | null): void => {
    worker = null;
    const cause = error ?? new Error("the reader's thread ended");
    opening.reject(cause);
    if (!closing)
      log.error({ detail: cause.message }, "the store's reader ended; it is started again by the next read");
    for (const read of pending.values()) read.reject(cause);
    pending.clear();
    ended?.();
  };
  const start = (): Worker => (worker ??= startReader({ onReport, onEnd }));
  const post = (request: ReaderRequest): void => start().postMessage(request);

  const ask = (name: string, arg: unknown): Promise<unknown> => {
    if (closing) return Promise.reject(new Error("the store is closed"));
    return new Promise((resolve, reject) => {
      const id = ++lastId;
      pending.set(id, { name, resolve, reject });
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
        post("close"); // answered after every read before it
      });
    },
  };
}

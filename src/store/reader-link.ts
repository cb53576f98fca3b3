// The loop's side of the reader's thread: a question is a promise.
import type { Worker } from "node:worker_threads";
import type { Log } from "../log.ts";
import { startThread } from "../thread.ts";
import type { QuestionName, Questions } from "./reader.ts";
import type { ReaderReport, ReaderRequest } from "./reader-thread.ts";

export interface ReaderLink {
  ask<K extends QuestionName>(name: K, arg: Parameters<Questions[K]>[0]): Promise<ReturnType<Questions[K]>>;
  ready(): Promise<void>;
  close(): Promise<void>;
}

interface Asked {
  name: QuestionName;
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

export function createReaderLink(path: string, log: Log): ReaderLink {
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
      log.error(
        { detail: cause.message },
        "the store's reader ended; it is started again by the next question",
      );
    for (const question of asked.values()) question.reject(cause);
    asked.clear();
    ended?.();
  };
  const start = (): Worker =>
    (worker ??= startThread<ReaderReport>("reader-thread", import.meta.url, { path }, { onReport, onEnd }));
  const post = (request: ReaderRequest): void => start().postMessage(request);

  start();
  return {
    ask(name, arg) {
      if (closing) return Promise.reject(new Error("the store is closed"));
      return new Promise((resolve, reject) => {
        const id = ++lastId;
        const answer = resolve as (value: unknown) => void; // the question's own answer, by the table of questions
        asked.set(id, { name, resolve: answer, reject });
        post({ id, name, arg });
      });
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

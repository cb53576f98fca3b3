// Group commit, the loop's side: calls wait for each other. What has gathered leaves as one batch (commit-delay.ts says
// when, write-queue.ts what of it), as ONE message whose bytes are one buffer. A call is answered after its commit; StoreUnavailable where nothing of it was kept.
import type { Worker } from "node:worker_threads";
import type { Clock, Timer } from "../../../clock.ts";
import type { Owner } from "../../../fairness.ts";
import type { Batch, Call as BatchCall } from "./batch.ts";
import { createCommitDelay } from "./commit-delay.ts";
import type { Commit } from "../../interface/engine.ts";
import type { PragmasReadBack } from "./open.ts";
import type { Log } from "../../../log.ts";
import type { ThreadHandlers } from "../../../thread.ts";
import { StoreUnavailable } from "../../store.ts";
import { createWriteQueue, mostBytes, type QueuedWrite, type WriteQueue } from "./write-queue.ts";
import type { WalState } from "./wal.ts";
import type { WriterReport, WriterRequest } from "./writer.ts";

/** Hands a call to the writer, its bytes beside it. */
export type Call = (command: string, arg: unknown, blobs?: readonly Uint8Array[]) => Promise<unknown>;

export interface GroupCommit {
  call: Call;
  /** Resolves when the thread has opened the database; rejects with why it could not. */
  ready(): Promise<PragmasReadBack>;
  /** Resolves when the thread has ended what it was at; rejects when it ends. */
  answers(): Promise<void>;
  /** Takes no more calls and waits for those it has. */
  drain(): Promise<void>;
  /** After the drain: copies the log into the database and ends the thread. */
  close(): Promise<void>;
}

export interface GroupCommitListeners {
  /** A call was committed; it is answered after this. */
  onWritten(command: string, arg: unknown, result: unknown): void;
  /** A batch was committed; its calls are answered. */
  onCommit(commit: Commit, wal: WalState): void;
  /** The thread ended with calls under way: which of them were kept is unknown, and they are never answered. */
  onLost(detail: string): void;
  /** A batch was refused by the disk or the engine. */
  onRefusal(why: "full" | "failed", detail: string): void;
}

export interface GroupCommitParts {
  clock: Clock;
  log: Log;
  startWriter(handlers: ThreadHandlers<WriterReport>): Worker;
  ownerOf(arg: unknown): Owner;
}

interface Waiting extends QueuedWrite {
  call: BatchCall;
  blobs: readonly Uint8Array[];
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

/** `startWriter` starts the thread that runs serveWriter; `ownerOf` says whose turn a call takes, by its argument. */
export function createGroupCommit(
  { clock, log, startWriter, ownerOf }: GroupCommitParts,
  listeners: GroupCommitListeners,
): GroupCommit {
  const delay = createCommitDelay();
  const waiting = createWriteQueue<Waiting>();
  /** Of the log after the last commit: one that wrote nothing syncs nothing. */
  let logBytes = 0;
  let patience: Timer | null = null;
  /** The calls of the batch that is at the writer. */
  let inFlight: Waiting[] | null = null;
  let flushing = false;
  let closing = false;
  let idle: (() => void) | null = null;
  let ended: (() => void) | null = null;
  /** The bytes of the batch that is at the writer, of which there is one at a time. */
  const shared = new Uint8Array(new SharedArrayBuffer(mostBytes));
  let worker: Worker | null = null;
  /** The thread has the database open: what it was given may be on disk. */
  let standing = false;
  /** Of `answers`, in their order. */
  let asked: PromiseWithResolvers<void>[] = [];
  const opening = Promise.withResolvers<PragmasReadBack>();
  opening.promise.catch(() => undefined); // its callers get the error

  const refuseAll = (calls: Waiting[], error: StoreUnavailable): void => {
    for (const { reject } of calls) reject(error);
  };

  const onReport = (report: WriterReport): void => {
    if (report.kind === "ready") {
      standing = true;
      return opening.resolve(report.pragmas);
    }
    if (report.kind === "answer") return asked.shift()?.resolve();
    let calls = inFlight ?? [];
    inFlight = null;
    if (report.kind === "committed") {
      waiting.putBack(calls.slice(report.results.length));
      calls = calls.slice(0, report.results.length);
      if (report.wal.bytes !== logBytes) waiting.committed(report.commitMs);
      logBytes = report.wal.bytes;
      delay.committed(
        calls.map(({ owner }) => owner),
        report.commitMs,
      );
    }
    if (delay.waitMs(waiting.size) === 0)
      flush(); // the writer's next work first, then the answers
    else schedule();
    if (report.kind === "refused") {
      refuseAll(calls, new StoreUnavailable(report.why, report.detail));
      listeners.onRefusal(report.why, report.detail);
    } else {
      measure(waiting, calls, report.tookMs);
      const failures = new Map(report.failures);
      calls.forEach(({ call, resolve, reject }, index) => {
        const failure = failures.get(index);
        if (failure !== undefined) return reject(new Error(`${call.command}: ${failure}`));
        const result = report.results[index];
        listeners.onWritten(call.command, call.arg, result);
        resolve(result);
      });
      listeners.onCommit(report.commit, report.wal);
    }
    settleIdle();
  };

  const onEnd = (error: Error | null): void => {
    worker = null;
    const detail = error ? error.message : "the writer's thread ended";
    opening.reject(error ?? new Error(detail));
    for (const { reject } of asked) reject(new StoreUnavailable("failed", detail));
    asked = [];
    const lost = inFlight ?? [];
    inFlight = null;
    const hadBegun = standing;
    standing = false;
    if (lost.length > 0 && hadBegun) {
      log.error({ detail, calls: lost.length }, "the store's writer ended in the middle of its work");
      listeners.onLost(detail);
      return;
    }
    if (!closing) log.error({ detail }, "the store's writer ended; it is started again by the next write");
    refuseAll(lost, new StoreUnavailable("failed", detail));
    if (lost.length > 0) listeners.onRefusal("failed", detail);
    if (waiting.size > 0) schedule();
    settleIdle();
    ended?.();
  };

  const settleIdle = (): void => {
    if (!inFlight && waiting.size === 0) idle?.();
  };

  const start = (): Worker => (worker ??= startWriter({ onReport, onEnd }));
  const post = (request: WriterRequest): void => start().postMessage(request);

  const flush = (): void => {
    flushing = false;
    patience?.cancel();
    patience = null;
    if (waiting.size === 0 || inFlight) return;
    const { calls, withinMs } = waiting.take(clock.monotonic());
    delay.left();
    const batch = packBatch(calls, withinMs, shared);
    inFlight = calls;
    post(batch);
  };

  const schedule = (): void => {
    if (flushing || waiting.size === 0 || inFlight) return;
    const waitMs = delay.waitMs(waiting.size);
    if (waitMs > 0) {
      patience ??= clock.after(waitMs, flush);
      return;
    }
    flushing = true;
    setImmediate(flush);
  };

  start();
  return {
    call(command, arg, blobs = []) {
      if (closing) return Promise.reject(new StoreUnavailable("failed", "the store is closed"));
      return new Promise((resolve, reject) => {
        let bytes = 0;
        const lengths = blobs.map((blob) => {
          bytes += blob.byteLength;
          return blob.byteLength;
        });
        const owner = ownerOf(arg);
        delay.joined(owner);
        waiting.push({
          owner,
          command,
          call: { command, arg, at: 0, lengths },
          blobs,
          bytes,
          resolve,
          reject,
        });
        schedule();
      });
    },
    ready: () => opening.promise,
    answers() {
      if (closing && !worker) return Promise.resolve();
      const question = Promise.withResolvers<void>();
      asked.push(question);
      post("ask");
      return question.promise;
    },
    async drain() {
      closing = true;
      if (inFlight || waiting.size > 0) await new Promise<void>((resolve) => (idle = resolve));
    },
    async close() {
      closing = true;
      if (!worker) return;
      await new Promise<void>((resolve) => {
        ended = resolve;
        post("close");
      });
    },
  };
}

/** Says what the calls of each owner and command cost, those that stood together at once. */
function measure(queue: WriteQueue<Waiting>, calls: readonly Waiting[], tookMs: readonly number[]): void {
  let count = 0;
  let ms = 0;
  calls.forEach((call, at) => {
    count += 1;
    ms += tookMs[at] ?? 0;
    const next = calls[at + 1];
    if (next?.owner === call.owner && next.command === call.command) return;
    queue.measured(call, ms, count);
    count = 0;
    ms = 0;
  });
}

/** Copies the blobs into `shared`; a single call of more has a buffer of its own. */
function packBatch(taken: Waiting[], withinMs: number, shared: Uint8Array): Batch {
  const total = taken.reduce((sum, item) => sum + item.bytes, 0);
  const bytes = total <= shared.length ? shared.subarray(0, total) : new Uint8Array(total);
  let at = 0;
  const calls = taken.map(({ call, blobs }) => {
    call.at = at;
    for (const blob of blobs) {
      bytes.set(blob, at);
      at += blob.byteLength;
    }
    return call;
  });
  return { calls, bytes, withinMs };
}

// DKIM signatures off the loop: threads of their own, one fewer than the machine has processors, each with two small batches
// at a time. In libuv's pool every signature cost the loop a job, a wake-up and the Ed25519 half of its work, and four of
// them at once kept the loop itself from a processor. The threads start with the first signature.
import { availableParallelism } from "node:os";
import type { Worker } from "node:worker_threads";
import type { Log } from "../log.ts";
import type { SignHeader } from "../mail/dkim.ts";
import { startThread } from "../thread.ts";
import type { SignCall, SignReport } from "./signing-thread.ts";

/** Few, since the first of a batch waits for its last. */
const mostCalls = 8;
/** A thread has its next batch before it reports the last, so that it need not wait for the loop. */
const mostBatches = 2;
const mostThreads = 8;

export interface Signing {
  /** Rejects where a key cannot be read, and where the thread ended. */
  signHeader: SignHeader;
  /** Ends the threads; what they had is rejected. */
  stop(): Promise<void>;
}

interface Waiting {
  call: SignCall;
  resolve(fields: Buffer): void;
  reject(error: Error): void;
}

interface Thread {
  worker: Worker | null;
  /** The batches that it was given, oldest first. */
  has: Waiting[][];
}

export function createSigning(log: Log): Signing {
  const count = Math.min(mostThreads, Math.max(1, availableParallelism() - 1));
  const threads: Thread[] = Array.from({ length: count }, () => ({ worker: null, has: [] }));
  let waiting: Waiting[] = [];
  let flushing = false;
  let stopped = false;

  const onReport = (thread: Thread, report: SignReport): void => {
    const done = thread.has.shift() ?? [];
    flush(); // its next work first, then the answers
    done.forEach(({ resolve, reject }, index) => {
      const result = report[index];
      if (result && "fields" in result) resolve(Buffer.from(result.fields, "latin1"));
      else reject(new Error(`could not sign: ${result?.error ?? "no answer"}`));
    });
  };
  const onEnd = (thread: Thread, error: Error | null): void => {
    const lost = thread.has.flat();
    thread.has = [];
    thread.worker = null;
    const detail = error ? error.message : "the thread ended";
    if (!stopped) log.error({ detail }, "a signing thread exited; the next signature restarts it");
    for (const { reject } of lost) reject(new Error(`could not sign: ${detail}`));
    flush();
  };
  const start = (thread: Thread): Worker =>
    (thread.worker ??= startThread<SignReport>("signing-thread", import.meta.url, null, {
      onReport: (report) => onReport(thread, report),
      onEnd: (error) => onEnd(thread, error),
    }));

  const flush = (): void => {
    flushing = false;
    for (let depth = 0; depth < mostBatches; depth++) {
      for (const thread of threads) {
        if (waiting.length === 0 || stopped) return;
        if (thread.has.length > depth) continue;
        const batch = waiting.slice(0, mostCalls);
        waiting = waiting.slice(batch.length);
        thread.has.push(batch);
        start(thread).postMessage(batch.map(({ call }) => call));
      }
    }
  };

  return {
    signHeader: ({ headerSection, bodyHash, keys, signedAt }) =>
      new Promise((resolve, reject) => {
        if (stopped) return reject(stopping());
        const section = asBuffer(headerSection).toString("latin1");
        const call = { section, bodyHash: asBuffer(bodyHash).toString("base64"), keys, signedAt };
        waiting.push({ call, resolve, reject });
        if (flushing) return;
        flushing = true;
        setImmediate(flush);
      }),
    async stop() {
      stopped = true;
      for (const { reject } of waiting.splice(0)) reject(stopping());
      for (const { worker } of threads) await worker?.terminate();
    },
  };
}

const stopping = (): Error => new Error("could not sign: the program stops");

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

// The caller's side of a parsing thread: started by the first call, given its calls in order, ended when it is idle for a
// while. A call that it does not answer in time ends it, and so does a heap over its
// limit; the calls that it had fail with ParsingFailed, and the next call starts it again.
import type { ResourceLimits, Worker } from "node:worker_threads";
import type { Clock, Timer } from "../clock.ts";
import type { Log } from "../log.ts";
import { startThread, type ThreadName } from "../thread.ts";
import type { ParsingAnswers, ParsingCall, ParsingReport } from "./parsing-thread.ts";

/** The thread could not do it: it took too long, ended, or met a fault of ours. */
export class ParsingFailed extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = "ParsingFailed";
  }
}

/** The mail has more of something than is read; the message says of what. */
export class BeyondLimit extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = "BeyondLimit";
  }
}

/** A call takes milliseconds: what takes this long does not end. */
export const callLimitMs = 10_000;
export const idleMs = 60_000;
const memory = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };

export interface CallWorker<Call extends { kind: string }, Answers extends Record<Call["kind"], unknown>> {
  /** Rejects with BeyondLimit or ParsingFailed. The bytes of a call are copied, except `handedOver`, which the caller loses. */
  call<One extends Call>(call: One, handedOver?: ArrayBuffer[]): Promise<Answers[One["kind"]]>;
  /** False while there is no thread. */
  running(): boolean;
  stop(): Promise<void>;
}

export type ParsingWorker = CallWorker<ParsingCall, ParsingAnswers>;

export interface WorkerSetup {
  /** In the log. */
  name: string;
  thread: ThreadName;
  /** URL of the file that the thread's file lies beside. */
  beside: string;
  /** Of its heap. */
  memory: ResourceLimits;
  callLimitMs: number;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

interface WorkerDeps {
  clock: Clock;
  log: Log;
  /** The thread keeps something for later, so it is not idle. */
  inUse?: () => boolean;
}

export function createParsingWorker(name: string, deps: WorkerDeps): ParsingWorker {
  return createCallWorker(
    { name, thread: "parsing-thread", beside: import.meta.url, memory, callLimitMs },
    deps,
  );
}

export function createCallWorker<
  Call extends { kind: string },
  Answers extends Record<Call["kind"], unknown>,
>(
  { name, thread, beside, memory, callLimitMs }: WorkerSetup,
  { clock, log, inUse = () => false }: WorkerDeps,
): CallWorker<Call, Answers> {
  let worker: Worker | null = null;
  let waiting: Waiting[] = [];
  let timer: Timer | null = null;
  let stopped = false;

  /** One timer: for the answer that is due next, or for the end of an idle thread. */
  const watch = (): void => {
    timer?.cancel();
    timer = null;
    if (!worker || stopped) return;
    timer =
      waiting.length > 0
        ? clock.after(callLimitMs, () => end(`it took longer than ${callLimitMs / 1000} seconds`))
        : clock.after(idleMs, () => (inUse() ? watch() : end(null)));
  };
  /** Ends the thread at once: it may never hear a message again. */
  const end = (fault: string | null): void => {
    const ending = worker;
    worker = null;
    timer?.cancel();
    timer = null;
    if (fault !== null) log.error({ thread: name, detail: fault }, "a parsing thread was terminated");
    void ending?.terminate();
    fail(fault ?? "the thread ended");
  };
  const fail = (detail: string): void => {
    for (const { reject } of waiting.splice(0)) reject(new ParsingFailed(detail));
  };
  const onReport = (report: ParsingReport): void => {
    const done = waiting.shift();
    watch();
    if ("value" in report) done?.resolve(report.value);
    else if ("limit" in report) done?.reject(new BeyondLimit(report.limit));
    else done?.reject(new ParsingFailed(report.error));
  };
  const start = (): Worker => {
    const started: Worker = startThread<ParsingReport>(
      thread,
      beside,
      null,
      {
        onReport: (report) => void (worker === started && onReport(report)),
        onEnd(error) {
          if (worker === started && !stopped) end(error ? error.message : "it ended by itself");
        },
      },
      memory,
    );
    return started;
  };

  return {
    call: (call, handedOver = []) =>
      new Promise<never>((resolve, reject) => {
        if (stopped) return reject(new ParsingFailed("the program stops"));
        worker ??= start();
        waiting.push({ resolve: resolve as (value: unknown) => void, reject });
        worker.postMessage(call, handedOver);
        if (waiting.length === 1) watch();
      }),
    running: () => worker !== null,
    async stop() {
      stopped = true;
      const ending = worker;
      timer?.cancel();
      fail("the program stops");
      await ending?.terminate();
    },
  };
}

// What the dispatcher has to write (results.ts), one write at a time. Where the store accepts no writes, what waits is tried
// again each second, and nothing is claimed until it is through; what was skipped meanwhile is looked for then.
import type { Clock, Timer } from "../clock.ts";
import type { Log } from "../log.ts";
import type { LeasedDelivery } from "../model/webhook-delivery.ts";
import { createResultWriter, type Finished, type Requeued, type ResultWriterDeps } from "./results.ts";
import type { Work } from "./work.ts";

export interface Writes {
  /** What an attempt came to. */
  add(finished: Finished): void;
  /** What was claimed and came to no result. */
  requeue(back: Requeued): void;
  /** What a fault of this program came between: the attempt counts, so that a fault that recurs comes to an end. */
  requeueAfterFault(deliveries: LeasedDelivery[]): void;
  /** A call to the store was refused. */
  refused(error: unknown, doing: string): void;
  /** The store refused a moment ago: it is asked for nothing until the next try. */
  holding(): boolean;
  /** No more tries by the clock. */
  halt(): void;
}

export interface WritesDeps extends Pick<ResultWriterDeps, "store" | "onDeadLetter"> {
  clock: Clock;
  /** Milliseconds since the epoch, by a clock that never goes back. */
  time(): number;
  log: Log;
  work: Work;
  /** A delivery is due then. */
  wakeAt(dueAt: number): void;
  /** The store takes writes again, and looks and claims were skipped. */
  onResume(): void;
}

const storeRetryMs = 1000;
/** An endpoint that brings out a fault of this program is paused for so long, and its delivery due again after it. */
export const faultPauseMs = 30_000;

export function createWrites(deps: WritesDeps): Writes {
  const { store, clock, time, log, work, wakeAt, onDeadLetter, onResume } = deps;
  let writing = false;
  let retry: Timer | null = null;
  /** Looks and claims were skipped while the store refused. */
  let missed = false;

  const refused = (error: unknown, doing: string): void => {
    log.error({ error: String(error), doing }, "the store accepts no writes; webhooks wait");
    if (!work.running()) return results.forget();
    missed = true;
    retry ??= clock.after(storeRetryMs, tryAgain);
  };

  const tryAgain = (): void => {
    retry = null;
    if (results.waiting()) write();
    else resume();
  };

  const resume = (): void => {
    if (!missed || retry !== null) return;
    missed = false;
    onResume();
  };

  const write = (): void => {
    if (writing || retry !== null || !results.waiting()) return;
    writing = true;
    work.track(
      results
        .write()
        .then(resume)
        .catch((error: unknown) => refused(error, "writing webhook results"))
        .finally(() => {
          writing = false;
          write();
        }),
    );
  };

  const requeue = (back: Requeued): void => {
    results.requeue(back);
    write();
  };

  const requeueAfterFault = (deliveries: LeasedDelivery[]): void => {
    const at = time() + faultPauseMs;
    requeue({ deliveries, at, counted: true });
    wakeAt(at);
  };

  const results = createResultWriter({
    store,
    log,
    onDeadLetter,
    onRetry: wakeAt,
    onUnwritable: (result) => requeueAfterFault([result]),
  });

  return {
    add(finished) {
      results.add(finished);
      write();
    },
    requeue,
    requeueAfterFault,
    refused,
    holding: () => retry !== null,
    halt: () => retry?.cancel(),
  };
}

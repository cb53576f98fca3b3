// Claims due deliveries from the store and starts their attempts (attempts.ts). Each endpoint has a queue of its own with
// up to 32 attempts in flight (endpoint-queues.ts), so that one that hangs delays no other. Within a queue first attempts
// start in event order, before retries. No more is claimed than there is a slot for; the attempt number and its lease are
// on disk before the attempt, so a crash loses none: the next start takes them back. While results cannot be written
// nothing is claimed. Of a failing endpoint (endpoint-queues.ts) events wait untried and unclaimed. One timer wakes for the
// earliest due time of all (wake-timer.ts). A fault that one endpoint brings out is logged, and that endpoint paused for a
// while.
import { forwardTime, type Clock, type Timer } from "../clock.ts";
import { createTurns } from "../fairness/turns.ts";
import type { Log } from "../log.ts";
import type { DeliveryResult, LeasedDelivery } from "../model/webhook-delivery.ts";
import type { Endpoint } from "../model/webhook.ts";
import { StoreUnavailable } from "../store/store.ts";
import type { Store } from "../store/store.ts";
import { createDeliveryAttempts } from "./attempts.ts";
import type { EndpointQueue } from "./endpoint-queues.ts";
import { createEndpointQueues, isFailing } from "./endpoint-queues.ts";
import type { Post } from "./post.ts";
import type { DeadLetter, Requeued } from "./results.ts";
import { createResultWriter } from "./results.ts";
import { createWakeTimer } from "./wake-timer.ts";

export type DispatchStore = Pick<
  Store,
  "endpointsDue" | "endpointByKey" | "claimDeliveries" | "settleDeliveries" | "requeueDeliveries"
>;

export interface DispatcherDeps {
  store: DispatchStore;
  post: Post;
  scheduleMs: readonly number[];
  /** This boot. */
  owner: string;
  clock: Clock;
  log: Log;
  /** Called after the dead letter is on disk. */
  onDeadLetter(letter: DeadLetter): void;
  /** An attempt ended, and came to this. */
  onAttempt?(endpoint: Endpoint, result: DeliveryResult["result"]["kind"]): void;
}

export interface Dispatcher {
  start(): void;
  kick(): void;
  /** The endpoint may have been repaired, resumed or moved: its events are tried now. */
  retryNow(endpointKey: number): void;
  stop(): Promise<void>;
}

/** At least this often the store is looked at: others resume endpoints. */
const longestSleepMs = 30_000;
const storeRetryMs = 1000;
/**
 * Where more endpoints than that have events, commits have it look less often: a look costs a seek for each of them, and
 * there are a hundred commits a second. So looks take a fiftieth of the loop.
 */
const fewEndpoints = 10;
const lookMsPerEndpoint = 0.5;
const stopGraceMs = 3000;
/** Attempts that begin in a turn of the loop, of all accounts: hundreds at once would hold up all else that waits for it. */
const attemptsPerTurn = 16;
/** An endpoint that brings out a fault of this program is paused for so long, and its delivery due again after it. */
const faultPauseMs = 30_000;

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { store, owner, clock, log } = deps;
  const time = forwardTime(clock);
  const queues = createEndpointQueues(deps.post);
  const busy = new Set<Promise<void>>();
  let running = false;
  let looking = false;
  /** A commit before that waits until then to be looked at. */
  let nextLookAt = -Infinity;
  let lookAgain = false;
  let settling = false;
  let refused: Timer | null = null;
  /** Looks and claims were skipped while the store refused. */
  let missed = false;
  const wake = createWakeTimer({ clock, time, longestSleepMs, onWake: () => look() });

  const track = (work: Promise<void>): void => {
    busy.add(work);
    void work.finally(() => busy.delete(work));
  };

  /** The store refused: nothing is claimed until it takes what waits, tried again each second. */
  const storeRefused = (error: unknown, doing: string): void => {
    log.error({ error: String(error), doing }, "the store accepts no writes; webhooks wait");
    if (!running) {
      results.forget();
      return;
    }
    missed = true;
    refused ??= clock.after(storeRetryMs, () => {
      refused = null;
      if (results.waiting()) return settle();
      missed = false;
      look();
    });
  };

  const wakeAt = (dueAt: number): void => {
    if (running) wake.at(dueAt);
  };

  const look = (): void => {
    if (!running || refused !== null) return;
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = true;
    track(
      lookOnce()
        .catch((error: unknown) => storeRefused(error, "looking for due webhooks"))
        .finally(() => {
          looking = false;
          if (lookAgain) {
            lookAgain = false;
            look();
          }
        }),
    );
  };

  const lookOnce = async (): Promise<void> => {
    const due = await store.endpointsDue();
    const now = time();
    nextLookAt = due.length > fewEndpoints ? now + Math.ceil(due.length * lookMsPerEndpoint) : now;
    for (const { endpointKey, accountKey, dueAt, retryAt, failures } of due) {
      if (dueAt > now) {
        wakeAt(dueAt);
        continue;
      }
      const queue = queues.of(endpointKey, accountKey, now, failures);
      const nextAt = Math.min(queues.beginAt(queue), retryAt ?? Infinity);
      if (nextAt > now) wakeAt(nextAt);
      else fill(queue, true);
    }
    queues.closeIdle(now);
    wakeAt(now + longestSleepMs);
  };

  const results = createResultWriter({
    store,
    log,
    onDeadLetter: (letter) => deps.onDeadLetter(letter),
    onRetry: wakeAt,
    onUnwritable: (result) => requeueAfterFault([result]),
  });
  const attempts = createDeliveryAttempts({
    ...deps,
    queues,
    turns: createTurns({ clock, pieces: attemptsPerTurn, everyMs: 0 }),
    time,
    track,
    running: () => running,
    onSlotFree(queue) {
      if (isFailing(queue)) wakeAt(queues.beginAt(queue));
      fill(queue, false);
    },
    onFault(queue, delivery, error) {
      pauseAfterFault(queue, error);
      requeueAfterFault([delivery]);
    },
    onFinished(finished) {
      results.add(finished);
      settle();
    },
  });

  /** Claims for a queue's free slots, again for as long as the store has more. */
  const fill = (queue: EndpointQueue, more: boolean): void => {
    queue.more ||= more;
    if (queue.claiming || !queue.more || !running || refused !== null || queues.freeSlots(queue) <= 0) return;
    if (queue.pausedUntil > time()) return wakeAt(queue.pausedUntil);
    queue.claiming = true;
    track(
      claim(queue)
        .catch((error: unknown) => {
          if (error instanceof StoreUnavailable) storeRefused(error, "claiming webhooks");
          else pauseAfterFault(queue, error);
        })
        .finally(() => {
          queue.claiming = false;
          fill(queue, false);
        }),
    );
  };

  /** What a fault of this program came between: the attempt counts, so that a fault that recurs comes to an end. */
  const requeueAfterFault = (deliveries: LeasedDelivery[]): void => {
    const at = time() + faultPauseMs;
    requeue({ deliveries, at, counted: true });
    wakeAt(at);
  };

  const requeue = (back: Requeued): void => {
    results.requeue(back);
    settle();
  };

  /** A fault of this program that one endpoint brings out delays no other. */
  const pauseAfterFault = (queue: EndpointQueue, error: unknown): void => {
    queue.pausedUntil = time() + faultPauseMs;
    log.error(
      { endpointKey: queue.key, error: String(error) },
      "a webhook endpoint is paused after a fault of this program",
    );
  };

  const claim = async (queue: EndpointQueue): Promise<void> => {
    queue.more = false;
    const now = time();
    const mayBegin = queues.beginAt(queue) <= now;
    // Of a failing endpoint's events one is tried; what has begun keeps to its schedule, and is claimed after it.
    const probes = mayBegin && isFailing(queue);
    const limit = probes ? 1 : queues.freeSlots(queue);
    if (probes) queue.probeAt = now;
    queues.take(queue, limit);
    try {
      const { key: endpointKey, accountKey } = queue;
      const wanted = { owner, accountKey, endpointKey, limit, now, retriesOnly: !mayBegin };
      const claimed = await store.claimDeliveries(wanted);
      const { deliveries, nextDueAt } = claimed;
      if (nextDueAt !== null && nextDueAt > now) wakeAt(nextDueAt);
      if (deliveries.length === 0) return;
      queue.more ||= probes || (nextDueAt !== null && nextDueAt <= now);
      // Read after the claim: the secret and URL of now, and nothing for an endpoint that is gone or paused.
      const endpoint = await store.endpointByKey(queue.key).catch((error: unknown) => {
        requeueAfterFault(deliveries);
        throw error;
      });
      if (!endpoint?.active) return requeue({ deliveries, at: now, counted: false });
      for (const delivery of deliveries) attempts.start(queue, endpoint, delivery);
    } finally {
      queues.take(queue, -limit);
    }
  };

  const settle = (): void => {
    if (settling || refused !== null || !results.waiting()) return;
    settling = true;
    track(
      results
        .write()
        .then(() => {
          if (missed) look();
          missed = false;
        })
        .catch((error: unknown) => storeRefused(error, "writing webhook results"))
        .finally(() => {
          settling = false;
          settle();
        }),
    );
  };

  return {
    start() {
      running = true;
      look();
    },
    retryNow(endpointKey) {
      queues.probeNow(endpointKey);
      look();
    },
    kick() {
      if (time() >= nextLookAt) look();
      else wakeAt(nextLookAt);
    },
    async stop() {
      running = false;
      wake.cancel();
      refused?.cancel();
      const grace = clock.after(stopGraceMs, () => {
        attempts.cutShort();
        queues.closeAll();
      });
      while (busy.size > 0) await Promise.allSettled(busy);
      grace.cancel();
      queues.closeAll();
    },
  };
}

// Who goes now: takes due deliveries from the store and posts them. Each endpoint is a lane of its own with up to
// 32 attempts in flight, so that one that hangs delays nobody else's. Within a lane first attempts start in event order,
// before retries. No more is claimed than there is a slot for; the attempt number and its lease are on disk before the
// attempt, so what a crash interrupts comes back. While results cannot be written nothing is claimed. One timer wakes for
// the earliest due time of all. A fault that one endpoint brings out is logged, and that one left alone for a while: it
// holds up no other. What an attempt is, post.ts knows; what it came to, results.ts.
import { forwardTime, type Clock, type Timer } from "../clock.ts";
import type { Log } from "../log.ts";
import type { DueDelivery } from "../model/webhook-delivery.ts";
import type { Endpoint } from "../model/webhook.ts";
import { StoreUnavailable } from "../store/store.ts";
import type { Store } from "../store/store.ts";
import type { Lane } from "./lanes.ts";
import { createLanes } from "./lanes.ts";
import type { Answer, Post } from "./post.ts";
import type { DeadLetter } from "./results.ts";
import { createResultWriter, resultOf } from "./results.ts";
import { maxAttempts } from "./schedule.ts";

export type DispatchStore = Pick<
  Store,
  "endpointsDue" | "endpointByKey" | "claimDeliveries" | "settleDeliveries" | "giveBackDeliveries"
>;

export interface DispatcherDeps {
  store: DispatchStore;
  post: Post;
  scheduleMs: readonly number[];
  timeoutMs: number;
  clock: Clock;
  log: Log;
  /** Told after the dead letter is on disk. */
  onDeadLetter(letter: DeadLetter): void;
}

export interface Dispatcher {
  start(): void;
  kick(): void;
  stop(): Promise<void>;
}

/** Beyond the attempt's own limit, for the store to write the result. */
const leaseMarginMs = 20_000;
/** At least this often the store is looked at: wall clocks jump, and others resume endpoints. */
const longestSleepMs = 30_000;
const troublePauseMs = 1000;
const stopGraceMs = 3000;
/** An endpoint with which something goes wrong that is not the store's trouble is left alone for so long. */
const restMs = 30_000;
/** An attempt that reached nobody keeps its slot for so long: a dead endpoint refuses in no time, and each attempt is written. */
const unreachedMs = 500;

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { store, clock, log } = deps;
  const time = forwardTime(clock);
  const lanes = createLanes(deps.post);
  const busy = new Set<Promise<void>>();
  let running = false;
  let looking = false;
  let lookAgain = false;
  let settling = false;
  let troubled: Timer | null = null;
  /** Looks and claims were skipped while the store refused. */
  let missed = false;
  let cutShort = false;
  let wake: { at: number; timer: Timer } | null = null;

  const hold = (work: Promise<void>): void => {
    busy.add(work);
    void work.finally(() => busy.delete(work));
  };

  /** The store refused: nothing is claimed until it takes what waits, tried again each second. */
  const trouble = (error: unknown, doing: string): void => {
    log.error({ error: String(error), doing }, "the store refused; webhooks wait");
    if (!running) {
      results.forget();
      return;
    }
    missed = true;
    troubled ??= clock.after(troublePauseMs, () => {
      troubled = null;
      if (results.waiting()) return settle();
      missed = false;
      look();
    });
  };

  const wakeAt = (dueAt: number): void => {
    if (!running) return;
    const at = Math.min(dueAt, time() + longestSleepMs);
    if (wake !== null && wake.at <= at) return;
    wake?.timer.cancel();
    const timer = clock.after(at - time(), () => {
      wake = null;
      look();
    });
    wake = { at, timer };
  };

  const look = (): void => {
    if (!running || troubled !== null) return;
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = true;
    hold(
      lookOnce()
        .catch((error: unknown) => trouble(error, "looking for due webhooks"))
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
    for (const { endpointKey, accountKey, dueAt } of due) {
      if (dueAt > now) wakeAt(dueAt);
      else fill(lanes.of(endpointKey, accountKey, now), true);
    }
    lanes.closeIdle(now);
    wakeAt(now + longestSleepMs);
  };

  const results = createResultWriter({
    store,
    log,
    onDeadLetter: (letter) => deps.onDeadLetter(letter),
    onRetry: wakeAt,
  });

  /** Claims for a lane's free slots, again for as long as the store has more. */
  const fill = (lane: Lane, more: boolean): void => {
    lane.more ||= more;
    if (lane.claiming || !lane.more || !running || troubled !== null || lanes.freeSlots(lane) <= 0) return;
    if (lane.restsUntil > time()) return wakeAt(lane.restsUntil);
    lane.claiming = true;
    hold(
      claim(lane)
        .catch((error: unknown) => {
          if (error instanceof StoreUnavailable) trouble(error, "claiming webhooks");
          else rest(lane, error);
        })
        .finally(() => {
          lane.claiming = false;
          fill(lane, false);
        }),
    );
  };

  /** A fault of our own that one endpoint brings out must not hold up the others. */
  const rest = (lane: Lane, error: unknown): void => {
    lane.restsUntil = time() + restMs;
    log.error({ endpointKey: lane.key, error: String(error) }, "an endpoint is left alone for a while");
  };

  const claim = async (lane: Lane): Promise<void> => {
    lane.more = false;
    const now = time();
    const leaseUntil = now + deps.timeoutMs + leaseMarginMs;
    const limit = lanes.freeSlots(lane);
    lanes.take(lane, limit);
    try {
      const { key: endpointKey, accountKey } = lane;
      const claimed = await store.claimDeliveries({ accountKey, endpointKey, limit, now, leaseUntil });
      const { deliveries, nextDueAt } = claimed;
      if (nextDueAt !== null && nextDueAt > now) wakeAt(nextDueAt);
      if (deliveries.length === 0) return;
      lane.more ||= nextDueAt !== null && nextDueAt <= now;
      // Read after the claim: the secret and URL of now, and nothing for an endpoint that is gone or paused.
      const endpoint = await store.endpointByKey(lane.key);
      if (!endpoint?.active) return await store.giveBackDeliveries(deliveries, now);
      for (const delivery of deliveries) begin(lane, endpoint, delivery);
    } finally {
      lanes.take(lane, -limit);
    }
  };

  const begin = (lane: Lane, endpoint: Endpoint, delivery: DueDelivery): void => {
    const flight = lane.flights.get(delivery.eventSeq);
    if (flight !== undefined) {
      flight.attempt = delivery.attempt;
      return;
    }
    const current = { ...delivery };
    if (current.attempt > maxAttempts(deps.scheduleMs)) {
      finish(lane, endpoint, current, {
        delivered: false,
        status: null,
        durationMs: 0,
        failure: "the last attempt was interrupted",
        body: null,
      });
      return;
    }
    lane.flights.set(current.eventSeq, current);
    lane.usedAt = time();
    lanes.take(lane, 1);
    const free = (): void => {
      lanes.take(lane, -1);
      fill(lane, false);
    };
    hold(
      attempt(lane, endpoint, current)
        .catch((error: unknown) => {
          rest(lane, error);
          return true;
        })
        .then((reached) => {
          lane.flights.delete(current.eventSeq);
          lanes.ended(lane, reached);
          if (reached || !running) return free();
          lane.paused += 1;
          clock.after(unreachedMs, () => {
            lane.paused -= 1;
            free();
          });
        }),
    );
  };

  /** Whether there was an answer, of whatever kind. */
  const attempt = async (lane: Lane, endpoint: Endpoint, delivery: DueDelivery): Promise<boolean> => {
    const event = { id: delivery.eventId, body: delivery.body };
    const answer = await deps.post.post(
      () => lanes.connect(lane, endpoint),
      endpoint,
      event,
      delivery.attempt,
    );
    // An attempt that stop() cut short proves nothing: its lease runs out and it is made again.
    if (answer.delivered || !cutShort) finish(lane, endpoint, delivery, answer);
    return answer.status !== null;
  };

  const finish = (lane: Lane, endpoint: Endpoint, delivery: DueDelivery, answer: Answer): void => {
    const now = time();
    const body = answer.body !== null && lanes.mayKeepAnswer(lane, now) ? answer.body : null;
    const finished = resultOf(endpoint, delivery, { ...answer, body }, now, deps.scheduleMs);
    const { status, failure } = answer;
    const fields = {
      endpoint: endpoint.id,
      event: delivery.eventId,
      attempt: delivery.attempt,
      status,
      failure,
    };
    if (finished.letter !== null) log.warn(fields, "webhook dead-lettered");
    else if (!answer.delivered) log.debug(fields, "webhook attempt failed");
    results.add(finished);
    settle();
  };

  const settle = (): void => {
    if (settling || troubled !== null || !results.waiting()) return;
    settling = true;
    hold(
      results
        .write()
        .then(() => {
          if (missed) look();
          missed = false;
        })
        .catch((error: unknown) => trouble(error, "writing webhook results"))
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
    kick: look,
    async stop() {
      running = false;
      wake?.timer.cancel();
      wake = null;
      troubled?.cancel();
      const grace = clock.after(stopGraceMs, () => {
        cutShort = true;
        lanes.closeAll();
      });
      while (busy.size > 0) await Promise.allSettled(busy);
      grace.cancel();
      lanes.closeAll();
    },
  };
}

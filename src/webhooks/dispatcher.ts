// Who goes now: takes due deliveries from the store and posts them. Each endpoint is a lane of its own with up to
// 32 attempts in flight, so that one that hangs delays nobody else's. Within a lane first attempts start in event order,
// before retries. No more is claimed than there is a slot for; the attempt number and its lease are on disk before the
// attempt, so what a crash interrupts comes back. Results are written in batches, and while they cannot be written
// nothing is claimed. One timer wakes for the earliest due time of all. What an attempt is, post.ts knows.
import type { Pool } from "undici";
import type { Clock, Timer } from "../clock.ts";
import type { Log } from "../log.ts";
import type { DeliveryResult, DueDelivery, Endpoint, Store } from "../store/store.ts";
import { readEndpointUrl } from "./guard.ts";
import type { Answer, Post } from "./post.ts";
import { maxAttempts, nextAttemptAt } from "./schedule.ts";

export interface DeadLetter {
  endpoint: Endpoint;
  eventId: string;
  attempts: number;
  /** HTTP status of the last attempt's answer; null where there was none. */
  lastStatus: number | null;
}

export type DispatchStore = Pick<
  Store,
  "endpointsDue" | "endpointByKey" | "claimDeliveries" | "settleDeliveries"
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

const laneSlots = 32;
/** In flight at all endpoints together: bounds sockets and memory (see `freeSlots`). */
const totalSlots = 1024;
/** Beyond the attempt's own limit, for the store to write the result. */
const leaseMarginMs = 20_000;
/** At least this often the store is looked at: wall clocks jump, and others resume endpoints. */
const longestSleepMs = 30_000;
const troublePauseMs = 1000;
const idleMs = 60_000;
const stopGraceMs = 3000;
const settleBatch = 500;

interface Lane {
  key: number;
  /** Attempts in flight by event; a delivery whose lease ran out meanwhile is not started twice. */
  flights: Map<number, DueDelivery>;
  connections: { origin: string; pool: Pool } | null;
  usedAt: number;
  claiming: boolean;
  /** The store holds more that is due now. */
  more: boolean;
}

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { store, clock, log } = deps;
  const lanes = new Map<number, Lane>();
  const results: { result: DeliveryResult; letter: DeadLetter | null }[] = [];
  const busy = new Set<Promise<void>>();
  let inFlight = 0;
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
      results.length = 0; // their leases bring them back
      return;
    }
    missed = true;
    troubled ??= clock.after(troublePauseMs, () => {
      troubled = null;
      if (results.length > 0) return settle();
      missed = false;
      look();
    });
  };

  const wakeAt = (dueAt: number): void => {
    if (!running) return;
    const at = Math.min(dueAt, clock.now() + longestSleepMs);
    if (wake !== null && wake.at <= at) return;
    wake?.timer.cancel();
    const timer = clock.after(at - clock.now(), () => {
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
    const now = clock.now();
    for (const { endpointKey, dueAt } of due) {
      if (dueAt > now) wakeAt(dueAt);
      else fill(laneOf(endpointKey), true);
    }
    for (const lane of lanes.values()) {
      if (lane.flights.size === 0 && !lane.claiming && now - lane.usedAt >= idleMs) closeLane(lane);
    }
    wakeAt(now + longestSleepMs);
  };

  const laneOf = (key: number): Lane => {
    const lane = lanes.get(key) ?? {
      key,
      flights: new Map(),
      connections: null,
      usedAt: clock.now(),
      claiming: false,
      more: false,
    };
    lanes.set(key, lane);
    return lane;
  };

  const closeLane = (lane: Lane): void => {
    lanes.delete(lane.key);
    void lane.connections?.pool.destroy();
  };

  /** A lane's share shrinks as the total fills, and is never less than one: many dead endpoints cannot crowd out a live one. */
  const freeSlots = (lane: Lane): number =>
    Math.min(laneSlots, Math.max(1, Math.floor((totalSlots - inFlight) / 8))) - lane.flights.size;

  /** Claims for a lane's free slots, again for as long as the store has more. */
  const fill = (lane: Lane, more: boolean): void => {
    lane.more ||= more;
    if (lane.claiming || !lane.more || !running || troubled !== null || freeSlots(lane) <= 0) return;
    lane.claiming = true;
    hold(
      claim(lane)
        .catch((error: unknown) => trouble(error, "claiming webhooks"))
        .finally(() => {
          lane.claiming = false;
          fill(lane, false);
        }),
    );
  };

  const claim = async (lane: Lane): Promise<void> => {
    lane.more = false;
    const now = clock.now();
    const leaseUntil = now + deps.timeoutMs + leaseMarginMs;
    const limit = freeSlots(lane);
    inFlight += limit; // taken while others claim too
    try {
      const claimed = await store.claimDeliveries({ endpointKey: lane.key, limit, now, leaseUntil });
      const { deliveries, nextDueAt } = claimed;
      if (nextDueAt !== null && nextDueAt > now) wakeAt(nextDueAt);
      if (deliveries.length === 0) return;
      lane.more ||= nextDueAt !== null && nextDueAt <= now;
      // Read after the claim: the secret and URL of now, and nothing for an endpoint that is gone or paused.
      const endpoint = await store.endpointByKey(lane.key);
      if (!endpoint?.active) return;
      for (const delivery of deliveries) begin(lane, endpoint, delivery);
    } finally {
      inFlight -= limit;
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
      finish(endpoint, current, {
        delivered: false,
        status: null,
        at: clock.now(),
        durationMs: 0,
        failure: "the last attempt was interrupted",
      });
      return;
    }
    lane.flights.set(current.eventSeq, current);
    lane.usedAt = clock.now();
    inFlight++;
    hold(
      attempt(lane, endpoint, current).finally(() => {
        lane.flights.delete(current.eventSeq);
        inFlight--;
        fill(lane, false);
      }),
    );
  };

  const attempt = async (lane: Lane, endpoint: Endpoint, delivery: DueDelivery): Promise<void> => {
    const event = { id: delivery.eventId, body: delivery.body };
    const answer = await deps.post.post(() => poolOf(lane, endpoint), endpoint, event, delivery.attempt);
    // An attempt that stop() cut short proves nothing: its lease runs out and it is made again.
    if (answer.delivered || !cutShort) finish(endpoint, delivery, answer);
  };

  const poolOf = (lane: Lane, endpoint: Endpoint): Pool => {
    const url = readEndpointUrl(endpoint.url);
    if (lane.connections?.origin === url.origin) return lane.connections.pool;
    void lane.connections?.pool.close();
    const pool = deps.post.open(url, laneSlots);
    lane.connections = { origin: url.origin, pool };
    return pool;
  };

  const finish = (endpoint: Endpoint, delivery: DueDelivery, answer: Answer): void => {
    const { eventSeq, eventId, attempt: number } = delivery;
    const base = {
      endpointKey: endpoint.key,
      eventSeq,
      attempt: number,
      at: answer.at,
      status: answer.status,
    };
    const dueAt = answer.delivered ? null : nextAttemptAt(number, answer.at, deps.scheduleMs);
    if (answer.delivered) {
      results.push({ result: { ...base, result: { kind: "delivered" } }, letter: null });
    } else if (dueAt !== null) {
      log.debug(
        {
          endpoint: endpoint.id,
          event: eventId,
          attempt: number,
          status: answer.status,
          failure: answer.failure,
        },
        "webhook attempt failed",
      );
      results.push({ result: { ...base, result: { kind: "retry", dueAt } }, letter: null });
    } else {
      log.warn(
        {
          endpoint: endpoint.id,
          event: eventId,
          attempts: number,
          status: answer.status,
          failure: answer.failure,
        },
        "webhook dead-lettered",
      );
      const letter = {
        endpoint,
        eventId,
        attempts: Math.min(number, maxAttempts(deps.scheduleMs)),
        lastStatus: answer.status,
      };
      results.push({ result: { ...base, result: { kind: "dead_lettered" } }, letter });
    }
    settle();
  };

  const settle = (): void => {
    if (settling || troubled !== null || results.length === 0) return;
    settling = true;
    hold(
      settleAll()
        .catch((error: unknown) => trouble(error, "writing webhook results"))
        .finally(() => {
          settling = false;
          settle();
        }),
    );
  };

  const settleAll = async (): Promise<void> => {
    while (results.length > 0) {
      const batch = results.slice(0, settleBatch);
      await store.settleDeliveries(batch.map((entry) => entry.result));
      results.splice(0, batch.length);
      for (const { result, letter } of batch) {
        if (letter !== null) deps.onDeadLetter(letter);
        if (result.result.kind === "retry") wakeAt(result.result.dueAt);
      }
    }
    if (missed) {
      missed = false;
      look();
    }
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
        lanes.forEach(closeLane);
      });
      while (busy.size > 0) await Promise.allSettled(busy);
      grace.cancel();
      lanes.forEach(closeLane);
    },
  };
}

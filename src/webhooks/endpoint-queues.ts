// The dispatcher's queues, one an endpoint: what is in flight there, its kept connections, and how many slots it has
// left. A queue starts with 2 slots and has up to 32 as its endpoint answers; all queues together have about 1,024, which
// bounds sockets and memory. The more of those are taken, the smaller each queue's share, and never less than one: many
// dead endpoints cannot crowd out a live one. All queues of one account have at most half of what other accounts leave,
// where events of others are under way too. An endpoint whose attempts all failed for a while is failing: what is under way
// keeps to its schedule, two attempts at once at most, and of the events that wait for their first attempt one is tried at
// a time, with a rest between. The first success ends that.
import type { Pool } from "undici";
import type { DueDelivery } from "../model/webhook-delivery.ts";
import { failingAfter, type Endpoint } from "../model/webhook.ts";
import { readEndpointUrl } from "./ssrf-filter.ts";
import type { Post } from "./post.ts";

const queueSlots = 32;
/** What an endpoint has that has not answered yet; each answer adds one, an attempt without an answer halves them. */
const firstSlots = 2;
const totalSlots = 1024;
/** A queue may take this part of what is free, at most. */
const shareOfFree = 1 / 8;
/** All queues of an account together may have this part of what other accounts leave. */
const shareOfAccount = 1 / 2;
const idleMs = 60_000;
/** A failing endpoint's next event is tried after a rest as long as it has been failing, within these. */
const shortestRestMs = 500;
const longestRestMs = 5_000;
/** A `probeAt` that waits for no attempt under way, nor for a rest after one: it may hang where the endpoint was. */
const atOnce = 0;
/** Of an endpoint that fails en masse a sample of its answers is kept, so that it cannot fill the disk with them. */
const mostAnswers = 100;
const answersPerSecond = 1;

export interface EndpointQueue {
  readonly key: number;
  readonly accountKey: number;
  /** Attempts in flight by event: one that is discarded and replayed meanwhile is not started twice. */
  readonly flights: Map<number, DueDelivery>;
  connections: { origin: string; pool: Pool } | null;
  usedAt: number;
  claiming: boolean;
  /** The store has more that is due now. */
  more: boolean;
  /** How many answers may still be kept, as of when. */
  answers: { left: number; at: number };
  /** Attempts that may be in flight, as its answers have earned them. */
  slots: number;
  /** Slots that stay taken for a while after an attempt without an answer. */
  cooling: number;
  /** A fault of this program that this endpoint brings out: nothing is claimed for it until then. */
  pausedUntil: number;
  /** Attempts that failed since the last success. */
  failures: number;
  /** When they became as many as make it failing. */
  failingSince: number;
  /** When a failing endpoint's next event may be tried for the first time. */
  probeAt: number;
}

/** What an attempt came to; a fault of this program says nothing of the endpoint. */
export type Came = "delivered" | "refused" | "unanswered" | "fault";

export interface EndpointQueues {
  /** `failures`: in a row, as the store has counted them; for a queue that is not there yet. */
  of(key: number, accountKey: number, now: number, failures: number): EndpointQueue;
  /** The next event is tried now, however long the endpoint has been failing. */
  probeNow(key: number): void;
  freeSlots(queue: EndpointQueue): number;
  /** An attempt has ended; answers whether its slot rests. */
  ended(queue: EndpointQueue, came: Came, now: number): boolean;
  /** From when on events that were not tried yet may be; of a failing endpoint one, not while an attempt is under way. */
  beginAt(queue: EndpointQueue): number;
  /** Counts slots as taken, from before their claim to the end of their attempts; negative: they are free again. */
  take(queue: EndpointQueue, slots: number): void;
  /** Connections to where the endpoint is now; those to where it was end with their last attempt. Throws after `closeAll`. */
  connect(queue: EndpointQueue, endpoint: Endpoint): Pool;
  /** True where the text of one more answer may be kept. */
  mayKeepAnswer(queue: EndpointQueue, now: number): boolean;
  closeIdle(now: number): void;
  /** Cuts off what is in flight, and what is about to be. */
  closeAll(): void;
}

export const isFailing = ({ failures }: Pick<EndpointQueue, "failures">): boolean => failures >= failingAfter;

export function createEndpointQueues(post: Pick<Post, "open">): EndpointQueues {
  const queues = new Map<number, EndpointQueue>();
  let taken = 0;
  let closed = false;
  const takenBy = new Map<number, number>();
  /** How many queues of each account there are. */
  const queuesOf = new Map<number, number>();
  const add = (to: Map<number, number>, accountKey: number, n: number): void => {
    const sum = (to.get(accountKey) ?? 0) + n;
    if (sum === 0) to.delete(accountKey);
    else to.set(accountKey, sum);
  };
  /** What one account may still take; each queue has one slot whatever the others took. */
  const leftTo = (accountKey: number): number => {
    if (queuesOf.size < 2) return totalSlots;
    const own = takenBy.get(accountKey) ?? 0;
    return Math.floor((totalSlots - taken + own) * shareOfAccount) - own;
  };
  const close = (queue: EndpointQueue): void => {
    if (queues.delete(queue.key)) add(queuesOf, queue.accountKey, -1);
    void queue.connections?.pool.destroy();
  };
  return {
    of(key, accountKey, now, failures) {
      const known = queues.get(key);
      if (known) return known;
      const queue: EndpointQueue = {
        key,
        accountKey,
        flights: new Map(),
        connections: null,
        usedAt: now,
        claiming: false,
        more: false,
        answers: { left: mostAnswers, at: now },
        slots: firstSlots,
        cooling: 0,
        pausedUntil: 0,
        failures,
        failingSince: -Infinity,
        probeAt: now,
      };
      queues.set(key, queue);
      add(queuesOf, accountKey, 1);
      return queue;
    },
    freeSlots(queue) {
      const share = Math.floor((totalSlots - taken) * shareOfFree);
      const most = Math.min(
        queue.slots,
        Math.max(1, share),
        Math.max(1, queue.flights.size + queue.cooling + leftTo(queue.accountKey)),
      );
      return most - queue.flights.size - queue.cooling;
    },
    ended(queue, came, now) {
      const wasFailing = isFailing(queue);
      if (came !== "fault") queue.failures = came === "delivered" ? 0 : queue.failures + 1;
      const failing = isFailing(queue);
      if (failing) {
        if (!wasFailing) queue.failingSince = now;
        const restMs = Math.min(longestRestMs, Math.max(shortestRestMs, now - queue.failingSince));
        if (!wasFailing || queue.probeAt !== atOnce) queue.probeAt = now + restMs;
      } else if (wasFailing) queue.more = true;
      const rests = came === "unanswered" || (came === "refused" && failing);
      queue.slots = rests
        ? Math.max(firstSlots, Math.floor(queue.slots / 2))
        : Math.min(queueSlots, queue.slots + 1);
      return rests;
    },
    beginAt(queue) {
      if (!isFailing(queue)) return -Infinity;
      return queue.flights.size > 0 && queue.probeAt !== atOnce ? Infinity : queue.probeAt;
    },
    probeNow(key) {
      const queue = queues.get(key);
      if (queue) queue.probeAt = atOnce;
    },
    take({ accountKey }, slots) {
      taken += slots;
      add(takenBy, accountKey, slots);
    },
    connect(queue, endpoint) {
      if (closed) throw new Error("the service stops");
      const url = readEndpointUrl(endpoint.url);
      if (queue.connections?.origin === url.origin) return queue.connections.pool;
      void queue.connections?.pool.close();
      const pool = post.open(url, queueSlots, queue.accountKey);
      queue.connections = { origin: url.origin, pool };
      return pool;
    },
    mayKeepAnswer({ answers }, now) {
      answers.left = Math.min(mostAnswers, answers.left + ((now - answers.at) / 1000) * answersPerSecond);
      answers.at = now;
      if (answers.left < 1) return false;
      answers.left -= 1;
      return true;
    },
    closeIdle(now) {
      for (const queue of queues.values()) {
        const idle = queue.flights.size === 0 && !queue.claiming && now - queue.usedAt >= idleMs;
        if (idle) close(queue);
      }
    },
    closeAll() {
      closed = true;
      queues.forEach(close);
    },
  };
}

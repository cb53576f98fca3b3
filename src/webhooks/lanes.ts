// The lanes of the dispatcher, one an endpoint: what is in flight there, its kept connections, and how many slots it
// has left. A lane begins with 2 and has up to 32 as its endpoint answers; all lanes together have about 1,024, which
// bounds sockets and memory. The more of those are taken, the smaller each lane's share, and never less than one: many
// dead endpoints cannot crowd out a live one. All lanes of one account have at most half of what other accounts leave,
// where events of others are under way too.
import type { Pool } from "undici";
import type { DueDelivery } from "../model/webhook-delivery.ts";
import type { Endpoint } from "../model/webhook.ts";
import { readEndpointUrl } from "./guard.ts";
import type { Post } from "./post.ts";

const laneSlots = 32;
/** What an endpoint has that has not answered yet; each answer adds one, an attempt without an answer halves them. */
const firstSlots = 2;
const totalSlots = 1024;
/** A lane may take this part of what is free, at most. */
const shareOfFree = 1 / 8;
/** All lanes of an account together may have this part of what other accounts leave. */
const shareOfAccount = 1 / 2;
const idleMs = 60_000;
/** Of an endpoint that fails en masse a sample of its answers is kept, so that it cannot fill the disk with them. */
const mostAnswers = 100;
const answersPerSecond = 1;

export interface Lane {
  readonly key: number;
  readonly accountKey: number;
  /** Attempts in flight by event: a delivery whose lease ran out meanwhile is not started twice. */
  readonly flights: Map<number, DueDelivery>;
  connections: { origin: string; pool: Pool } | null;
  usedAt: number;
  claiming: boolean;
  /** The store holds more that is due now. */
  more: boolean;
  /** How many answers may still be kept, as of when. */
  answers: { left: number; at: number };
  /** Attempts that may be in flight, as its answers have earned them. */
  slots: number;
  /** Slots that stay taken for a while after an attempt without an answer. */
  paused: number;
  /** Something went wrong with it alone: until then it is left alone. */
  restsUntil: number;
}

export interface Lanes {
  of(key: number, accountKey: number, now: number): Lane;
  freeSlots(lane: Lane): number;
  /** An attempt has ended; `answered`: the endpoint answered, whatever it said. */
  ended(lane: Lane, answered: boolean): void;
  /** Counts slots as taken, from before their claim to the end of their attempts; negative: they are free again. */
  take(lane: Lane, slots: number): void;
  /** Connections to where the endpoint is now; those to where it was end with their last attempt. */
  connect(lane: Lane, endpoint: Endpoint): Pool;
  /** True where the text of one more answer may be kept. */
  mayKeepAnswer(lane: Lane, now: number): boolean;
  closeIdle(now: number): void;
  /** Cuts off what is in flight. */
  closeAll(): void;
}

export function createLanes(post: Pick<Post, "open">): Lanes {
  const lanes = new Map<number, Lane>();
  let taken = 0;
  const takenBy = new Map<number, number>();
  /** How many lanes of each account there are. */
  const lanesOf = new Map<number, number>();
  const add = (to: Map<number, number>, accountKey: number, n: number): void => {
    const sum = (to.get(accountKey) ?? 0) + n;
    if (sum === 0) to.delete(accountKey);
    else to.set(accountKey, sum);
  };
  /** What one account may still take; each lane has one slot whatever the others took. */
  const leftTo = (accountKey: number): number => {
    if (lanesOf.size < 2) return totalSlots;
    const own = takenBy.get(accountKey) ?? 0;
    return Math.floor((totalSlots - taken + own) * shareOfAccount) - own;
  };
  const close = (lane: Lane): void => {
    if (lanes.delete(lane.key)) add(lanesOf, lane.accountKey, -1);
    void lane.connections?.pool.destroy();
  };
  return {
    of(key, accountKey, now) {
      const known = lanes.get(key);
      if (known) return known;
      const lane: Lane = {
        key,
        accountKey,
        flights: new Map(),
        connections: null,
        usedAt: now,
        claiming: false,
        more: false,
        answers: { left: mostAnswers, at: now },
        slots: firstSlots,
        paused: 0,
        restsUntil: 0,
      };
      lanes.set(key, lane);
      add(lanesOf, accountKey, 1);
      return lane;
    },
    freeSlots(lane) {
      const share = Math.floor((totalSlots - taken) * shareOfFree);
      const most = Math.min(
        lane.slots,
        Math.max(1, share),
        Math.max(1, lane.flights.size + lane.paused + leftTo(lane.accountKey)),
      );
      return most - lane.flights.size - lane.paused;
    },
    ended(lane, answered) {
      lane.slots = answered
        ? Math.min(laneSlots, lane.slots + 1)
        : Math.max(firstSlots, Math.floor(lane.slots / 2));
    },
    take({ accountKey }, slots) {
      taken += slots;
      add(takenBy, accountKey, slots);
    },
    connect(lane, endpoint) {
      const url = readEndpointUrl(endpoint.url);
      if (lane.connections?.origin === url.origin) return lane.connections.pool;
      void lane.connections?.pool.close();
      const pool = post.open(url, laneSlots);
      lane.connections = { origin: url.origin, pool };
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
      for (const lane of lanes.values()) {
        const idle = lane.flights.size === 0 && !lane.claiming && now - lane.usedAt >= idleMs;
        if (idle) close(lane);
      }
    },
    closeAll: () => lanes.forEach(close),
  };
}

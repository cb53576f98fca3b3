// The lanes of the dispatcher, one an endpoint: what is in flight there, its kept connections, and how many slots it
// has left. A lane has up to 32; all lanes together about 1,024, which bounds sockets and memory. The more of those are
// taken, the smaller each lane's share, and never less than one: many dead endpoints cannot crowd out a live one.
import type { Pool } from "undici";
import type { DueDelivery, Endpoint } from "../store/store.ts";
import { readEndpointUrl } from "./guard.ts";
import type { Post } from "./post.ts";

const laneSlots = 32;
const totalSlots = 1024;
/** A lane may take this part of what is free, at most. */
const shareOfFree = 1 / 8;
const idleMs = 60_000;
/** Of an endpoint that fails en masse a sample of its answers is kept, so that it cannot fill the disk with them. */
const mostAnswers = 100;
const answersPerSecond = 1;

export interface Lane {
  readonly key: number;
  /** Attempts in flight by event: a delivery whose lease ran out meanwhile is not started twice. */
  readonly flights: Map<number, DueDelivery>;
  connections: { origin: string; pool: Pool } | null;
  usedAt: number;
  claiming: boolean;
  /** The store holds more that is due now. */
  more: boolean;
  /** How many answers may still be kept, as of when. */
  answers: { left: number; at: number };
  /** Something went wrong with it alone: until then it is left alone. */
  restsUntil: number;
}

export interface Lanes {
  of(key: number, now: number): Lane;
  freeSlots(lane: Lane): number;
  /** Counts slots as taken, from before their claim to the end of their attempts; negative: they are free again. */
  take(slots: number): void;
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
  const close = (lane: Lane): void => {
    lanes.delete(lane.key);
    void lane.connections?.pool.destroy();
  };
  return {
    of(key, now) {
      const known = lanes.get(key);
      if (known) return known;
      const lane: Lane = {
        key,
        flights: new Map(),
        connections: null,
        usedAt: now,
        claiming: false,
        more: false,
        answers: { left: mostAnswers, at: now },
        restsUntil: 0,
      };
      lanes.set(key, lane);
      return lane;
    },
    freeSlots(lane) {
      const share = Math.floor((totalSlots - taken) * shareOfFree);
      return Math.min(laneSlots, Math.max(1, share)) - lane.flights.size;
    },
    take: (slots) => void (taken += slots),
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

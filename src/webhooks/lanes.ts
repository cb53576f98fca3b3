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

export interface Lane {
  readonly key: number;
  /** Attempts in flight by event: a delivery whose lease ran out meanwhile is not started twice. */
  readonly flights: Map<number, DueDelivery>;
  connections: { origin: string; pool: Pool } | null;
  usedAt: number;
  claiming: boolean;
  /** The store holds more that is due now. */
  more: boolean;
}

export interface Lanes {
  of(key: number, now: number): Lane;
  freeSlots(lane: Lane): number;
  /** Counts slots as taken, from before their claim to the end of their attempts; negative: they are free again. */
  take(slots: number): void;
  /** Connections to where the endpoint is now; those to where it was end with their last attempt. */
  connect(lane: Lane, endpoint: Endpoint): Pool;
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
      const lane = { key, flights: new Map(), connections: null, usedAt: now, claiming: false, more: false };
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
    closeIdle(now) {
      for (const lane of lanes.values()) {
        const idle = lane.flights.size === 0 && !lane.claiming && now - lane.usedAt >= idleMs;
        if (idle) close(lane);
      }
    },
    closeAll: () => lanes.forEach(close),
  };
}

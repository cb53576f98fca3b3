// The limits of each egress source at each group of destinations: how many attempts run there at once, and how fast they
// start. Ready queues that send from the same address share its limiter and take their turns at it; one whose pool has
// several addresses takes a slot where there is room, by the addresses' weights.
import type { Clock } from "../clock.ts";
import { chooseByWeight, type Source } from "../pools/sources.ts";
import { createThrottle, type Throttle, type ThrottleState } from "./throttle.ts";
import type { Shaping } from "./shaping.ts";

export interface EgressLimiter<Queue> {
  group: string;
  /** null: the system chooses it. */
  address: string | null;
  throttle: Throttle;
  /** Attempts that run through it, and slots promised to acceptances. */
  taken: number;
  /** Ready queues that found it full. */
  waiting: Set<Queue>;
}

/** One address that a ready queue may send from, and its limiter. */
export interface EgressSlot<Queue> {
  source: Source;
  weight: number;
  limiter: EgressLimiter<Queue>;
}

/** What one address may do at a group now. */
export interface LimiterState extends ThrottleState {
  group: string;
  address: string | null;
  /** Attempts that run through it, and slots promised to acceptances. */
  taken: number;
}

export interface Egress<Queue> {
  /** A slot at each of these addresses, for a group. */
  slots(sources: readonly Source[], group: string): EgressSlot<Queue>[];
  /** The limits are others from now on. */
  reshape(): void;
  /** The limiters of the groups that `of` chooses. */
  states(of: (group: string) => boolean): LimiterState[];
  readonly size: number;
  /** Forgets the unused limiters that a new one would equal. */
  forget(used: ReadonlySet<EgressLimiter<Queue>>): void;
}

export function createEgress<Queue>(shaping: Shaping, clock: Clock): Egress<Queue> {
  const limiters = new Map<string, EgressLimiter<Queue>>();
  const limiterOf = (address: string | null, group: string): EgressLimiter<Queue> => {
    const key = address === null ? group : `${group} ${address}`;
    let limiter = limiters.get(key);
    if (!limiter) {
      const throttle = createThrottle(shaping.limits(group), clock);
      limiter = { group, address, throttle, taken: 0, waiting: new Set() };
      limiters.set(key, limiter);
    }
    return limiter;
  };
  return {
    slots: (sources, group) =>
      sources.map((source) => ({ source, weight: source.weight, limiter: limiterOf(source.address, group) })),
    reshape() {
      for (const { throttle, group } of limiters.values()) throttle.reshape(shaping.limits(group));
    },
    states: (of) =>
      [...limiters.values()]
        .filter(({ group }) => of(group))
        .map(({ group, address, taken, throttle }) => ({ group, address, taken, ...throttle.state() })),
    get size() {
      return limiters.size;
    },
    forget(used) {
      for (const [key, limiter] of limiters)
        if (limiter.taken === 0 && !used.has(limiter) && limiter.throttle.isIdle()) limiters.delete(key);
    },
  };
}

export const isFull = <Queue>({ taken, throttle }: EgressLimiter<Queue>): boolean =>
  taken >= throttle.limit();

/** How many more attempts may start at once. */
export function freeSlots<Queue>(slots: readonly EgressSlot<Queue>[]): number {
  let free = 0;
  for (const { limiter } of slots) free += Math.max(0, limiter.throttle.limit() - limiter.taken);
  return free;
}

/** Takes a slot and its token at one of the addresses; null where those that have room have no token yet. */
export function takeSlot<Queue>(
  slots: readonly EgressSlot<Queue>[],
  random: () => number,
): EgressSlot<Queue> | null {
  const [only] = slots;
  const open =
    slots.length < 2
      ? slots
      : slots.filter(({ limiter }) => !isFull(limiter) && limiter.throttle.waitMs() === 0);
  const slot = slots.length < 2 ? only : chooseByWeight(open, random());
  if (!slot || isFull(slot.limiter) || !slot.limiter.throttle.take()) return null;
  slot.limiter.taken += 1;
  return slot;
}

/** Milliseconds until one of the addresses that have room has a token. */
export function tokenWaitMs<Queue>(slots: readonly EgressSlot<Queue>[]): number {
  const waits = slots
    .filter(({ limiter }) => !isFull(limiter))
    .map(({ limiter }) => limiter.throttle.waitMs());
  return Math.min(...waits, longestWaitMs);
}

const longestWaitMs = 60_000;

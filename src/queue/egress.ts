// The limits of each egress source at each group of destinations: how many attempts run there at once, and how fast they
// start. Ready queues that send from the same address share its limiter and take their turns at it; one whose pool has
// several addresses takes a slot at the one whose turn it is by the addresses' weights (weighted-turns.ts). An address that warms up
// and has reached its cap of the day leaves the mail to the others.
import type { Clock } from "../clock.ts";
import type { WarmupSend } from "../model/warmup.ts";
import type { Source } from "../pools/sources.ts";
import type { WarmupCap, WarmupCounts } from "../pools/warmup-counts.ts";
import { createThrottle, type Throttle, type ThrottleState } from "./throttle.ts";
import { providerOf, type Shaping } from "./shaping.ts";
import { firstTurns, nextTurn, openTurn, shareOf, type Turn } from "./weighted-turns.ts";

export interface EgressLimiter<Queue> {
  group: string;
  /** null: the system chooses it. */
  address: string | null;
  throttle: Throttle;
  /** Attempts that run through it, and slots promised to acceptances. */
  taken: number;
  /** Ready queues that found it full. */
  waiting: Set<Queue>;
  /** Ready queues that wait for a token of it, in the order in which they get one. */
  late: Set<Queue>;
  /** When the last attempt was begun, on the monotonic clock. */
  begunAt: number;
  /** How long an attempt takes there, milliseconds, the last ones counting most; null: none has ended. */
  attemptMs: number | null;
}

/** One address that a ready queue may send from, its limiter, and its turn among the queue's addresses. */
export interface EgressSlot<Queue> extends Turn {
  source: Source;
  limiter: EgressLimiter<Queue>;
  /** Of an address that warms up. */
  cap: WarmupCap | null;
}

/** The slot of one attempt. */
export interface TakenSlot<Queue> {
  source: Source;
  limiter: EgressLimiter<Queue>;
  /** On the monotonic clock. */
  since: number;
  /** What the attempt counts at an address that warms up. */
  warmup: WarmupSend | null;
}

/** What one address may do at a group now. */
export interface LimiterState extends ThrottleState {
  group: string;
  address: string | null;
  /** Attempts that run through it, and slots promised to acceptances. */
  taken: number;
}

/** Where attempts run, and where a receiver has slowed us down. */
export interface EgressNow {
  running: Pick<LimiterState, "group" | "address" | "taken">[];
  /** Those that were slowed down last, the latest first. */
  slowed: LimiterState[];
}

export interface Egress<Queue> {
  /** A slot at each of these addresses, for a group. */
  slots(sources: readonly Source[], group: string): EgressSlot<Queue>[];
  /** Takes a slot and its token at the address whose turn it is; null: none may begin now. */
  take(slots: readonly EgressSlot<Queue>[]): TakenSlot<Queue> | null;
  /** The same at any address that has room, by the weights. */
  takeAny(slots: readonly EgressSlot<Queue>[]): TakenSlot<Queue> | null;
  /** Milliseconds until `take` may find one, as far as no attempt ends before. */
  waitMs(slots: readonly EgressSlot<Queue>[]): number;
  /** Frees the slot. `reached`: a server was connected. */
  leave(slot: TakenSlot<Queue>, reached: boolean): void;
  /** The limits are others from now on. */
  reshape(): void;
  /** The limiters of the groups that `of` chooses. */
  states(of: (group: string) => boolean): LimiterState[];
  /** `most`: of the slowed ones. Cheap however many limiters there are. */
  now(most: number): EgressNow;
  readonly size: number;
  /** Forgets the unused limiters that a new one would equal. */
  forget(used: ReadonlySet<EgressLimiter<Queue>>): void;
}

/** How much of the mean the last attempt's time is. */
const lastCounts = 1 / 8;

export interface EgressDeps {
  shaping: Shaping;
  warmups: Pick<WarmupCounts, "capAt" | "takeBack">;
  clock: Clock;
  /** [0, 1): which of a pool's addresses is the first. */
  random(): number;
}

export function createEgress<Queue>({ shaping, warmups, clock, random }: EgressDeps): Egress<Queue> {
  const limiters = new Map<string, EgressLimiter<Queue>>();
  const limiterOf = (address: string | null, group: string): EgressLimiter<Queue> => {
    const key = address === null ? group : `${group} ${address}`;
    let limiter = limiters.get(key);
    if (!limiter) {
      const throttle = createThrottle(shaping.limits(group), clock);
      limiter = {
        group,
        address,
        throttle,
        taken: 0,
        waiting: new Set(),
        late: new Set(),
        begunAt: 0,
        attemptMs: null,
      };
      limiters.set(key, limiter);
    }
    return limiter;
  };
  const taken = ({ source, limiter, cap }: EgressSlot<Queue>): TakenSlot<Queue> | null => {
    if (isFull(limiter) || !limiter.throttle.take()) return null;
    limiter.taken += 1;
    limiter.begunAt = clock.monotonic();
    return { source, limiter, since: limiter.begunAt, warmup: cap?.count() ?? null };
  };
  return {
    slots: (sources, group) =>
      firstTurns(sources, random).map(({ of, ...turn }) => ({
        ...turn,
        source: of,
        limiter: limiterOf(of.address, group),
        cap: warmups.capAt(of, providerOf(group)),
      })),
    take(all) {
      const slots = eligible(all);
      const [only] = slots;
      const slot = slots.length < 2 ? only : nextTurn(slots, clock.monotonic()).slot;
      const got = slot ? taken(slot) : null;
      if (!got || !slot || all.length < 2) return got;
      // An address that had reached its cap makes up for nothing when it comes back.
      if (slots !== all) for (const one of all) if (isAtCap(one)) one.turn = Math.max(one.turn, slot.turn);
      slot.turn += 1 / shareOf(slot);
      return got;
    },
    takeAny(slots) {
      const slot = openTurn(slots);
      return slot && taken(slot);
    },
    waitMs(all) {
      const slots = eligible(all);
      const [only] = slots;
      if (!only) return longestWaitMs;
      const waitMs =
        slots.length < 2 ? only.limiter.throttle.waitMs() : nextTurn(slots, clock.monotonic()).waitMs;
      return Math.min(waitMs, longestWaitMs);
    },
    leave({ limiter, since, warmup }, reached) {
      if (warmup !== null && !reached) warmups.takeBack(warmup);
      limiter.taken -= 1;
      const tookMs = clock.monotonic() - since;
      limiter.attemptMs ??= tookMs;
      limiter.attemptMs += (tookMs - limiter.attemptMs) * lastCounts;
    },
    reshape() {
      for (const { throttle, group } of limiters.values()) throttle.reshape(shaping.limits(group));
    },
    states: (of) => [...limiters.values()].filter(({ group }) => of(group)).map(stateOf),
    now(most) {
      const running: EgressNow["running"] = [];
      const slowed: { limiter: EgressLimiter<Queue>; at: number }[] = [];
      for (const limiter of limiters.values()) {
        const { group, address, taken, throttle } = limiter;
        if (taken > 0) running.push({ group, address, taken });
        const at = throttle.slowedAt();
        if (at !== null) slowed.push({ limiter, at });
      }
      // Of tens of thousands only those are sorted as objects that are shown.
      const since =
        Float64Array.from(slowed, ({ at }) => at)
          .sort()
          .at(-most) ?? 0;
      const latest = slowed
        .filter(({ at }) => at >= since)
        .sort((a, b) => b.at - a.at)
        .slice(0, most)
        .map(({ limiter }) => stateOf(limiter));
      return { running, slowed: latest.filter((state) => state.slowed !== null) };
    },
    get size() {
      return limiters.size;
    },
    forget(used) {
      for (const [key, limiter] of limiters)
        if (limiter.taken === 0 && !used.has(limiter) && limiter.throttle.isIdle()) limiters.delete(key);
    },
  };
}

function stateOf<Queue>({ group, address, taken, throttle }: EgressLimiter<Queue>): LimiterState {
  return { group, address, taken, ...throttle.state() };
}

export const isFull = <Queue>({ taken, throttle }: EgressLimiter<Queue>): boolean =>
  taken >= throttle.limit();

/** Those that have not reached their cap of the day. */
export function underCap<Queue>(slots: readonly EgressSlot<Queue>[]): readonly EgressSlot<Queue>[] {
  return slots.some(isAtCap) ? slots.filter((slot) => !isAtCap(slot)) : slots;
}

/** Those that mail may leave from: where all have reached their cap, what is old enough goes over it. */
export function eligible<Queue>(slots: readonly EgressSlot<Queue>[]): readonly EgressSlot<Queue>[] {
  const under = underCap(slots);
  return under.length > 0 ? under : slots;
}

const isAtCap = <Queue>({ cap }: EgressSlot<Queue>): boolean => cap?.isReached() === true;

/** How many more attempts may start at once. */
export function freeSlots<Queue>(slots: readonly EgressSlot<Queue>[]): number {
  let free = 0;
  for (const { limiter } of slots) free += Math.max(0, limiter.throttle.limit() - limiter.taken);
  return free;
}

const longestWaitMs = 60_000;

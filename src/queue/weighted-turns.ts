// Whose turn it is among a pool's addresses at one group of destinations. Each sends its weight's share of the mail, also
// where every address has a backlog: an address that has no room is waited for, and the others run ahead of it by a few
// messages only. It loses its turn once it has begun no attempt for a while, in which the others would have begun some, so
// that an address whose attempts hang does not stop the pool; it makes up for none of the turns that it lost. While a
// receiver slows an address down (throttle.ts), its share is smaller by as much, and the others' speed stays.
import { chooseByWeight } from "../pools/sources.ts";
import type { Throttle } from "./throttle.ts";

export interface Turn {
  weight: number;
  /** Messages sent so far, over the address's share: the least is next. */
  turn: number;
}

interface Place extends Turn {
  limiter: { throttle: Throttle; taken: number; begunAt: number; attemptMs: number | null };
}

/** Messages of the pool that an address may be ahead of its share. */
const leadMost = 16;
/** How long an address that has no room is waited for: until about four attempts of the fastest address would have ended there. */
const attemptsWaited = 4;
const leastPatienceMs = 500;
const mostPatienceMs = 10_000;

/** The first is drawn by weight, and the others stand anywhere within their share, so that many destinations with one message each get it too. */
export function firstTurns<T extends { weight: number }>(
  all: readonly T[],
  random: () => number,
): { of: T; weight: number; turn: number }[] {
  const first = all.length < 2 ? all[0] : chooseByWeight(all, random());
  return all.map((of) => ({ of, weight: of.weight, turn: of === first ? 0 : random() / of.weight }));
}

/** What is left of its weight while the receiver slows it down. */
export const shareOf = ({ weight, limiter }: Place): number => weight * limiter.throttle.factor();

/** The address that is next, if it may begin an attempt now; else in how many milliseconds one may, as far as none ends before. */
export function nextTurn<T extends Place>(
  places: readonly T[],
  now: number,
): { slot: T; waitMs: 0 } | { slot: null; waitMs: number } {
  const fastestMs = Math.min(...places.map(({ limiter }) => limiter.attemptMs ?? Infinity));
  let next: T | null = null;
  let least = Infinity;
  let shares = 0;
  let waitMs = Infinity;
  const passed: T[] = [];
  for (const place of places) {
    const busyMs = roomInMs(place, fastestMs, now);
    if (busyMs === null) {
      passed.push(place);
      continue;
    }
    least = Math.min(least, place.turn);
    shares += shareOf(place);
    if (busyMs > 0) waitMs = Math.min(waitMs, busyMs);
    else if (next === null || place.turn < next.turn) next = place;
  }
  if (next === null) return { slot: null, waitMs };
  for (const place of passed) place.turn = Math.max(place.turn, least);
  return next.turn - least > leadMost / shares ? { slot: null, waitMs } : { slot: next, waitMs: 0 };
}

/** 0: an attempt may begin; else how long it is waited for; null: no longer. */
function roomInMs({ limiter }: Place, fastestMs: number, now: number): number | null {
  const { throttle, taken, begunAt } = limiter;
  const limit = throttle.limit();
  if (taken < limit) return throttle.waitMs();
  const gapMs = fastestMs === Infinity ? 0 : fastestMs / limit;
  const patienceMs = Math.min(mostPatienceMs, Math.max(leastPatienceMs, attemptsWaited * gapMs));
  const left = begunAt + patienceMs - now;
  return left > 0 ? left : null;
}

/** The next of those that have room, though it be another's turn. */
export function openTurn<T extends Place>(places: readonly T[]): T | null {
  let next: T | null = null;
  for (const place of places) {
    const { throttle, taken } = place.limiter;
    if (taken >= throttle.limit() || throttle.waitMs() > 0) continue;
    if (next === null || place.turn < next.turn) next = place;
  }
  return next;
}

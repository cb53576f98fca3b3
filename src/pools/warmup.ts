// The warm-up of an address: receivers trust an address by what they have seen from it, so a new one begins with a few
// messages a day and each provider, and doubles every second day. After thirty days it has no cap. Pure; the counts:
// warmup-counts.ts. Days are those of UTC.
import { dayMs, hourMs, minuteMs } from "../clock.ts";
import { providers } from "../mail/providers.ts";

export const warmupDays = 30;
const doublesInDays = 2;

/** Messages on the first day to each provider; `default`: to all other receivers together. */
const firstDayMost = 50;
const counted = [...providers.map(({ name }) => name), "default"];

/** A smart host is the operator's own: no receiver sees the address. */
const uncounted = new Set(["smart-host"]);

/** Mail that waits for a cap is looked at again after this, since an address that is warm may have come meanwhile. */
const lookAgainMs = hourMs;
const longestWaitMs = 6 * hourMs;

/** The row that a group of MX hosts counts at; null: it is not counted. */
export function providerOf(group: string): string | null {
  if (uncounted.has(group)) return null;
  return counted.includes(group) ? group : "default";
}

/** Days since 1970-01-01 UTC. */
export const dayOf = (at: number): number => Math.floor(at / dayMs);

/** The first is day 1. */
export const warmupDayOf = (startedAt: number, at: number): number => dayOf(at) - dayOf(startedAt) + 1;

export const isWarming = (startedAt: number | null, at: number): startedAt is number =>
  startedAt !== null && warmupDayOf(startedAt, at) <= warmupDays;

/** Messages that the address may send to the provider on a day of its warm-up; null: no cap. */
export function capOf(provider: string, day: number): number | null {
  if (!counted.includes(provider) || day > warmupDays) return null;
  return Math.round(firstDayMost * 2 ** ((Math.max(1, day) - 1) / doublesInDays));
}

/** Of every provider, on a day on which it warms up. */
export function capsOf(day: number): Record<string, number> {
  return Object.fromEntries(counted.map((provider) => [provider, capOf(provider, day) ?? 0]));
}

/** A warm-up that began before is over. */
export const overBefore = (at: number): number => (dayOf(at) - warmupDays + 1) * dayMs;

/** A message waits for a cap no longer than this, six hours after it was accepted, or a quarter of the time that it is tried. */
export const capWaitEnd = (queuedAt: number, maxAgeMs: number): number =>
  queuedAt + Math.min(longestWaitMs, maxAgeMs / 4);

/**
 * Until when a message waits where every address of its pool has reached its cap: for the next day, looked at again each
 * hour. null: it waits no longer and goes over the cap.
 */
export function capWaitUntil(queuedAt: number, maxAgeMs: number, now: number): number | null {
  const overAt = capWaitEnd(queuedAt, maxAgeMs);
  if (overAt <= now) return null;
  const until = Math.min(overAt, (dayOf(now) + 1) * dayMs, now + lookAgainMs);
  return Math.ceil(until / minuteMs) * minuteMs; // mail of one minute goes back in one write
}

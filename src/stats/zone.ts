// Calendar days in a time zone, as the zone's clocks show them: a day of 23 or 25 hours where they are changed, one that
// begins at 01:00 where midnight is skipped. Every zone's offset is whole quarters of an hour in the years
// that can be requested, so every day, and every hour, begins at one.
import { dayMs, hourMs } from "../clock.ts";
import { quarterMs } from "../model/statistics.ts";

export interface Zone {
  name: string;
  /** What its clocks show at a moment, as if that were UTC. */
  local(at: number): number;
}

/** null: the IANA time zone database has no such name. */
export function zoneOf(name: string): Zone | null {
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/.test(name)) return null;
  if (name === "UTC") return { name, local: (at) => at };
  let format: Intl.DateTimeFormat;
  try {
    const numeric = { year: "numeric", month: "numeric", day: "numeric" } as const;
    const time = { hour: "numeric", minute: "numeric", hourCycle: "h23" } as const;
    format = new Intl.DateTimeFormat("en-US", { ...numeric, ...time, timeZone: name });
  } catch {
    return null;
  }
  /** Minutes are enough: an offset has no seconds. */
  const local = (at: number): number => {
    const minute = Math.floor(at / 60_000) * 60_000;
    const [month = 1, day = 1, year = 0, hour = 0, minutes = 0] = format
      .format(minute)
      .split(/\D+/)
      .map(Number);
    return Date.UTC(year, month - 1, day, hour, minutes) + (at - minute);
  };
  return { name, local };
}

/** Days since 1970-01-01, of the date that the zone's clocks show. */
export function dateAt(zone: Zone, at: number): number {
  return Math.floor(zone.local(at) / dayMs);
}

/** The first moment of a date. */
export function startOfDate(zone: Zone, date: number): number {
  const midnight = date * dayMs;
  const offset = (at: number): number => zone.local(at) - at;
  const guess = midnight - offset(midnight - offset(midnight));
  if (dateAt(zone, guess) === date && dateAt(zone, guess - quarterMs) < date) return guess;
  // Midnight is skipped, or comes twice: the first quarter that shows the date, or a later one.
  let [before, there] = [midnight - dayMs, midnight + dayMs];
  while (there - before > quarterMs) {
    const middle = before + Math.floor((there - before) / 2 / quarterMs) * quarterMs;
    if (dateAt(zone, middle) < date) before = middle;
    else there = middle;
  }
  return there;
}

export const granularities = ["hour", "day", "week", "month"] as const;
export type Granularity = (typeof granularities)[number];

/** The start of the period that contains a moment: an hour, a day, a week from Monday (ISO 8601), a month. */
export function periodStart(zone: Zone, granularity: Granularity, at: number): number {
  if (granularity === "hour") return at - (zone.local(at) % hourMs);
  return startOfDate(zone, firstDate(granularity, dateAt(zone, at)));
}

/** The start of the next period. */
export function nextPeriod(zone: Zone, granularity: Granularity, at: number): number {
  if (granularity === "hour") return at + hourMs - (zone.local(at) % hourMs);
  const first = firstDate(granularity, dateAt(zone, at));
  return startOfDate(zone, dateAfter(granularity, first));
}

function firstDate(granularity: Exclude<Granularity, "hour">, date: number): number {
  if (granularity === "day") return date;
  if (granularity === "week") return date - ((date + 3) % 7); // 1970-01-01 was a Thursday
  return date - (new Date(date * dayMs).getUTCDate() - 1);
}

function dateAfter(granularity: Exclude<Granularity, "hour">, first: number): number {
  if (granularity === "day") return first + 1;
  if (granularity === "week") return first + 7;
  const day = new Date(first * dayMs);
  return Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1) / dayMs;
}

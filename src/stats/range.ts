// The time range of a statistics request. `from` and `to` are dates in the requested time zone, or moments; both are
// widened to quarters of an hour, the finest unit of the counters. The default is the last thirty days including today.
// Quarters are kept for 90 days: an older bound becomes the start of the same date in UTC.
import { dayMs } from "../clock.ts";
import { Refusal } from "../errors.ts";
import { quarterMs, quartersKeptDays } from "../model/statistics.ts";
import { dateAt, nextPeriod, periodStart, startOfDate, zoneOf, type Granularity, type Zone } from "./zone.ts";

/** A date (days since 1970-01-01) or a moment (milliseconds), as the question names it. */
export type Bound = { date: number } | { at: number };

export interface Range {
  zone: Zone;
  from: number;
  to: number;
}

const standardDays = 30;
export const mostPoints = 1000;

/** Throws Refusal invalid_request. */
export function rangeOf(
  asked: { from?: Bound | undefined; to?: Bound | undefined; timezone: string },
  now: number,
): Range {
  const zone = zoneOf(asked.timezone);
  if (!zone) throw invalid("timezone", "is not the name of a time zone, like Europe/Berlin");
  const to = asked.to
    ? momentOf(zone, asked.to, now, "up")
    : kept(zone, startOfDate(zone, dateAt(zone, now) + 1), now, "up");
  const from = asked.from
    ? momentOf(zone, asked.from, now, "down")
    : kept(zone, startOfDate(zone, dateAt(zone, to - 1) + 1 - standardDays), now, "down");
  if (from < to) return { zone, from, to };
  throw invalid(asked.to ? "to" : "from", asked.to ? "is not after from" : "is not before the end of today");
}

/** The starts of a range's periods, and the bounds between which each is counted: at the edges a part of one. */
export function periodsOf(
  { zone, from, to }: Range,
  granularity: Granularity,
  now: number,
): { starts: number[]; bounds: number[] } {
  if (granularity === "hour" && from < finelyKeptSince(now))
    throw invalid("granularity", `hour goes back ${quartersKeptDays} days at most`);
  const starts: number[] = [];
  const bounds: number[] = [];
  for (let at = periodStart(zone, granularity, from); ; at = nextPeriod(zone, granularity, at)) {
    const start = kept(zone, at, now, "down");
    if (start >= to) break;
    if (starts.length === mostPoints)
      throw invalid("granularity", `makes more than ${mostPoints} points of this range`);
    starts.push(start);
    bounds.push(Math.max(start, from));
  }
  bounds.push(to);
  return { starts, bounds };
}

function momentOf(zone: Zone, bound: Bound, now: number, direction: "up" | "down"): number {
  if ("date" in bound) return kept(zone, startOfDate(zone, bound.date), now, direction);
  const quarters = bound.at / quarterMs;
  const at = (direction === "up" ? Math.ceil(quarters) : Math.floor(quarters)) * quarterMs;
  return kept(zone, at, now, direction);
}

const finelyKeptSince = (now: number): number => (Math.floor(now / dayMs) - quartersKeptDays) * dayMs;

function kept(zone: Zone, at: number, now: number, direction: "up" | "down"): number {
  if (at >= finelyKeptSince(now)) return at;
  const date = dateAt(zone, at);
  const partly = direction === "up" && at > startOfDate(zone, date);
  return (partly ? date + 1 : date) * dayMs;
}

export function invalid(field: string, issue: string): Refusal {
  return new Refusal("invalid_request", `${field}: ${issue}`, { field });
}

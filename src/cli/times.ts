// Moments and spans on the command line: RFC 3339, a day, `15m`, `90d`, `yesterday`.
import { parseSpan } from "../config/span.ts";
import { isoTime, type Clock } from "../clock.ts";
import { usage } from "./fault.ts";

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;

/** ISO time of what a person wrote. A span counts back from now for `past`, on from now for `future`; a day begins at local midnight. */
export function moment(text: string, flag: string, direction: "past" | "future", nowMs: number): string {
  const span = parseSpan(text);
  if (span !== null) return isoTime(direction === "past" ? nowMs - span : nowMs + span);
  if (text === "now") return isoTime(nowMs);
  if (text === "today" || text === "yesterday") {
    const day = new Date(nowMs);
    day.setHours(0, 0, 0, 0);
    if (text === "yesterday") day.setDate(day.getDate() - 1);
    return day.toISOString();
  }
  const day = /^\d{4}-\d\d-\d\d$/.test(text);
  const ms = day
    ? Date.parse(`${text}T00:00:00`)
    : rfc3339.test(text)
      ? Date.parse(text.replace(" ", "T"))
      : NaN;
  if (Number.isFinite(ms)) return isoTime(ms);
  const spans =
    direction === "past" ? ", a span (15m, 24h, 90d) or yesterday" : " or a span from now (15m, 24h, 90d)";
  throw usage(`${flag}: found "${text}", expected a time (2026-12-01T08:00:00Z, 2026-12-01)${spans}`);
}

/** Milliseconds of a span. */
export function spanMs(text: string, flag: string): number {
  const span = parseSpan(text);
  if (span === null) throw usage(`${flag}: found "${text}", expected a span such as 30s, 5m or 2h`);
  return span;
}

export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

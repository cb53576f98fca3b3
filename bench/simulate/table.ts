// The days as Markdown tables, and the backlog over time as lines of characters.
import { hourMs, minuteMs } from "../../src/clock.ts";
import { attemptsOf, sampleMs, type Day, type Row } from "./ledger.ts";
import { dayEndMs } from "./traffic.ts";

export interface Played {
  addresses: number;
  warmupDay: number | null;
  day: Day;
}

interface Column<Of> {
  head: string;
  value(of: Of): string;
}

const whole = (value: number): string => Math.round(value).toLocaleString("en-US");
const percent = (part: number, all: number): string =>
  all === 0 ? "-" : `${((100 * part) / all).toFixed(1)} %`;

/** Two figures: `40 s`, `12 min`, `3.4 h`. */
export function spanOf(ms: number): string {
  if (ms < minuteMs) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 2 * hourMs) return `${Math.round(ms / minuteMs)} min`;
  return `${(ms / hourMs).toFixed(1)} h`;
}

export const countOf = (addresses: number): string =>
  addresses === 1 ? "1 address" : `${addresses} addresses`;

const timeOfDay = (ms: number): string => {
  const minutes = Math.round(ms / minuteMs);
  const day = minutes >= 24 * 60 ? `+${Math.floor(minutes / (24 * 60))}d ` : "";
  return `${day}${String(Math.floor(minutes / 60) % 24).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
};

function drained(row: Row): string {
  if (row.left > 0) return "not";
  return row.drainedAt <= dayEndMs ? "in the day" : `+ ${spanOf(row.drainedAt - dayEndMs)}`;
}

function peakOf(samples: readonly number[]): { most: number; at: number } {
  let [most, at] = [0, 0];
  for (const [i, here] of samples.entries()) if (here > most) [most, at] = [here, i * sampleMs];
  return { most, at };
}

const columns: Column<Row>[] = [
  { head: "accepted", value: (row) => whole(row.accepted) },
  { head: "bounced", value: (row) => whole(row.bounced) },
  { head: "expired", value: (row) => whole(row.expired) },
  { head: "retries", value: (row) => whole(row.retries) },
  { head: "greylisted", value: (row) => whole(row.attempts.greylisted) },
  { head: "timed out", value: (row) => whole(row.attempts.timed_out) },
  { head: "refused", value: (row) => whole(row.attempts.rate_limited) },
  { head: "of attempts", value: (row) => percent(row.attempts.rate_limited, attemptsOf(row)) },
  { head: "most backlog", value: (row) => whole(peakOf(row.backlog).most) },
  { head: "at", value: (row) => timeOfDay(peakOf(row.backlog).at) },
  { head: "p50", value: (row) => spanOf(row.delays.p50) },
  { head: "p95", value: (row) => spanOf(row.delays.p95) },
  { head: "p99", value: (row) => spanOf(row.delays.p99) },
  { head: "drained", value: drained },
];

/** A table of one day, a line a provider. */
export function tableOf({ addresses, day }: Played): string {
  const named = [...day.rows, { name: "**all**", row: day.total }];
  const lines = named.map(({ name, row }) => [name, ...columns.map(({ value }) => value(row))]);
  return [`### ${countOf(addresses)}`, "", markdown(["", ...columns.map(({ head }) => head)], lines)].join(
    "\n",
  );
}

/** A cap is a provider's. */
const slowestP95 = ({ rows }: Day): number => Math.max(...rows.map(({ row }) => row.delays.p95));

const warmupColumns: Column<Played>[] = [
  { head: "addresses", value: ({ addresses }) => whole(addresses) },
  { head: "day of the warm-up", value: ({ warmupDay }) => (warmupDay === null ? "warm" : whole(warmupDay)) },
  { head: "accepted", value: ({ day }) => whole(day.total.accepted) },
  { head: "over the cap", value: ({ day }) => whole(day.total.overCap) },
  { head: "of attempts", value: ({ day }) => percent(day.total.overCap, attemptsOf(day.total)) },
  { head: "most backlog", value: ({ day }) => whole(peakOf(day.total.backlog).most) },
  { head: "p50", value: ({ day }) => spanOf(day.total.delays.p50) },
  { head: "p95", value: ({ day }) => spanOf(day.total.delays.p95) },
  { head: "p95 of the slowest provider", value: ({ day }) => spanOf(slowestP95(day)) },
  { head: "expired", value: ({ day }) => whole(day.total.expired) },
];

/** A table of warm-ups, a line a day. */
export function warmupTableOf(all: readonly Played[]): string {
  const lines = all.map((played) => warmupColumns.map(({ value }) => value(played)));
  return markdown(
    warmupColumns.map(({ head }) => head),
    lines,
  );
}

function markdown(head: readonly string[], lines: readonly string[][]): string {
  const widths = head.map((cell, i) => Math.max(cell.length, ...lines.map((line) => line[i]?.length ?? 0)));
  const lineOf = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(" | ")} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [lineOf(head), rule, ...lines.map(lineOf)].join("\n");
}

const levels = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/** The backlog of each provider, a character an hour, each line to its own scale. */
export function linesOf({ addresses, day }: Played): string {
  const hours = Math.min(96, Math.ceil(lastWaiting(day) / hourMs) + 1);
  const perHour = hourMs / sampleMs;
  const lines = [...day.rows, { name: "all", row: day.total }].map(({ name, row }) => {
    const { most } = peakOf(row.backlog);
    const marks = Array.from({ length: hours }, (_, hour) => {
      const here = Math.max(0, ...row.backlog.slice(hour * perHour, (hour + 1) * perHour));
      return here === 0 ? " " : levels[Math.min(7, Math.floor((8 * here) / (most + 1)))];
    });
    return `  ${name.padEnd(10)} ${marks.join("")} ${whole(most)}`;
  });
  return [`Backlog by the hour, ${countOf(addresses)}; the most of each line at its end:`, ...lines].join(
    "\n",
  );
}

/** The last time at which a hundredth of the day's mail waits, at least the day's end; milliseconds from midnight. */
export function lastWaiting({ total }: Day): number {
  const last = total.backlog.findLastIndex((here) => here * 100 >= total.accepted);
  return Math.max(dayEndMs, (last + 1) * sampleMs);
}

// What the statistics are read as: sums of one row over stretches of time, and all rows of a list over one stretch.
// Whole UTC days come from the days' rows, what is left at the edges from their quarters of an hour. A question about
// a list looks at a month of days at most, so that no other waits long for the reader's thread: its caller
// (stats-calls.ts) asks piece by piece.
import type { Database, Statement } from "better-sqlite3";
import { addCounts, counterColumns, dayOfQuarter, noCounts, quartersADay } from "../counters.ts";
import type { Counts, StatsRow } from "../counters.ts";
import { rowKeyOf, quarterCounts } from "../day-counts.ts";
import type { QuarterCounts } from "../day-counts.ts";

/** Which days there are rows of, the first and the last. */
export interface StatsDays {
  first: number;
  last: number;
}

/** A stretch of quarters of an hour, the end left out. */
export interface QuarterRange {
  from: number;
  to: number;
}

type RowKey = ReturnType<typeof rowKeyOf>;

export function createStatsViews(db: Database) {
  const rowIs = "account_key = ? AND test = ? AND kind = ? AND scope = ? AND scope_key = ?";
  const counters = counterColumns.join(", ");
  const sums = counterColumns.map((name) => `sum(${name})`).join(", ");
  const first: Statement<[], { day: number }> = db.prepare(
    "SELECT day FROM stats_days WHERE day > 0 ORDER BY day LIMIT 1",
  );
  const last: Statement<[], { day: number }> = db.prepare(
    "SELECT day FROM stats_days WHERE day > 0 ORDER BY day DESC LIMIT 1",
  );
  const day = db
    .prepare<[...RowKey, string], Counts>(
      `SELECT ${counters} FROM stats_days WHERE day = ? AND ${rowIs} AND key = ?`,
    )
    .raw();
  const quarters: Statement<[...RowKey, string], { counts: string }> = db.prepare(
    `SELECT counts FROM stats_quarters WHERE day = ? AND ${rowIs} AND key = ?`,
  );
  const list = db
    .prepare<[string, number, number, number, number, string], [string, ...Counts]>(
      `SELECT d.key, ${sums} FROM json_each(?) j CROSS JOIN stats_days d
       ON d.day = j.value AND d.account_key = ? AND d.test = ? AND d.kind = ? AND d.scope = ? AND d.scope_key = ? GROUP BY d.key`,
    )
    .raw();
  const listQuarters: Statement<RowKey, { key: string; counts: string }> = db.prepare(
    `SELECT key, counts FROM stats_quarters WHERE day = ? AND ${rowIs}`,
  );

  return {
    /** null: nothing was ever counted. */
    statsDays(_arg: null): StatsDays | null {
      const [from, to] = [first.get(), last.get()];
      return from && to ? { first: from.day, last: to.day } : null;
    },

    /** The sums between each two neighbours of `bounds`, ascending quarters. */
    statsSums(arg: { of: StatsRow; bounds: number[]; days: StatsDays }): Counts[] {
      const { of, bounds, days } = arg;
      // Neighbours share the day that parts them, and a day of hours has many.
      let parted: { at: number; counts: Map<number, Counts> } | null = null;
      const quartersOf = (at: number): Map<number, Counts> => {
        if (parted?.at !== at)
          parted = { at, counts: readQuarters(quarters.get(...rowKeyOf(at, of), of.key)?.counts) };
        return parted.counts;
      };
      const sumOf = ({ from, to }: QuarterRange): Counts => {
        const sum = noCounts();
        for (const { at, whole, begin, end } of daysOf({ from, to }, days)) {
          if (whole) addCounts(sum, day.get(...rowKeyOf(at, of), of.key) ?? []);
          else addWithin(sum, quartersOf(at), begin, end);
        }
        return sum;
      };
      return bounds.slice(1).map((to, i) => sumOf({ from: bounds[i] ?? to, to }));
    },

    /** Every key of a list with its sums. */
    statsList(arg: {
      of: Omit<StatsRow, "key">;
      stretch: QuarterRange;
      days: StatsDays;
    }): [string, Counts][] {
      const { of } = arg;
      const found = new Map<string, Counts>();
      const parts = daysOf(arg.stretch, arg.days);
      const whole = parts.filter((part) => part.whole).map(({ at }) => at);
      const [, ...rowKey] = rowKeyOf(0, of);
      for (const [key, ...counts] of list.all(JSON.stringify(whole), ...rowKey)) found.set(key, counts);
      for (const { at, begin, end } of parts.filter((part) => !part.whole))
        for (const { key, counts } of listQuarters.all(...rowKeyOf(at, of))) {
          const sum = found.get(key) ?? noCounts();
          if (addWithin(sum, readQuarters(counts), begin, end)) found.set(key, sum);
        }
      return [...found];
    },
  };
}

/** The days that a stretch touches, as far as there are any: whole ones, and which quarters of the others. */
function daysOf(
  { from, to }: QuarterRange,
  days: StatsDays,
): { at: number; whole: boolean; begin: number; end: number }[] {
  const parts = [];
  const [start, stop] = [Math.max(dayOfQuarter(from), days.first), Math.min(dayOfQuarter(to - 1), days.last)];
  for (let at = start; at <= stop; at++) {
    const begin = Math.max(0, from - at * quartersADay);
    const end = Math.min(quartersADay, to - at * quartersADay);
    parts.push({ at, whole: begin === 0 && end === quartersADay, begin, end });
  }
  return parts;
}

function readQuarters(text: string | undefined): Map<number, Counts> {
  return quarterCounts(text === undefined ? [] : (JSON.parse(text) as QuarterCounts[]));
}

/** False: none of the quarters is within. */
function addWithin(sum: Counts, quarters: Map<number, Counts>, begin: number, end: number): boolean {
  let found = false;
  for (const [quarter, counts] of quarters) {
    if (quarter < begin || quarter >= end) continue;
    addCounts(sum, counts);
    found = true;
  }
  return found;
}

// Counts of a UTC day, as statistics keep them: a row for each thing that is counted, with its quarters of an hour.
import { addCounts, dayOfQuarter, quartersADay, rowsOf } from "./counters.ts";
import type { Counts, StatsRow } from "./counters.ts";
import { countsOfPairs, pairsOf } from "./quarter-counts.ts";
import type { CountsOfQuarter } from "./quarter-counts.ts";

/** Counts of one quarter as they are kept: [quarter of the day, counter, n, counter, n, …]. */
export type QuarterCounts = [quarter: number, ...pairs: number[]];

export type RowKey = [
  day: number,
  accountKey: number,
  test: number,
  kind: number,
  scope: number,
  scopeKey: string,
];

/** A DayRow as it is kept between two pieces. */
export type SortedRow = [rowKey: RowKey, key: string, quarters: QuarterCounts[]];

export interface DayRow {
  rowKey: RowKey;
  key: string;
  quarters: Map<number, Counts>;
}

/** Adds the counts of a quarter to every row that they are counted in. */
export function expand(rows: Map<string, DayRow>, { facts, quarter, counts }: CountsOfQuarter): void {
  const day = dayOfQuarter(quarter);
  for (const row of rowsOf(facts)) {
    const name = `${day} ${row.accountKey} ${row.test} ${row.kind} ${row.scope} ${row.scopeKey}\n${row.key}`;
    let found = rows.get(name);
    if (!found) rows.set(name, (found = { rowKey: rowKeyOf(day, row), key: row.key, quarters: new Map() }));
    addTo(found.quarters, quarter - day * quartersADay, counts);
  }
}

function addTo(quarters: Map<number, Counts>, quarter: number, counts: Counts): void {
  const old = quarters.get(quarter);
  if (old) addCounts(old, counts);
  else quarters.set(quarter, [...counts]);
}

/** By the number of the quarter within its day. */
export function addAll(to: Map<number, Counts>, quarters: Map<number, Counts>): void {
  for (const [quarter, counts] of quarters) addTo(to, quarter, counts);
}

export function rowKeyOf(day: number, row: Omit<StatsRow, "key">): RowKey {
  return [day, row.accountKey, row.test, row.kind, row.scope, row.scopeKey];
}

/** The quarters of a day's row, by their number within the day. */
export function quarterCounts(kept: QuarterCounts[]): Map<number, Counts> {
  return new Map(kept.map(([quarter, ...pairs]) => [quarter, countsOfPairs(pairs)]));
}

export function quartersOf(quarters: Map<number, Counts>): QuarterCounts[] {
  const sorted = [...quarters].toSorted(([a], [b]) => a - b);
  return sorted.map(([quarter, counts]) => [quarter, ...pairsOf(counts)]);
}

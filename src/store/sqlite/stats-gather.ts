// CounterMasks on the hot path: what a batch of calls counts is summed in memory and written as a row or a few just before
// its COMMIT, so that it stands or falls with what was counted and costs the same whether the batch had one message
// or a thousand. The rows wait there until they are folded into the statistics (stats-fold.ts).
import type { Database } from "better-sqlite3";
import { counterNames } from "../../model/counters.ts";
import { addCounts, noCounts, quarterOf } from "../counters.ts";
import type { Counted, Counts } from "../counters.ts";
import type { Tally } from "../batch-counters.ts";

/** Counts of the same facts in the same quarter of an hour: [facts, quarter, counter, n, counter, n, …]. */
export type WaitingCounts = [facts: string, quarter: number, ...pairs: number[]];

/** So few in a row that folding one row is a short piece of work. */
const entriesARow = 50;

export interface CountsOfQuarter {
  facts: string;
  quarter: number;
  counts: Counts;
}

export function createStatsGather(db: Database, tally: Tally) {
  const insert = db.prepare("INSERT INTO stats_waiting (body) VALUES (?)");
  return {
    /** Writes what the transaction has counted. */
    flush(): void {
      if (tally.counted.length === 0) return;
      const entries = sumsOf(tally.counted).map(entryOf);
      for (let at = 0; at < entries.length; at += entriesARow)
        insert.run(JSON.stringify(entries.slice(at, at + entriesARow)));
      tally.counted.length = 0;
    },
  };
}

export type StatsGather = ReturnType<typeof createStatsGather>;

function sumsOf(counted: Counted[]): CountsOfQuarter[] {
  const sums = new Map<string, CountsOfQuarter>();
  let last: CountsOfQuarter | null = null;
  for (const { facts, at, counters, times } of counted) {
    const quarter = quarterOf(at);
    if (last?.facts !== facts || last.quarter !== quarter)
      last = merge(sums, { facts, quarter, counts: noCounts() });
    raise(last.counts, counters, times);
  }
  return [...sums.values()];
}

/** Adds to the sum of the same facts and quarter, which is answered. */
export function merge(sums: Map<string, CountsOfQuarter>, more: CountsOfQuarter): CountsOfQuarter {
  const name = `${more.quarter}\n${more.facts}`;
  const known = sums.get(name);
  if (known) addCounts(known.counts, more.counts);
  else sums.set(name, more);
  return known ?? more;
}

function raise(counts: Counts, counters: number, times: number): void {
  for (let place = 0; place < counterNames.length; place++)
    if (counters & (1 << place)) counts[place] = (counts[place] ?? 0) + times;
}

function entryOf({ facts, quarter, counts }: CountsOfQuarter): WaitingCounts {
  return [facts, quarter, ...pairsOf(counts)];
}

export function readWaiting([facts, quarter, ...pairs]: WaitingCounts): CountsOfQuarter {
  return { facts, quarter, counts: countsOfPairs(pairs) };
}

/** Counts in short: the places that are not 0, each with its number. */
export function pairsOf(counts: Counts): number[] {
  return counts.flatMap((n, place) => (n === 0 ? [] : [place, n]));
}

export function countsOfPairs(pairs: number[]): Counts {
  const counts = noCounts();
  for (let i = 0; i < pairs.length; i += 2) counts[pairs[i] ?? 0] = pairs[i + 1] ?? 0;
  return counts;
}

// Counting on the hot path: what a batch of calls counts is summed in memory and written as a row or a few just before
// its COMMIT, so that it stands or falls with what was counted and costs the same whether the batch had one message
// or a thousand. The rows wait there until they are folded into the statistics (stats-fold.ts).
import type { Database } from "better-sqlite3";
import { isTest } from "../../model/facts.ts";
import type { Tally } from "../batch-counters.ts";
import { addCounts, noCounts, type Counts } from "../counters.ts";
import { createStatsKeys } from "./stats-keys.ts";
import { entryOf, sumsOf } from "../quarter-counts.ts";

/** So few in a row that folding one row is a short piece of work. */
const entriesARow = 50;

export function createStatsGather(db: Database, tally: Tally) {
  const insert = db.prepare("INSERT INTO stats_waiting (body) VALUES (?)");
  const placed = createStatsKeys(db);
  let sum: Counts | null = null;
  return {
    /** The sum of what the last transaction counted, but for tests; null: nothing. */
    counted: () => sum,
    /** Writes what the transaction has counted. */
    flush(): void {
      sum = null;
      if (tally.counted.length === 0) return;
      const sums = sumsOf(tally.counted, placed);
      for (const { facts, counts } of sums) if (!isTest(facts)) addCounts((sum ??= noCounts()), counts);
      const entries = sums.map(entryOf);
      for (let at = 0; at < entries.length; at += entriesARow)
        insert.run(JSON.stringify(entries.slice(at, at + entriesARow)));
      tally.counted.length = 0;
    },
  };
}

export type StatsGather = ReturnType<typeof createStatsGather>;

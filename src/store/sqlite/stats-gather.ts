// Counting on the hot path: what a batch of calls counts is summed in memory and written as a row or a few just before
// its COMMIT, so that it stands or falls with what was counted and costs the same whether the batch had one message
// or a thousand. The rows wait there until they are folded into the statistics (stats-fold.ts).
import type { Database } from "better-sqlite3";
import type { Tally } from "../batch-counters.ts";
import { entryOf, sumsOf } from "../quarter-counts.ts";

/** So few in a row that folding one row is a short piece of work. */
const entriesARow = 50;

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

// Statistics: counted with what they count (stats-gather.ts), folded (stats-sort.ts, stats-fold.ts), read (stats-views.ts).
// The calls are stats-calls.ts's, which gathers refusals and folds before it reads.
import type { Database, Statement } from "better-sqlite3";
import { everyone, nothing } from "../changes.ts";
import type { Counted } from "../counters.ts";
import type { StatisticsStore } from "../interface/statistics.ts";
import { noun, type Writing } from "./noun.ts";
import { createStatsFold } from "./stats-fold.ts";
import { createStatsSort } from "./stats-sort.ts";
import { createStatsViews } from "./stats-views.ts";

function createCountLookups(db: Database) {
  const counted: Statement<[], { seq: number }> = db.prepare(
    "SELECT seq FROM stats_waiting UNION ALL SELECT seq FROM stats_sorted LIMIT 1",
  );
  // They are numbered without a gap: a fold takes the oldest.
  const waitingCounts: Statement<[], { n: number | null }> = db.prepare(
    "SELECT (SELECT max(seq) FROM stats_waiting) - (SELECT min(seq) FROM stats_waiting) + 1 AS n",
  );
  return {
    /** Something was counted that is not folded yet. */
    countsWait: () => counted.get() !== undefined,
    /** How many rows of it wait to be sorted. */
    countsWaiting: () => waitingCounts.get()?.n ?? 0,
  };
}

export const statistics = noun({
  commands: (db: Database, { tally }: Writing) => ({
    ...createStatsFold(db),
    /** Counts that come with nothing else to write. */
    count(counted: Counted[]): void {
      for (const one of counted) tally.counted.push(one);
    },
  }),
  // A reading shows all that was counted before it, unless the store could not fold that.
  touches: {
    count: (touch) => touch(everyone, "stats"),
    keepSorted: nothing,
    foldStats(touch, { late }) {
      if (late) touch(everyone, "stats");
    },
  },
  lookups: createCountLookups,
  lists: (db: Database) => ({ ...createStatsViews(db), ...createStatsSort(db) }),
  calls: ({ stats }): StatisticsStore => ({
    countRejection: (rejection) => stats.countRejection(rejection),
    statsTotals: (accountKey, range) => stats.statsTotals(accountKey, range),
    statsSums: (of, bounds) => stats.statsSums(of, bounds),
    statsList: (of, range) => stats.statsList(of, range),
    foldStats: () => stats.foldStats(),
  }),
});

// The calls of the statistics. What is counted is written with what it counts; only refusals are counted by a call.
import type { Totals } from "../../model/counters.ts";
import type { Rejection, StatsListOf, StatsOf } from "../../model/statistics.ts";

export interface StatisticsStore {
  /** Counts a refusal, at the latest a second later, together with those of that second. */
  countRejection(rejection: Rejection): void;
  /** What an account counted from `from` until before `to`, both widened to quarters of an hour. Not for every message. */
  statsTotals(accountKey: number, range: { from: number; to: number; test: boolean }): Promise<Totals>;
  /** The sums between each two neighbours of `bounds`, ascending times at quarters of an hour. */
  statsSums(of: StatsOf, bounds: number[]): Promise<Totals[]>;
  /** Every key of a list that was counted from `from` until before `to`, times at quarters of an hour; in no order. */
  statsList(of: StatsListOf, range: { from: number; to: number }): Promise<{ key: string; totals: Totals }[]>;
  /** Sorts what was counted into the rows that statistics are read from. Every reading does it too; done often, it is little. */
  foldStats(): Promise<void>;
}

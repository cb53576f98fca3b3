// The calls about the warm-up of addresses. What they send is counted with the outcome of each attempt: `settle`.
import type { WarmupCount } from "../../model/warmup.ts";

export interface WarmupStore {
  /** What was sent on a day, in days since 1970-01-01 UTC. */
  warmupCounts(day: number): Promise<WarmupCount[]>;
  /** Ends the warm-ups that began before `startedBefore`, and deletes the counts of earlier days than `day`. Answers the addresses. */
  endWarmups(over: { startedBefore: number; day: number; at: number }): Promise<string[]>;
}

// What the writer sums in memory while transactions run; whoever rolls one back puts the old sums back.
import type { Counted } from "./counters.ts";

export interface Tally {
  /** Recipients that wait or are leased: the queue's length, so that no acceptance counts rows. */
  unsent: number;
  /** An event was recorded since this was last cleared. */
  events: boolean;
  /** What is to be counted with the transaction, in its order: taking a call back is cutting off what it added. */
  counted: Counted[];
}

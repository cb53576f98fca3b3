// What the writer sums in memory while transactions run; whoever rolls one back puts the old sums back.

export interface Tally {
  /** Recipients that wait or are leased: the queue's length, so that no acceptance counts rows. */
  unsent: number;
  /** An event was recorded since this was last cleared. */
  events: boolean;
}

// The calls of the queue: claim what is due, release, settle. A claim leases recipients of one scheduled queue to a boot,
// its owner; the attempt number and the lease are on disk before a claim is answered. How long a boot's leases last:
// boots.ts.
import type { QueueCounts, Wait } from "../../model/queue.ts";
import type { Job } from "../../model/queued-recipient.ts";
import type { Settlement } from "../../model/settlement.ts";

export interface QueueStore {
  /** Scheduled queues with waiting recipients, in scheduled queue order from after `afterQueue`, each with its earliest due time. */
  scheduledQueues(afterQueue: string | null, limit: number): Promise<{ queueName: string; dueAt: number }[]>;
  /**
   * Leases what is due in a scheduled queue, oldest first, attempt numbers raised and written. `waits`: times, each after the one
   * before, that do not count towards the age of what was due in them. `nextDueAt`: the scheduled queue's earliest that still waits.
   */
  claimDue(claim: {
    owner: string;
    queueName: string;
    limit: number;
    now: number;
    waits?: readonly Wait[];
  }): Promise<{ jobs: Job[]; nextDueAt: number | null }>;
  /** Puts back what was leased and not tried; the attempt number goes back too. */
  release(owner: string, recipientKeys: number[], dueAt: number): Promise<void>;
  /**
   * At start: what is leased, neither to a living boot nor to one of another node than that of `owner`, becomes due at `now`;
   * answers how many. The attempt that each lease was for is recorded as interrupted, and as ambiguous except in `localQueue`, whose
   * mail stays here.
   */
  takeBackLeases(owner: string, now: number, localQueue: string): Promise<number>;
  /**
   * Outcome, attempt, event, webhook rows, suppression and inbox copy in one transaction. False: nothing was written, since the
   * recipient was final already, or the lease of this attempt is no longer the owner's. A delivery counts all the same: the
   * mail is not to be sent again.
   */
  settle(settlement: Settlement): Promise<boolean>;
  queueCounts(): Promise<QueueCounts>;
}

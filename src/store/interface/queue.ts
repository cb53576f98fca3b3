// The calls of the queue: claim what is due, renew, release, settle. A claim leases recipients of one scheduled queue to one
// owner; the attempt number and the lease are on disk before a claim is answered.
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
    leaseUntil: number;
    waits?: readonly Wait[];
  }): Promise<{ jobs: Job[]; nextDueAt: number | null }>;
  /** Extends every lease of an owner; answers the number of leases held. */
  renewLeases(owner: string, until: number): Promise<number>;
  /** Puts back what was leased and not tried; the attempt number goes back too. */
  release(owner: string, recipientKeys: number[], dueAt: number): Promise<void>;
  /**
   * At start: leases of other owners (`owner` is this boot) and expired ones become due at `now`; answers how many. The
   * attempt that each lease was for is recorded as interrupted, and as ambiguous except in `localQueue`, whose mail stays here.
   */
  takeBackLeases(owner: string, now: number, localQueue: string): Promise<number>;
  /** Outcome, attempt, event, webhook rows, suppression and inbox copy in one transaction. False: the recipient was final already and nothing was written. */
  settle(settlement: Settlement): Promise<boolean>;
  queueCounts(): Promise<QueueCounts>;
}

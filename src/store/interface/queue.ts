// The calls of the queue: claim what is due, renew, release, settle. A claim leases recipients of one lane to one
// owner; the attempt number and the lease are on disk before a claim is answered.
import type { QueueCounts, Wait } from "../../model/queue.ts";
import type { Job } from "../../model/queued-recipient.ts";
import type { Settlement } from "../../model/settlement.ts";

export interface QueueStore {
  /** Lanes that hold waiting recipients, in lane order from after `afterLane`, each with its earliest due time. */
  lanes(afterLane: string | null, limit: number): Promise<{ lane: string; dueAt: number }[]>;
  /**
   * Leases what is due in a lane, oldest first, attempt numbers raised and written. `waits`: times, each after the one
   * before, that do not count towards the age of what was due in them. `nextDueAt`: the lane's earliest that still waits.
   */
  claimDue(claim: {
    owner: string;
    lane: string;
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
   * attempt that each lease was for is recorded as interrupted, and as ambiguous except in `localLane`, whose mail stays here.
   */
  takeBackLeases(owner: string, now: number, localLane: string): Promise<number>;
  /** Outcome, attempt, event, webhook rows, suppression and inbox copy in one transaction. False: the recipient was final already and nothing was written. */
  settle(settlement: Settlement): Promise<boolean>;
  queueCounts(): Promise<QueueCounts>;
}

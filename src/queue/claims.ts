// Leases on disk: due recipients are claimed for a ready queue as it has slots, and what is not sent after all goes back
// to the store.
import type { Log } from "../log.ts";
import type { Job } from "../model/queued-recipient.ts";
import { StoreUnavailable, type Store } from "../store/store.ts";
import type { AddressWaits } from "./address-waits.ts";
import type { ReadyQueue } from "./ready-queues.ts";
import type { ScheduledQueues } from "./scheduled-queues.ts";
import { logStoreFault, type Writes } from "./writes.ts";

export interface Claims {
  /** Claims from the first due scheduled queue as many as `room` and the attempts that run call for; false: nothing was asked. */
  claim(queue: ReadyQueue, room: number): Promise<boolean>;
  /** Requeues what was claimed and not tried; it is due at `dueAt`. */
  requeue(jobs: Job[], dueAt: number): Promise<void>;
}

export interface ClaimsDeps {
  store: Pick<Store, "claimDue" | "release">;
  scheduled: Pick<ScheduledQueues, "add" | "comesBack" | "goesOn">;
  waits: AddressWaits;
  writes: Writes;
  blocked(): boolean;
  owner: string;
  now(): number;
  log: Log;
}

const claimMost = 100;
const storeRetryMs = 1_000;
/** After a fault of this program: neither a tight loop nor a lost mail. */
export const faultRetryMs = 60_000;

export function createClaims(deps: ClaimsDeps): Claims {
  const { store, scheduled, waits, writes, owner, now, log } = deps;

  return {
    // For the free slots and as many again, so that a freed slot need not wait for the store.
    async claim(queue, room) {
      const { ready, taken, due } = queue;
      const wanted = Math.min(claimMost, 2 * Math.max(room, taken) - ready.length);
      if (queue.claiming || deps.blocked() || wanted <= 0 || ready.length > taken / 2) return false;
      const next = due.shift();
      if (!next) return false;
      queue.claiming = true;
      try {
        const claimed = await store.claimDue({
          owner,
          queueName: next.queueName,
          limit: wanted,
          now: now(),
          waits: waits.of(next.queueName),
        });
        waits.claimed(next.queueName, claimed.nextDueAt);
        for (const job of claimed.jobs) queue.ready.push({ job, to: next.to });
        if (claimed.nextDueAt !== null && claimed.nextDueAt <= now()) scheduled.goesOn(next.queueName);
        else scheduled.comesBack(next.queueName, claimed.nextDueAt);
      } catch (error) {
        logStoreFault(log, "claimDue", error);
        const retryMs = error instanceof StoreUnavailable ? storeRetryMs : faultRetryMs;
        scheduled.comesBack(next.queueName, now() + retryMs);
      }
      queue.claiming = false;
      return true;
    },
    async requeue(jobs, dueAt) {
      if (jobs.length === 0) return;
      const keys = jobs.map((job) => job.key);
      await writes.add({
        call: "release",
        run: () => store.release(owner, keys, dueAt),
        tried() {
          for (const { queueName } of jobs) scheduled.add(queueName, dueAt);
        },
      });
    },
  };
}

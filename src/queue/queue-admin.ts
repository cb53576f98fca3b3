// What an operator sees of the queue and does with it. A set may be large, so it is handled a piece at a time: a page of the
// list, then one write of those recipients, with other writes between. A call ends after ten seconds and says where it goes on.
import type { Clock } from "../clock.ts";
import type { Recorder } from "../events/record.ts";
import { untried, type Outcome } from "../mail/outcome.ts";
import type { Job } from "../model/queued-recipient.ts";
import {
  queueParts,
  type FailedRecipient,
  type QueueFilter,
  type QueueGroup,
  type QueueGrouping,
  type QueuePart,
  type ScheduledQueue,
} from "../model/queue-entry.ts";
import type { Store } from "../store/store.ts";

export const queueActs = ["retry", "hold", "release", "fail", "delete"] as const;
export type QueueAct = (typeof queueActs)[number];

export interface QueueCount {
  /** All that the filter lets through. */
  recipients: number;
  held: number;
  /** The largest first. */
  groups: QueueGroup[];
  /** False: the time or the room was over before all was counted. */
  complete: boolean;
}

export interface QueueAdmin {
  /** Acts on what the filter lets through, from `cursor` on; answers how many were changed, and where to go on. */
  act(
    act: QueueAct,
    accountKey: number,
    filter: QueueFilter,
    cursor: string | null,
  ): Promise<{ recipients: number; next: string | null }>;
  count(accountKey: number, by: QueueGrouping, filter: QueueFilter): Promise<QueueCount>;
}

export interface QueueAdminDeps {
  store: Pick<
    Store,
    | "listQueue"
    | "countQueue"
    | "retryQueued"
    | "holdQueued"
    | "releaseQueued"
    | "deleteQueued"
    | "failQueued"
    | "queuedJobs"
  >;
  recorder: Pick<Recorder, "bounced">;
  /** Recipients of the scheduled queue wait in the store, the earliest until `dueAt`. */
  note(queueName: string, dueAt: number): void;
  clock: Clock;
}

/** Recipients that one write changes: some milliseconds of the writer thread; those with events cost more. */
const pieces: Record<QueueAct, number> = { retry: 500, hold: 500, release: 500, delete: 500, fail: 100 };
/** What each act can change. */
const partsOf: Record<QueueAct, readonly QueuePart[]> = {
  retry: ["waiting"],
  hold: ["waiting", "account_hold"],
  release: ["operator_hold"],
  fail: ["waiting", "account_hold", "operator_hold"],
  delete: ["waiting", "account_hold", "operator_hold"],
};
/** An answer comes well before a client has waited too long. */
const longestMs = 10_000;
/** Groups of a count that are kept apart. */
const groupsMost = 20_000;

export function createQueueAdmin({ store, recorder, note, clock }: QueueAdminDeps): QueueAdmin {
  const noted = ({ changed, scheduledQueues }: { changed: number; scheduledQueues: ScheduledQueue[] }) => {
    for (const { queueName, dueAt } of scheduledQueues) note(queueName, dueAt);
    return changed;
  };
  const change: Record<QueueAct, (accountKey: number, keys: number[]) => Promise<number>> = {
    retry: async (account, keys) => noted(await store.retryQueued(account, keys, clock.now())),
    hold: (account, keys) => store.holdQueued(account, keys, clock.now()),
    release: async (account, keys) => noted(await store.releaseQueued(account, keys, clock.now())),
    delete: (account, keys) => store.deleteQueued(account, keys, clock.now()),
    async fail(account, keys) {
      const jobs = await store.queuedJobs(account, keys);
      return store.failQueued(jobs.map((job) => failedBy(recorder, job, clock.now())));
    },
  };

  return {
    async act(act, accountKey, filter, cursor) {
      const began = clock.monotonic();
      let recipients = 0;
      for (let from = cursor; ;) {
        const at = { limit: pieces[act], cursor: from };
        const { rows, next } = await store.listQueue(accountKey, filter, partsOf[act], at);
        if (rows.length > 0)
          recipients += await change[act](
            accountKey,
            rows.map(({ key }) => key),
          );
        if (next === null || clock.monotonic() - began >= longestMs) return { recipients, next };
        from = next;
      }
    },
    async count(accountKey, by, filter) {
      const began = clock.monotonic();
      const sums = new Map<string | null, QueueGroup>();
      let [recipients, held, complete] = [0, 0, true];
      for (let from: string | null = null; ;) {
        const { groups, next } = await store.countQueue(accountKey, by, filter, queueParts, from);
        for (const group of groups) {
          recipients += group.recipients;
          held += group.held;
          const known = sums.get(group.value);
          if (known) add(known, group);
          else if (sums.size < groupsMost) sums.set(group.value, { ...group });
          else complete = false;
        }
        const over = clock.monotonic() - began >= longestMs;
        if (next !== null && over) complete = false;
        if (next === null || over) break;
        from = next;
      }
      const groups = [...sums.values()].toSorted((a, b) => b.recipients - a.recipients);
      return { recipients, held, groups, complete };
    },
  };
}

function add(sum: QueueGroup, { recipients, held, nextAttemptAt }: QueueGroup): void {
  sum.recipients += recipients;
  sum.held += held;
  if (nextAttemptAt !== null) sum.nextAttemptAt = Math.min(nextAttemptAt, sum.nextAttemptAt ?? nextAttemptAt);
}

/**
 * A bounce in our own words (RFC 3463 X.3.0). It is a soft one: it says nothing of the address, so it neither suppresses nor
 * counts for the abuse guard.
 */
function failedBy(recorder: Pick<Recorder, "bounced">, job: Job, now: number): FailedRecipient {
  const reply = { code: 450, status: "4.3.0", text: "[local] the operator ended the delivery" };
  const outcome: Extract<Outcome, { kind: "bounced" }> = {
    kind: "bounced",
    source: "local",
    reply,
    classification: "unclassified",
    trace: untried(now),
  };
  const event = recorder.bounced(job, outcome, { suppressed: false });
  return {
    recipientKey: job.key,
    accountKey: job.message.accountKey,
    at: event.occurredAt,
    smtpCode: reply.code,
    smtpStatus: reply.status,
    smtpResponse: reply.text,
    event,
  };
}

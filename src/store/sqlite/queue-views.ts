// The queue as it is looked at: which scheduled queues have something waiting, and how much waits. Scheduled queues are found by one seek
// each; counts walk the index of what waits, for status and metrics only.
import type { Database, Statement } from "better-sqlite3";
import type { QueueCounts } from "../../model/queue.ts";
import { isHeld, isLeased } from "./held-mail.ts";

export function createQueueViews(db: Database) {
  // One seek a scheduled queue: the first entry after a scheduled queue is the next scheduled queue with its earliest due time.
  const nextQueue: Statement<[string], { queueName: string; dueAt: number }> = db.prepare(
    `SELECT queue_name AS queueName, due_at AS dueAt FROM recipients INDEXED BY recipients_waiting
     WHERE due_at IS NOT NULL AND queue_name > ? ORDER BY queue_name, due_at LIMIT 1`,
  );
  const waiting: Statement<[{ now: number }], { state: string; n: number; dueAt: number }> = db.prepare(
    `SELECT iif(state = 'scheduled' AND due_at <= @now, 'queued', state) AS state, count(*) AS n, min(due_at) AS dueAt
     FROM recipients INDEXED BY recipients_waiting WHERE due_at IS NOT NULL GROUP BY 1`,
  );
  const leased: Statement<[], { n: number }> = db.prepare(
    `SELECT count(*) AS n FROM recipients INDEXED BY recipients_leased WHERE ${isLeased}`,
  );
  const held: Statement<[], { n: number }> = db.prepare(
    `SELECT count(*) AS n FROM recipients INDEXED BY recipients_leased WHERE ${isHeld}`,
  );
  return {
    scheduledQueues(arg: {
      afterQueue: string | null;
      limit: number;
    }): { queueName: string; dueAt: number }[] {
      const scheduledQueues: { queueName: string; dueAt: number }[] = [];
      let after = arg.afterQueue ?? ""; // no scheduled queue is the empty string
      while (scheduledQueues.length < arg.limit) {
        const next = nextQueue.get(after);
        if (!next) break;
        scheduledQueues.push(next);
        after = next.queueName;
      }
      return scheduledQueues;
    },
    queueCounts(arg: { now: number }): QueueCounts {
      const counts: QueueCounts = {
        scheduled: 0,
        queued: 0,
        deferred: 0,
        sending: leased.get()?.n ?? 0,
        held: held.get()?.n ?? 0,
        oldestDueAt: null,
      };
      for (const { state, n, dueAt } of waiting.all(arg)) {
        if (state === "scheduled" || state === "queued" || state === "deferred") counts[state] += n;
        if (counts.oldestDueAt === null || dueAt < counts.oldestDueAt) counts.oldestDueAt = dueAt;
      }
      return counts;
    },
  };
}

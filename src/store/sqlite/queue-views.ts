// The queue as it is looked at: which lanes have something waiting, and how much waits. Lanes are found by one seek
// each; counts walk the index of what waits, for status and metrics only.
import type { Database, Statement } from "better-sqlite3";
import type { QueueCounts } from "../../model/queue.ts";
import { isHeld, isLeased } from "./held-mail.ts";

export function createQueueViews(db: Database) {
  // One seek a lane: the first entry after a lane is the next lane with its earliest due time.
  const nextLane: Statement<[string], { lane: string; dueAt: number }> = db.prepare(
    `SELECT lane, due_at AS dueAt FROM recipients INDEXED BY recipients_waiting
     WHERE due_at IS NOT NULL AND lane > ? ORDER BY lane, due_at LIMIT 1`,
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
    lanes(arg: { afterLane: string | null; limit: number }): { lane: string; dueAt: number }[] {
      const lanes: { lane: string; dueAt: number }[] = [];
      let after = arg.afterLane ?? ""; // no lane is the empty string
      while (lanes.length < arg.limit) {
        const next = nextLane.get(after);
        if (!next) break;
        lanes.push(next);
        after = next.lane;
      }
      return lanes;
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

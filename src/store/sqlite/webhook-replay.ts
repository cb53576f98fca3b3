// Requeues events for one endpoint: the named ones, or those of a range of time. What is queued
// already stays as it is. A walk goes in pieces, so that no other write waits for a long history; it starts over with ten
// attempts, due with the retries, so that new events' first attempts are not delayed.
import type { Database, Statement } from "better-sqlite3";
import type { ReplayRequest } from "../../model/webhook.ts";

/** Events that one piece looks at. */
const pieceSize = 2000;

export interface ReplayPiece {
  accountKey: number;
  endpointKey: number;
  which: ReplayRequest;
  /** Events after this one. */
  afterSeq: number;
  at: number;
}

/** How many were queued, and where the next piece begins; null: that was the last. */
export interface ReplayedPiece {
  queued: number;
  next: number | null;
}

interface Found {
  seq: number;
  status: string | null;
}

export function createReplay(db: Database) {
  const byId: Statement<[number, string, number], Found> = db.prepare(
    `SELECT e.seq, d.status FROM events e LEFT JOIN deliveries d ON d.endpoint_key = ? AND d.event_seq = e.seq
     WHERE e.id = ? AND e.account_key = ?`,
  );
  const walk: Statement<
    [{ endpointKey: number; accountKey: number; afterSeq: number; limit: number }],
    Found & { type: string; occurredAt: number }
  > = db.prepare(
    `SELECT e.seq, e.type, e.occurred_at AS occurredAt, d.status FROM events e
     LEFT JOIN deliveries d ON d.endpoint_key = @endpointKey AND d.event_seq = e.seq
     WHERE e.account_key = @accountKey AND e.seq > @afterSeq ORDER BY e.seq LIMIT @limit`,
  );
  // A success shows as the delivery itself: what takes its place must not lose it.
  const keepSuccess = db.prepare(
    `INSERT OR REPLACE INTO delivery_attempts (endpoint_key, event_seq, attempted_at, attempt, status, response_status, duration_ms)
     SELECT endpoint_key, event_seq, last_attempt_at - coalesce(duration_ms, 0), attempts, status, last_status, coalesce(duration_ms, 0)
     FROM deliveries WHERE endpoint_key = ? AND event_seq = ? AND status = 'delivered'`,
  );
  const put = db.prepare(
    "INSERT OR REPLACE INTO deliveries (endpoint_key, event_seq, status, attempts, due_at) VALUES (?, ?, 'pending', 0, ?)",
  );
  const exists: Statement<[number], { n: number }> = db.prepare("SELECT 1 AS n FROM endpoints WHERE key = ?");

  return {
    replayDeliveries(piece: ReplayPiece): ReplayedPiece {
      const { accountKey, endpointKey, which, afterSeq, at } = piece;
      if (!exists.get(endpointKey)) return { queued: 0, next: null };
      let queued = 0;
      const queue = ({ seq, status }: Found): void => {
        if (status === "pending") return;
        if (status === "delivered") keepSuccess.run(endpointKey, seq);
        put.run(endpointKey, seq, at);
        queued++;
      };
      if (which.kind === "events") {
        for (const id of which.ids) {
          const found = byId.get(endpointKey, id, accountKey);
          if (found) queue(found);
        }
        return { queued, next: null };
      }
      const rows = walk.all({ endpointKey, accountKey, afterSeq, limit: pieceSize });
      for (const row of rows) {
        if (row.occurredAt < (which.since ?? -Infinity) || row.occurredAt >= (which.until ?? Infinity))
          continue;
        const wanted = which.deadLettered ? row.status === "dead_lettered" : which.types.includes(row.type);
        if (wanted) queue(row);
      }
      return { queued, next: rows.length === pieceSize ? (rows.at(-1)?.seq ?? null) : null };
    },
  };
}

// The attempts at one endpoint: events newest first, of an event the last attempt first. Failures are rows of their own;
// a success is the delivery itself, and moves to them when its event is sent again. So a page is made of two walks in the
// same order, each along its primary key; of what does not show (deliveries that wait, another status) each walks at
// most 20,000 rows a page.
import type { Database, Statement } from "better-sqlite3";
import {
  deliveryAttemptStatuses,
  type DeliveryAttempt,
  type DeliveryAttemptFilter,
} from "../../model/webhook-delivery.ts";
import { walkLimit, type PageAt, type PageFound } from "../cursor.ts";

interface Place {
  seq: number;
  at: number;
  attempt: number;
}

interface Row extends DeliveryAttempt, Place {
  eventId: string;
}

interface Params extends Place {
  endpoint: number;
  /** No events before this one. */
  lowest: number;
  statuses: string;
  limit: number;
}

/** Rows in order, and none beyond `bound`; null: down to the end. */
interface Walked {
  rows: Row[];
  bound: Place | null;
}

const start: Place = {
  seq: Number.MAX_SAFE_INTEGER,
  at: Number.MAX_SAFE_INTEGER,
  attempt: Number.MAX_SAFE_INTEGER,
};

/** Negative: `a` is shown first. */
function inOrder(a: Place, b: Place): number {
  return b.seq - a.seq || b.at - a.at || b.attempt - a.attempt;
}

export function createDeliveryLists(db: Database) {
  /** `sparse`: not every row shows, so that a page may have to walk far for its rows. */
  const walkOver = (rows: string, end: string) => {
    const page: Statement<[Params & Record<"endSeq" | "endAt" | "endAttempt", number>], Row> =
      db.prepare(rows);
    const last: Statement<[Params], Place> = db.prepare(end);
    return (params: Params, sparse: boolean): Walked => {
      const bound = (sparse ? last.get(params) : null) ?? null;
      const { seq, at, attempt } = bound ?? { seq: 0, at: 0, attempt: 0 };
      return { rows: page.all({ ...params, endSeq: seq, endAt: at, endAttempt: attempt }), bound };
    };
  };
  const eventSeq: Statement<[string, number], { seq: number }> = db.prepare(
    "SELECT seq FROM events WHERE id = ? AND account_key = ?",
  );
  const eventId = "(SELECT id FROM events WHERE seq = event_seq) AS eventId";
  const tried = `FROM delivery_attempts WHERE endpoint_key = @endpoint AND event_seq >= @lowest
    AND (event_seq, attempted_at, attempt) < (@seq, @at, @attempt)`;
  const failed = walkOver(
    `SELECT event_seq AS seq, attempted_at AS at, attempt, status, ${eventId}, attempted_at AS attemptedAt, response_status AS responseStatus,
       error, duration_ms AS durationMs, next_attempt_at AS nextAttemptAt, response_body AS responseBody ${tried}
       AND (event_seq, attempted_at, attempt) >= (@endSeq, @endAt, @endAttempt) AND status IN (SELECT value FROM json_each(@statuses))
     ORDER BY event_seq DESC, attempted_at DESC, attempt DESC LIMIT @limit`,
    `SELECT event_seq AS seq, attempted_at AS at, attempt ${tried} ORDER BY event_seq DESC, attempted_at DESC, attempt DESC LIMIT 1 OFFSET ${walkLimit - 1}`,
  );
  const at = "coalesce(last_attempt_at, 0) - coalesce(duration_ms, 0)";
  const made = "FROM deliveries WHERE endpoint_key = @endpoint AND event_seq BETWEEN @lowest AND @seq";
  const delivered = walkOver(
    `SELECT event_seq AS seq, ${at} AS at, attempts AS attempt, status, ${eventId}, ${at} AS attemptedAt, last_status AS responseStatus,
       NULL AS error, duration_ms AS durationMs, NULL AS nextAttemptAt, NULL AS responseBody ${made}
       AND event_seq >= @endSeq AND status = 'delivered' AND (event_seq, ${at}, attempts) < (@seq, @at, @attempt)
     ORDER BY event_seq DESC LIMIT @limit`,
    `SELECT event_seq AS seq, ${at} AS at, attempts AS attempt ${made} ORDER BY event_seq DESC LIMIT 1 OFFSET ${walkLimit - 1}`,
  );

  return {
    listDeliveries(arg: {
      accountKey: number;
      endpointKey: number;
      filter: DeliveryAttemptFilter;
      page: PageAt;
    }): PageFound<DeliveryAttempt> {
      const { filter, page } = arg;
      const statuses = filter.statuses ?? deliveryAttemptStatuses;
      const event = filter.eventId === undefined ? null : eventSeq.get(filter.eventId, arg.accountKey);
      if (event === undefined) return { rows: [], next: null, hasMore: false };
      const after = rowKeyOf(page) ?? start;
      const params: Params = {
        ...(event && event.seq < after.seq ? { ...start, seq: event.seq } : after),
        endpoint: arg.endpointKey,
        lowest: event?.seq ?? 0,
        statuses: JSON.stringify(statuses),
        limit: page.limit + 1,
      };
      const both = [failed(params, filter.statuses !== undefined)];
      if (statuses.includes("delivered")) both.push(delivered(params, true));

      // What lies beyond the end of either walk is for the next page.
      const bound = both.flatMap((walk) => walk.bound ?? []).toSorted(inOrder)[0] ?? null;
      const all = both.flatMap(({ rows }) => rows).toSorted(inOrder);
      const reached = bound === null ? all : all.filter((row) => inOrder(row, bound) <= 0);
      const rows = reached.slice(0, page.limit);
      const next = reached.length > page.limit ? (rows.at(-1) ?? null) : bound;
      return {
        rows: rows.map(({ seq: _seq, at: _at, ...row }) => row),
        next: next && [next.seq, next.at, next.attempt],
        hasMore: next !== null,
      };
    },
  };
}

function rowKeyOf({ after }: PageAt): Place | null {
  const [seq, at, attempt] = (after ?? []).map(Number);
  return seq === undefined || at === undefined || attempt === undefined ? null : { seq, at, attempt };
}

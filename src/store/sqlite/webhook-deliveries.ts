// Deliveries of events to endpoints. First attempts stand at due time 0, so that the index gives them in event order
// before any retry; a delivery in flight is leased to a boot, and due only when it is given or taken back. What a deleted
// endpoint left: webhook-delivery-removal.ts.
import type { Database, Statement } from "better-sqlite3";
import { counterMask } from "../../model/counters.ts";
import { webhookFacts } from "../../model/facts.ts";
import type { DeliveryResult, DueDelivery, LeasedDelivery } from "../../model/webhook-delivery.ts";
import { failingAfter } from "../../model/webhook.ts";
import type { Tally } from "../batch-counters.ts";
import { leaseOver } from "./boots.ts";

/** Attempts of one delivery, as the schedule has them. */
const lastAttempt = 10;

const interruptedText =
  "the server ended before the answer came; the endpoint may have got the event, which is sent again";

const counted = {
  delivered: counterMask(["attempts", "delivered"]),
  retry: counterMask(["attempts", "failed"]),
  dead_lettered: counterMask(["attempts", "failed", "deadLettered"]),
} as const satisfies Record<DeliveryResult["result"]["kind"], number>;

/** Claims what is due to one endpoint, each delivery with the number of its attempt, and puts back what came to no result. */
export function createDeliveryLeases(db: Database) {
  const activeOf: Statement<[number], { accountKey: number }> = db.prepare(
    "SELECT account_key AS accountKey FROM endpoints WHERE key = ? AND active = 1",
  );
  // `= +?`, `LIMIT +?`: see webhook-fan-out.ts.
  const due: Statement<[number, number, number, number], { seq: number }> = db.prepare(
    `SELECT event_seq AS seq FROM deliveries INDEXED BY deliveries_due
     WHERE endpoint_key = +? AND due_at BETWEEN ? AND ? ORDER BY due_at, event_seq LIMIT +?`,
  );
  const earliest: Statement<[number, number], { dueAt: number }> = db.prepare(
    `SELECT due_at AS dueAt FROM deliveries INDEXED BY deliveries_due
     WHERE endpoint_key = +? AND due_at >= ? ORDER BY due_at LIMIT 1`,
  );
  // One above the last says that the last was made and came to no result: it is not made again.
  const lease: Statement<[string, number, number, number], { attempt: number }> = db.prepare(
    `UPDATE deliveries SET attempts = min(attempts, ${lastAttempt}) + 1, lease_owner = ?, due_at = NULL, last_attempt_at = ?
     WHERE endpoint_key = ? AND event_seq = ? RETURNING attempts AS attempt`,
  );
  const event: Statement<[number], { id: string; body: string }> = db.prepare(
    "SELECT id, body FROM events WHERE seq = ?",
  );
  // A first attempt waits with the first ones again, a later one with the retries; it was last tried when its last failure was.
  const requeue = db.prepare(
    `UPDATE deliveries SET attempts = attempts - 1, lease_owner = NULL, due_at = iif(attempts = 1, 0, @dueAt), last_attempt_at =
         (SELECT max(attempted_at + duration_ms) FROM delivery_attempts WHERE endpoint_key = @endpointKey AND event_seq = @eventSeq)
     WHERE endpoint_key = @endpointKey AND event_seq = @eventSeq AND attempts = @attempt AND lease_owner = @owner`,
  );
  const requeueCounted = db.prepare(
    `UPDATE deliveries SET lease_owner = NULL, due_at = @dueAt
     WHERE endpoint_key = @endpointKey AND event_seq = @eventSeq AND attempts = @attempt AND lease_owner = @owner`,
  );

  return {
    claimDeliveries(arg: {
      owner: string;
      endpointKey: number;
      limit: number;
      now: number;
      retriesOnly?: boolean;
    }): {
      deliveries: DueDelivery[];
      nextDueAt: number | null;
    } {
      const { endpointKey } = arg;
      const from = arg.retriesOnly ? 1 : 0;
      const endpoint = activeOf.get(endpointKey);
      if (!endpoint) return { deliveries: [], nextDueAt: null };
      const deliveries: DueDelivery[] = [];
      for (const { seq } of due.all(endpointKey, from, arg.now, arg.limit)) {
        const row = event.get(seq);
        const raised = lease.get(arg.owner, arg.now, endpointKey, seq);
        if (row && raised)
          deliveries.push({
            accountKey: endpoint.accountKey,
            endpointKey,
            eventSeq: seq,
            eventId: row.id,
            owner: arg.owner,
            attempt: raised.attempt,
            body: row.body,
          });
      }
      return { deliveries, nextDueAt: earliest.get(endpointKey, from)?.dueAt ?? null };
    },
    requeueDeliveries(arg: { at: number; counted: boolean; deliveries: LeasedDelivery[] }): void {
      const back = arg.counted ? requeueCounted : requeue;
      for (const delivery of arg.deliveries) back.run({ ...delivery, dueAt: Math.max(1, arg.at) });
    },
  };
}

/** Writes what attempts came to. */
export function createDeliverySettlement(db: Database, tally: Tally) {
  // Of an attempt whose lease was lost only a delivery counts.
  const settle = db.prepare(
    `UPDATE deliveries SET status = @state, attempts = min(attempts, ${lastAttempt}), due_at = @dueAt, lease_owner = NULL, last_attempt_at = @at, last_status = @status, duration_ms = @durationMs
     WHERE endpoint_key = @endpointKey AND event_seq = @eventSeq AND ((lease_owner = @owner AND attempts = @attempt)
       OR (@state = 'delivered' AND (due_at IS NOT NULL OR lease_owner IS NOT NULL)))`,
  );
  const keepFailure = db.prepare(
    `INSERT OR REPLACE INTO delivery_attempts (endpoint_key, event_seq, attempted_at, attempt, status, response_status, error,
       duration_ms, next_attempt_at, response_body)
     VALUES (@endpointKey, @eventSeq, @startedAt, min(@attempt, ${lastAttempt}), @outcome, @status, @error, @durationMs, @dueAt, @responseBody)`,
  );
  const noteSuccess = db.prepare(
    "UPDATE endpoints SET last_success_at = ?, consecutive_failures = 0, failing_since = NULL WHERE key = ?",
  );
  const noteFailure = db.prepare(
    `UPDATE endpoints SET last_failure_at = @at, consecutive_failures = consecutive_failures + 1,
       failing_since = iif(consecutive_failures + 1 < ${failingAfter}, NULL, coalesce(failing_since, @at)) WHERE key = @endpointKey`,
  );

  const count = createCount(db, tally);

  return {
    settleDeliveries(results: DeliveryResult[]): void {
      for (const one of results) {
        const { result, ...rest } = one;
        const state = result.kind === "retry" ? "pending" : result.kind;
        const dueAt = result.kind === "retry" ? Math.max(1, result.dueAt) : null; // 0 would make it a first attempt again
        if (settle.run({ ...rest, state, dueAt }).changes === 0) continue;
        if (result.kind === "delivered") noteSuccess.run(rest.at, rest.endpointKey);
        else noteFailure.run({ at: rest.at, endpointKey: rest.endpointKey });
        count(one);
        if (result.kind === "delivered") continue;
        const outcome = result.kind === "retry" ? "failed" : result.kind;
        keepFailure.run({ ...rest, dueAt, outcome, startedAt: rest.at - rest.durationMs });
      }
    },
  };
}

/** At a start: what the end of the program cut off is made again, the last attempt too. */
export function createDeliveryTakeBack(db: Database) {
  const interrupted = db.prepare(
    `INSERT OR IGNORE INTO delivery_attempts (endpoint_key, event_seq, attempted_at, attempt, status, error, duration_ms, next_attempt_at)
     SELECT endpoint_key, event_seq, coalesce(last_attempt_at, @now), attempts, 'failed', @error, 0, @now
     FROM deliveries INDEXED BY deliveries_leased WHERE ${leaseOver}`,
  );
  const takeBack = db.prepare(
    `UPDATE deliveries INDEXED BY deliveries_leased SET attempts = min(attempts, ${lastAttempt - 1}), due_at = @now, lease_owner = NULL
     WHERE ${leaseOver}`,
  );
  return {
    takeBackDeliveries({ owner, now }: { owner: string; now: number }): number {
      const arg = { owner, now: Math.max(1, now) };
      interrupted.run({ ...arg, error: interruptedText });
      return takeBack.run(arg).changes;
    },
  };
}

function createCount(db: Database, tally: Tally): (result: DeliveryResult) => void {
  const owner: Statement<[number, number], { accountKey: number; id: string; test: number | null }> =
    db.prepare(
      `SELECT w.account_key AS accountKey, w.id, m.test FROM endpoints w LEFT JOIN events e ON e.seq = +?
       LEFT JOIN messages m ON m.key = e.message_key WHERE w.key = +?`,
    );
  return ({ endpointKey, eventSeq, at, result }) => {
    const of = owner.get(eventSeq, endpointKey);
    if (!of) return;
    const facts = webhookFacts(of.accountKey, of.test === 1, of.id);
    tally.counted.push({ facts, at, counters: counted[result.kind], times: 1 });
  };
}

// Endpoints and their deliveries. First attempts stand at due time 0, so that the index gives them in event
// order before any retry; a delivery in flight is due again when its lease ends. Deliveries of a deleted endpoint,
// or of a discarded backlog, go in pieces, so that no transaction grows with a backlog.
import type { Database, Statement } from "better-sqlite3";
import { counterMask } from "../../model/counters.ts";
import { webhookFacts } from "../../model/facts.ts";
import type { DeliveryResult, DueDelivery } from "../../model/webhook-delivery.ts";
import type { Endpoint } from "../../model/webhook.ts";
import type { Over } from "./suppressions.ts";
import type { Tally } from "../batch-counters.ts";

/** Rows that one transaction deletes at most. */
export const discardPiece = 5000;
/** The same of attempts, which may hold 4 KB each. */
export const attemptsPiece = 500;
/** Attempts of one delivery, as the schedule has them. */
const lastAttempt = 10;

export type EndpointChange = Partial<
  Pick<Endpoint, "url" | "eventMask" | "description" | "active" | "format">
> & { updatedAt: number };

const changeable = {
  url: "url",
  eventMask: "event_mask",
  description: "description",
  active: "active",
  format: "format",
  updatedAt: "updated_at",
} as const satisfies Record<keyof EndpointChange, string>;

const counted = {
  delivered: counterMask(["attempts", "delivered"]),
  retry: counterMask(["attempts", "failed"]),
  dead_lettered: counterMask(["attempts", "failed", "deadLettered"]),
} as const satisfies Record<DeliveryResult["result"]["kind"], number>;

export function createWebhookWrites(db: Database, tally: Tally) {
  const insert = db.prepare(
    `INSERT INTO endpoints (id, account_key, url, event_mask, description, active, secret, previous_secret, previous_secret_until,
       created_at, updated_at, last_success_at, last_failure_at, consecutive_failures, format)
     VALUES (@id, @accountKey, @url, @eventMask, @description, @active, @secret, @previousSecret, @previousSecretUntil,
       @createdAt, @updatedAt, @lastSuccessAt, @lastFailureAt, @consecutiveFailures, @format)`,
  );
  const countOf: Statement<[number], { n: number }> = db.prepare(
    "SELECT count(*) AS n FROM endpoints WHERE account_key = ?",
  );
  const find: Statement<[string, number], { key: number }> = db.prepare(
    "SELECT key FROM endpoints WHERE id = ? AND account_key = ?",
  );
  const read: Statement<[number], Omit<Endpoint, "active"> & { active: number }> = db.prepare(
    `SELECT key, id, account_key AS accountKey, url, event_mask AS eventMask, description, active, secret,
       previous_secret AS previousSecret, previous_secret_until AS previousSecretUntil, created_at AS createdAt,
       updated_at AS updatedAt, last_success_at AS lastSuccessAt, last_failure_at AS lastFailureAt,
       consecutive_failures AS consecutiveFailures, format
     FROM endpoints WHERE key = ?`,
  );
  const rotate = db.prepare(
    `UPDATE endpoints SET previous_secret = iif(@previousUntil IS NULL, NULL, secret), previous_secret_until = @previousUntil,
       secret = @secret, updated_at = @at WHERE key = @key`,
  );
  const remove = db.prepare("DELETE FROM endpoints WHERE key = ?");
  const dropAll = db.prepare(
    "DELETE FROM deliveries WHERE endpoint_key = @key AND event_seq IN (SELECT event_seq FROM deliveries WHERE endpoint_key = @key LIMIT @limit)",
  );
  const dropPending = db.prepare(
    `DELETE FROM deliveries WHERE endpoint_key = @key AND event_seq IN
       (SELECT event_seq FROM deliveries INDEXED BY deliveries_due WHERE endpoint_key = @key AND due_at IS NOT NULL LIMIT @limit)`,
  );
  const activeOf: Statement<[number], { accountKey: number }> = db.prepare(
    "SELECT account_key AS accountKey FROM endpoints WHERE key = ? AND active = 1",
  );
  const due: Statement<[number, number, number], { seq: number }> = db.prepare(
    `SELECT event_seq AS seq FROM deliveries INDEXED BY deliveries_due
     WHERE endpoint_key = ? AND due_at <= ? ORDER BY due_at, event_seq LIMIT ?`,
  );
  const earliest: Statement<[number], { dueAt: number }> = db.prepare(
    `SELECT due_at AS dueAt FROM deliveries INDEXED BY deliveries_due
     WHERE endpoint_key = ? AND due_at IS NOT NULL ORDER BY due_at LIMIT 1`,
  );
  const lease: Statement<[number, number, number, number], { attempt: number }> = db.prepare(
    `UPDATE deliveries SET attempts = min(attempts + 1, ${lastAttempt}), leased = 1, due_at = ?, last_attempt_at = ?
     WHERE endpoint_key = ? AND event_seq = ? RETURNING attempts AS attempt`,
  );
  const event: Statement<[number], { id: string; body: string }> = db.prepare(
    "SELECT id, body FROM events WHERE seq = ?",
  );
  // What a holder that lost its lease has to say counts only where it is good news.
  const settle = db.prepare(
    `UPDATE deliveries SET status = @state, due_at = @dueAt, leased = 0, last_attempt_at = @at, last_status = @status, duration_ms = @durationMs
     WHERE endpoint_key = @endpointKey AND event_seq = @eventSeq AND due_at IS NOT NULL AND (attempts = @attempt OR @state = 'delivered')`,
  );
  const keepFailure = db.prepare(
    `INSERT OR REPLACE INTO delivery_attempts (endpoint_key, event_seq, attempted_at, attempt, status, response_status, error,
       duration_ms, next_attempt_at, response_body)
     VALUES (@endpointKey, @eventSeq, @startedAt, @attempt, @outcome, @status, @error, @durationMs, @dueAt, @responseBody)`,
  );
  // A first attempt waits with the first ones again, a later one with the retries; it was last tried when its last failure was.
  const giveBack = db.prepare(
    `UPDATE deliveries SET attempts = attempts - 1, leased = 0, due_at = iif(attempts = 1, 0, @dueAt), last_attempt_at =
         (SELECT max(attempted_at + duration_ms) FROM delivery_attempts WHERE endpoint_key = @endpointKey AND event_seq = @eventSeq)
     WHERE endpoint_key = @endpointKey AND event_seq = @eventSeq AND attempts = @attempt AND leased = 1 AND due_at IS NOT NULL`,
  );
  const dropAttempts = db.prepare(
    `DELETE FROM delivery_attempts WHERE endpoint_key = @key AND (event_seq, attempted_at, attempt) IN
       (SELECT event_seq, attempted_at, attempt FROM delivery_attempts WHERE endpoint_key = @key LIMIT ${attemptsPiece})`,
  );
  const noteSuccess = db.prepare(
    "UPDATE endpoints SET last_success_at = ?, consecutive_failures = 0 WHERE key = ?",
  );
  const noteFailure = db.prepare(
    "UPDATE endpoints SET last_failure_at = ?, consecutive_failures = consecutive_failures + 1 WHERE key = ?",
  );

  const owner: Statement<[number, number], { accountKey: number; id: string; test: number | null }> =
    db.prepare(
      `SELECT w.account_key AS accountKey, w.id, m.test FROM endpoints w LEFT JOIN events e ON e.seq = ?
       LEFT JOIN messages m ON m.key = e.message_key WHERE w.key = ?`,
    );
  const count = ({ endpointKey, eventSeq, at, result }: DeliveryResult): void => {
    const of = owner.get(eventSeq, endpointKey);
    if (!of) return;
    const facts = webhookFacts(of.accountKey, of.test === 1, of.id);
    tally.counted.push({ facts, at, counters: counted[result.kind], times: 1 });
  };

  const discardPending = (key: number, limit: number): number => dropPending.run({ key, limit }).changes;

  const endpointOf = (key: number): Endpoint | null => {
    const row = read.get(key);
    return row ? { ...row, active: row.active !== 0 } : null;
  };

  return {
    createEndpoint({
      most = Infinity,
      ...endpoint
    }: Omit<Endpoint, "key"> & { most?: number }): number | Over {
      const has = countOf.get(endpoint.accountKey)?.n ?? 0;
      if (has >= most) return { over: has };
      return Number(insert.run({ ...endpoint, active: endpoint.active ? 1 : 0 }).lastInsertRowid);
    },
    /** Answers the endpoint as it is then; null: it is gone. */
    updateEndpoint(arg: {
      accountKey: number;
      key: number;
      change: EndpointChange;
      discardBacklog: boolean;
    }): Endpoint | null {
      const cells: Record<string, string | number | null> = {};
      for (const [name, value] of Object.entries(arg.change)) {
        if (value === undefined || !Object.hasOwn(changeable, name)) continue;
        cells[name] = typeof value === "boolean" ? Number(value) : value;
      }
      const sets = Object.entries(changeable).filter(([name]) => name in cells);
      db.prepare(
        `UPDATE endpoints SET ${sets.map(([name, column]) => `${column} = @${name}`).join(", ")} WHERE key = @key`,
      ).run({
        ...cells,
        key: arg.key,
      });
      if (arg.discardBacklog) discardPending(arg.key, -1);
      return endpointOf(arg.key);
    },
    rotateSecret(arg: {
      accountKey: number;
      key: number;
      secret: string;
      previousUntil: number | null;
      at: number;
    }): Endpoint | null {
      rotate.run(arg);
      return endpointOf(arg.key);
    },
    /** A piece of the backlog; answers how many went. */
    discardBacklog(arg: { accountKey: number; key: number }): number {
      return discardPending(arg.key, discardPiece);
    },
    /** The endpoint itself: from here on nothing is fanned out to it or claimed for it. Answers its key. */
    deleteEndpoint(arg: { accountKey: number; id: string }): number | null {
      const row = find.get(arg.id, arg.accountKey);
      if (!row) return null;
      remove.run(row.key);
      return row.key;
    },
    /** A piece of what a deleted endpoint left; answers how many rows went. */
    dropDeliveries(arg: { key: number }): number {
      return dropAll.run({ key: arg.key, limit: discardPiece }).changes;
    },
    /** The same of its attempts. */
    dropAttempts(arg: { key: number }): number {
      return dropAttempts.run(arg).changes;
    },
    claimDeliveries(arg: { endpointKey: number; limit: number; now: number; leaseUntil: number }): {
      deliveries: DueDelivery[];
      nextDueAt: number | null;
    } {
      const { endpointKey } = arg;
      const endpoint = activeOf.get(endpointKey);
      if (!endpoint) return { deliveries: [], nextDueAt: null };
      const deliveries: DueDelivery[] = [];
      for (const { seq } of due.all(endpointKey, arg.now, arg.limit)) {
        const row = event.get(seq);
        const raised = lease.get(arg.leaseUntil, arg.now, endpointKey, seq);
        if (row && raised)
          deliveries.push({
            accountKey: endpoint.accountKey,
            endpointKey,
            eventSeq: seq,
            eventId: row.id,
            attempt: raised.attempt,
            body: row.body,
          });
      }
      return { deliveries, nextDueAt: earliest.get(endpointKey)?.dueAt ?? null };
    },
    settleDeliveries(results: DeliveryResult[]): void {
      for (const one of results) {
        const { result, ...rest } = one;
        const state = result.kind === "retry" ? "pending" : result.kind;
        const dueAt = result.kind === "retry" ? Math.max(1, result.dueAt) : null; // 0 would make it a first attempt again
        if (settle.run({ ...rest, state, dueAt }).changes === 0) continue;
        (result.kind === "delivered" ? noteSuccess : noteFailure).run(rest.at, rest.endpointKey);
        count(one);
        if (result.kind === "delivered") continue;
        const outcome = result.kind === "retry" ? "failed" : result.kind;
        keepFailure.run({ ...rest, dueAt, outcome, startedAt: rest.at - rest.durationMs });
      }
    },
    giveBackDeliveries(arg: {
      at: number;
      deliveries: Pick<DueDelivery, "accountKey" | "endpointKey" | "eventSeq" | "attempt">[];
    }): void {
      for (const { endpointKey, eventSeq, attempt } of arg.deliveries)
        giveBack.run({ endpointKey, eventSeq, attempt, dueAt: Math.max(1, arg.at) });
    },
  };
}

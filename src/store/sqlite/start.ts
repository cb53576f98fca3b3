// What is done once, before anybody can call: the first account, deliveries that were in flight when the last process
// ended, rows and files that nothing points at any more, also what a deletion that was cut off left.
import type { Database, Statement } from "better-sqlite3";
import type { IdMint } from "../../ids.ts";
import { defaultAccount, operationsAccount } from "../../model/account.ts";
import type { Spool } from "../spool.ts";

const firstAccounts = [defaultAccount, operationsAccount];

export interface Swept {
  orphanFiles: number;
  deliveriesBack: number;
}

export function prepareAtStart(db: Database, deps: { now: number; mint: IdMint; spool: Spool }): Swept {
  const { now } = deps;
  db.exec("BEGIN IMMEDIATE");
  try {
    makeFirstAccounts(db, deps.mint, now);
    const deliveriesBack = takeBackDeliveries(db, now);
    dropSuppressionsOfDeleted(db);
    db.exec("COMMIT");
    const named: Statement<[string], { key: number }> = db.prepare(
      "SELECT key FROM messages WHERE content_name = ?",
    );
    const orphanFiles = deps.spool.sweep((name) => named.get(name) !== undefined);
    return { orphanFiles, deliveriesBack };
  } catch (error) {
    if (db.inTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** Installing makes the account `default`, which a user with one account never needs to name, and that of notices. */
function makeFirstAccounts(db: Database, mint: IdMint, now: number): void {
  const add = db.prepare(
    "INSERT INTO accounts (id, name, status, created_at) VALUES (?, ?, 'active', ?) ON CONFLICT DO NOTHING",
  );
  for (const name of firstAccounts) add.run(mint("acct", now), name, now);
}

/** A crash may have come between the deletion of an account and that of its suppressions, which follows in pieces. */
function dropSuppressionsOfDeleted(db: Database): void {
  db.exec(
    "DELETE FROM suppressions WHERE account_key IN (SELECT key FROM accounts WHERE status = 'deleted')",
  );
}

const interruptedText =
  "the server ended before the answer came; the endpoint may have received the event, which is sent again";

/** Deliveries in flight become due, the attempt listed as failed; those of endpoints that were deleted go. First attempts (due 0) are not looked at. */
function takeBackDeliveries(db: Database, now: number): number {
  const next: Statement<[number], { key: number }> = db.prepare(
    "SELECT endpoint_key AS key FROM deliveries WHERE endpoint_key > ? ORDER BY endpoint_key LIMIT 1",
  );
  const exists = db.prepare("SELECT 1 FROM endpoints WHERE key = ?");
  const drop = db.prepare("DELETE FROM deliveries WHERE endpoint_key = ?");
  const nextTried: Statement<[number], { key: number }> = db.prepare(
    "SELECT endpoint_key AS key FROM delivery_attempts WHERE endpoint_key > ? ORDER BY endpoint_key LIMIT 1",
  );
  const dropTried = db.prepare("DELETE FROM delivery_attempts WHERE endpoint_key = ?");
  const interrupted = db.prepare(
    `INSERT OR IGNORE INTO delivery_attempts (endpoint_key, event_seq, attempted_at, attempt, status, error, duration_ms, next_attempt_at)
     SELECT endpoint_key, event_seq, coalesce(last_attempt_at, @now), attempts, 'failed', @error, 0, @now
     FROM deliveries INDEXED BY deliveries_due WHERE endpoint_key = @key AND due_at > 0 AND leased = 1`,
  );
  const takeBack = db.prepare(
    `UPDATE deliveries INDEXED BY deliveries_due SET due_at = ?, leased = 0 WHERE endpoint_key = ? AND due_at > 0 AND leased = 1`,
  );
  let back = 0;
  for (let row = next.get(0); row; row = next.get(row.key)) {
    if (exists.get(row.key)) {
      interrupted.run({ key: row.key, now: Math.max(1, now), error: interruptedText });
      back += takeBack.run(Math.max(1, now), row.key).changes;
    } else drop.run(row.key);
  }
  for (let row = nextTried.get(0); row; row = nextTried.get(row.key))
    if (!exists.get(row.key)) dropTried.run(row.key);
  return back;
}

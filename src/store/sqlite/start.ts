// What is done once, under the lock on the data directory and before anybody can call: the first account, the end of former
// boots, rows and files that nothing points at any more, also what a deletion that was cut off left. A file is the
// directory's own, and its lock says that no other process is about to name it.
import type { Database, Statement } from "better-sqlite3";
import type { IdMint } from "../../ids.ts";
import { defaultAccount, operationsAccount } from "../../model/account.ts";
import type { Spool } from "./spool.ts";
import { endFormerBoots } from "./boots.ts";

const firstAccounts = [defaultAccount, operationsAccount];

/** Answers how many files no message named. */
export function prepareAtStart(db: Database, deps: { now: number; mint: IdMint; spool: Spool }): number {
  const { now } = deps;
  db.exec("BEGIN IMMEDIATE");
  try {
    makeFirstAccounts(db, deps.mint, now);
    endFormerBoots(db);
    dropDeliveriesOfDeleted(db);
    dropSuppressionsOfDeleted(db);
    db.exec("COMMIT");
    const named: Statement<[string], { key: number }> = db.prepare(
      "SELECT key FROM messages WHERE content_name = ?",
    );
    return deps.spool.sweep((name) => named.get(name) !== undefined);
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

/** A crash may have come between the deletion of an endpoint and that of its deliveries, which follows in pieces. */
function dropDeliveriesOfDeleted(db: Database): void {
  const exists = db.prepare("SELECT 1 FROM endpoints WHERE key = ?");
  for (const table of ["deliveries", "delivery_attempts"]) {
    const next: Statement<[number], { key: number }> = db.prepare(
      `SELECT endpoint_key AS key FROM ${table} WHERE endpoint_key > ? ORDER BY endpoint_key LIMIT 1`,
    );
    const drop = db.prepare(`DELETE FROM ${table} WHERE endpoint_key = ?`);
    for (let row = next.get(0); row; row = next.get(row.key)) if (!exists.get(row.key)) drop.run(row.key);
  }
}

// What changes the suppression list. A stronger reason replaces a weaker one, the first spelling stays, as does a
// description that no other replaces, and a suppression never ends earlier because another one came.
import type { Database, Statement } from "better-sqlite3";
import { reasonStrength } from "./store.ts";
import type { NewSuppression, Suppression } from "./store.ts";

/** The columns of `suppressions` under the names of Suppression. */
export const suppressionColumns = `account_key AS accountKey, canonical, email, reason, source, description, message_id AS messageId,
  event_id AS eventId, CAST(smtp_code AS TEXT) AS smtpCode, smtp_status AS smtpStatus, expires_at AS expiresAt, created_at AS createdAt, updated_at AS updatedAt`;

export interface SuppressionChange {
  change: "added" | "updated" | "unchanged";
  row: Suppression;
}

export function createSuppressionWrites(db: Database) {
  const find: Statement<[number, string], Suppression> = db.prepare(
    `SELECT ${suppressionColumns} FROM suppressions WHERE account_key = ? AND canonical = ?`,
  );
  const put = db.prepare(
    `INSERT OR REPLACE INTO suppressions (account_key, canonical, email, reason, source, description, message_id, event_id,
       smtp_code, smtp_status, expires_at, created_at, updated_at)
     VALUES (@accountKey, @canonical, @email, @reason, @source, @description, @messageId, @eventId,
       @smtpCode, @smtpStatus, @expiresAt, @createdAt, @updatedAt)`,
  );
  const remove = db.prepare("DELETE FROM suppressions WHERE account_key = ? AND canonical = ?");

  const add = (entry: NewSuppression, at: number): SuppressionChange => {
    const old = find.get(entry.accountKey, entry.canonical);
    const next = merge(old, entry, at);
    if (next.change !== "unchanged") put.run(next.row);
    return next;
  };

  return {
    addSuppression: add,
    addSuppressions(arg: { entries: NewSuppression[]; at: number }): SuppressionChange[] {
      return arg.entries.map((entry) => add(entry, arg.at));
    },
    removeSuppression(arg: { accountKey: number; canonical: string }): boolean {
      return remove.run(arg.accountKey, arg.canonical).changes > 0;
    },
  };
}

/** What becomes of an entry when another one arrives; one that has expired counts as none. */
function merge(old: Suppression | undefined, entry: NewSuppression, at: number): SuppressionChange {
  if (!old || (old.expiresAt !== null && old.expiresAt <= at)) {
    return { change: "added", row: { ...entry, createdAt: at, updatedAt: at } };
  }
  const expiresAt =
    old.expiresAt === null || entry.expiresAt === null ? null : Math.max(old.expiresAt, entry.expiresAt);
  const description = entry.description ?? old.description;
  if (reasonStrength[entry.reason] > reasonStrength[old.reason]) {
    return {
      change: "updated",
      row: { ...entry, email: old.email, description, expiresAt, createdAt: old.createdAt, updatedAt: at },
    };
  }
  if (expiresAt !== old.expiresAt) return { change: "updated", row: { ...old, expiresAt, updatedAt: at } };
  return { change: "unchanged", row: old };
}

// Changes that come with time alone, with no row written for them.
import type { Database, Statement } from "better-sqlite3";
import type { Resource } from "../../model/last-change.ts";

export function createLastPassed(db: Database) {
  const expired: Statement<[number, number], { at: number | null }> = db.prepare(
    "SELECT max(expires_at) AS at FROM suppressions WHERE account_key = ? AND expires_at <= ?",
  );
  const becameDue: Statement<[number, number], { at: number | null }> = db.prepare(
    "SELECT max(due_at) AS at FROM recipients WHERE account_key = ? AND due_at <= ? AND state = 'scheduled'",
  );

  /** When an entry of a list last ended, or the time of mail came. */
  return (accountKey: number, of: readonly Resource[], now: number): number | null => {
    const passed = [
      of.includes("suppressions") ? expired.get(accountKey, now)?.at : null,
      of.includes("messages") ? becameDue.get(accountKey, now)?.at : null,
    ].filter((at) => at !== null && at !== undefined);
    return passed.length === 0 ? null : Math.max(...passed);
  };
}

// Removes statistics that are older than they are kept (model/statistics.ts), the oldest first.
import type { Database } from "better-sqlite3";
import { dayMs } from "../../clock.ts";
import { daysKept, quartersKeptDays } from "../../model/statistics.ts";

export function createStatsPurge(db: Database) {
  const row = "day, account_key, test, kind, scope, scope_key, key";
  const removeFrom = (table: string) =>
    db.prepare(
      `DELETE FROM ${table} WHERE (${row}) IN (SELECT ${row} FROM ${table} WHERE day < ? ORDER BY day LIMIT ?)`,
    );
  const kept = [
    { remove: removeFrom("stats_quarters"), days: quartersKeptDays },
    { remove: removeFrom("stats_days"), days: daysKept },
  ];
  /** A piece of about `limit` rows. */
  return (now: number, limit: number): { rows: number; more: boolean } => {
    const today = Math.floor(now / dayMs);
    const share = Math.ceil(limit / kept.length);
    const removed = kept.map(({ remove, days }) => remove.run(today - days, share).changes);
    return { rows: removed.reduce((sum, rows) => sum + rows, 0), more: removed.includes(share) };
  };
}

// Folds what was counted (stats-gather.ts) into the rows that statistics are read from: for each account, tag, sending
// domain, pool, address, provider, recipient domain, cause of bounce and endpoint, a row a UTC day, and its quarters
// of an hour beside it, since the days of other time zones begin within one of ours. What waits is sorted by the rows that it
// changes (stats-sort.ts), and these are written in pieces. A piece is one transaction: what waited is gone when it is
// added. A day has so many rows of one list at most; what comes after stands under `(other)`, so that a tag a message
// makes no table and no question long.
import type { Database, Statement } from "better-sqlite3";
import { addCounts, counterColumns, noCounts } from "../counters.ts";
import { addAll, quarterCounts, quartersOf } from "../day-counts.ts";
import type { DayRow, RowKey, QuarterCounts, SortedRow } from "../day-counts.ts";
import type { SortedCounts } from "./stats-sort.ts";

/** Where a day counts what is beyond its first `keysADay` keys. */
export const otherKey = "(other)";
export const keysADay = 1000;

/** All that names a list of a day, in the order of RowKey. */
export const rowIs = "day = ? AND account_key = ? AND test = ? AND kind = ? AND scope = ? AND scope_key = ?";

export function createStatsFold(db: Database) {
  const taken = db.prepare("DELETE FROM stats_waiting WHERE seq <= ?");
  const insertSorted = db.prepare("INSERT INTO stats_sorted (body) VALUES (?)");
  const nextSorted: Statement<[], { seq: number; body: string }> = db.prepare(
    "SELECT seq, body FROM stats_sorted ORDER BY seq LIMIT 1",
  );
  const takenSorted = db.prepare("DELETE FROM stats_sorted WHERE seq = ?");
  const raise = db.prepare(
    `UPDATE stats_days SET ${counterColumns.map((name) => `${name} = ${name} + ?`).join(", ")} WHERE ${rowIs} AND key = ?`,
  );
  const insert = db.prepare(
    `INSERT INTO stats_days (${counterColumns.join(", ")}, day, account_key, test, kind, scope, scope_key, key)
     VALUES (${counterColumns.map(() => "?").join(", ")}, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const keys: Statement<[...RowKey, number], { n: number }> = db.prepare(
    `SELECT count(*) AS n FROM (SELECT 1 FROM stats_days WHERE ${rowIs} LIMIT ?)`,
  );
  const keptQuarters: Statement<[...RowKey, string], { counts: string }> = db.prepare(
    `SELECT counts FROM stats_quarters WHERE ${rowIs} AND key = ?`,
  );
  const putQuarters = db.prepare(
    `INSERT OR REPLACE INTO stats_quarters (day, account_key, test, kind, scope, scope_key, key, counts) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );

  /** Raises a day's row. False: it is new, and the day has no room for more keys. `met`: keys of a list, as this piece knows. */
  const raiseDay = ({ rowKey, key, quarters }: DayRow, met: Map<string, number>): boolean => {
    const sum = noCounts();
    for (const counts of quarters.values()) addCounts(sum, counts);
    if (raise.run(...sum, ...rowKey, key).changes > 0) return true;
    const list = rowKey.join("\n");
    const n = met.get(list) ?? keys.get(...rowKey, keysADay)?.n ?? 0;
    met.set(list, n + 1);
    if (n >= keysADay && key !== otherKey) return false;
    insert.run(...sum, ...rowKey, key);
    return true;
  };

  const addQuarters = ({ rowKey, key, quarters }: DayRow): void => {
    const text = keptQuarters.get(...rowKey, key)?.counts;
    const kept = quarterCounts(text === undefined ? [] : (JSON.parse(text) as QuarterCounts[]));
    addAll(kept, quarters);
    putQuarters.run(...rowKey, key, JSON.stringify(quartersOf(kept)));
  };

  const write = (rows: Iterable<DayRow>): void => {
    const met = new Map<string, number>();
    const others = new Map<string, DayRow>();
    for (const row of rows) {
      if (raiseDay(row, met)) addQuarters(row);
      else {
        const list = row.rowKey.join("\n");
        const other = others.get(list) ?? { rowKey: row.rowKey, key: otherKey, quarters: new Map() };
        addAll(other.quarters, row.quarters);
        others.set(list, other);
      }
    }
    for (const row of others.values()) {
      raiseDay(row, met);
      addQuarters(row);
    }
  };

  return {
    /** In place of the counts up to `last` the rows that they change (stats-sort.ts). */
    keepSorted({ last, pieces }: SortedCounts): void {
      taken.run(last);
      for (const piece of pieces) insertSorted.run(piece);
    },
    /** Writes the next rows that were sorted. `late`: readings may have shown less meanwhile (changes.ts). False: there were none. */
    foldStats(_arg: { late: boolean }): boolean {
      const next = nextSorted.get();
      if (!next) return false;
      takenSorted.run(next.seq);
      write(
        (JSON.parse(next.body) as SortedRow[]).map(([rowKey, key, quarters]) => ({
          rowKey,
          key,
          quarters: quarterCounts(quarters),
        })),
      );
      return true;
    },
  };
}

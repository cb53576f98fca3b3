// How retention finds what is too old without an index on time and without looking at a row again and again. Keys are
// given in the order of time (sequences.ts), so a walk goes up from the oldest and stops at the first row that is too young. A row that it
// must leave (mail that is still tried, a late dead letter) goes into a list of its own, by the time from which its age
// counts at the earliest, and is looked at again when that is old enough. So a row is looked at once, a late one a few
// times more, whatever the history has and whatever the settings become.
import type { Database, Statement } from "better-sqlite3";
import type { RetentionKind } from "./schema/appliance.ts";

export interface Aged {
  key: number;
  /** When the row was made. */
  at: number;
}

/** Which rows a walk is over. */
export interface Aging<Row extends Aged> {
  kind: RetentionKind;
  /** Rows with higher keys, in order. */
  next: Statement<[number, number], Row>;
  /** Rows by a JSON array of keys. */
  of: Statement<[string], Row>;
  /** How many rows looking at it and removing it touches, about. */
  weight(row: Row): number;
  /** From when its age counts; a time to come where that is not known yet. */
  since(row: Row, now: number): number;
}

export interface Piece {
  now: number;
  /** What has counted since then or longer is too old. */
  before: number;
  /** The weight of the rows that are looked at, about. */
  limit: number;
}

/** `gone`: rows that are to be removed in the same transaction, since the walk has passed them. */
export type Walk<Row> = (piece: Piece) => { gone: Row[]; more: boolean };

/** What a row weighs at least, so that few rows are read that cannot be dealt with. */
const leastWeight = 4;

export function createWalks(db: Database): <Row extends Aged>(aging: Aging<Row>) => Walk<Row> {
  const passed: Statement<[string], { passed: number }> = db.prepare(
    "SELECT passed FROM retention_walks WHERE kind = ?",
  );
  const pass = db.prepare("INSERT OR REPLACE INTO retention_walks (kind, passed) VALUES (?, ?)");
  const due: Statement<[string, number, number], { since: number; key: number }> = db.prepare(
    "SELECT since, key FROM retention_later WHERE kind = ? AND since <= ? ORDER BY since, key LIMIT ?",
  );
  const strike = db.prepare("DELETE FROM retention_later WHERE kind = ? AND since = ? AND key = ?");
  const putOff = db.prepare("INSERT OR IGNORE INTO retention_later (kind, since, key) VALUES (?, ?, ?)");

  return <Row extends Aged>({ kind, next, of, weight, since: sinceOf }: Aging<Row>): Walk<Row> =>
    ({ now, before, limit }) => {
      const rowsAtOnce = Math.ceil(limit / leastWeight);
      const gone: Row[] = [];
      let left = limit;
      const judge = (row: Row): void => {
        left -= weight(row);
        const since = sinceOf(row, now);
        if (since <= before) gone.push(row);
        else putOff.run(kind, since, row.key);
      };

      /** What was put off; true: not all that is due. */
      const lookAgain = (): boolean => {
        const entries = due.all(kind, before, rowsAtOnce);
        if (entries.length === 0) return false;
        const rows = new Map(
          of.all(JSON.stringify(entries.map(({ key }) => key))).map((row) => [row.key, row]),
        );
        for (const { since, key } of entries) {
          if (left <= 0) return true;
          strike.run(kind, since, key);
          const row = rows.get(key);
          if (row) judge(row);
        }
        return entries.length === rowsAtOnce;
      };

      /** On from where the walk is; true: it has not come to a row that is too young, nor to the end. */
      const goOn = (): boolean => {
        if (left <= 0) return true;
        const from = passed.get(kind)?.passed ?? 0;
        let at = from;
        let stopped = false;
        const rows = next.all(from, rowsAtOnce);
        for (const row of rows) {
          // A row of what is now the future, made while a clock was wrong, delays no other.
          stopped = row.at > before && row.at <= now;
          if (stopped || left <= 0) break;
          judge(row);
          at = row.key;
        }
        if (at !== from) pass.run(kind, at);
        return !stopped && (left <= 0 || rows.length === rowsAtOnce);
      };

      const more = [lookAgain(), goOn()];
      return { gone, more: more.includes(true) };
    };
}

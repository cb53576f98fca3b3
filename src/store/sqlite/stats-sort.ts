// The first half of a fold, in the reader's thread, so that no write waits for it: what was counted (stats-gather.ts) as the
// rows that it changes. The writer puts these in its place and adds them piece by piece (stats-fold.ts).
import type { Database, Statement } from "better-sqlite3";
import { expand, quartersOf } from "../day-counts.ts";
import type { DayRow, SortedRow } from "../day-counts.ts";
import { merge, readWaiting } from "../quarter-counts.ts";
import type { CountsOfQuarter, WaitingCounts } from "../quarter-counts.ts";

/** How much is sorted at once: far enough back that equal counts meet, and 20 ms where all differ. */
const mostWaiting = 500;
const mostEntries = 10_000;
/** Each of a dozen rows or more. */
const mostSums = 1000;
/** Rows of a piece: some 3 ms of the writer's time. */
const pieceRows = 150;

export interface SortedCounts {
  /** How many rows of `stats_waiting` they are, and the last of them. */
  read: number;
  last: number;
  /** JSON of SortedRow[]. */
  pieces: string[];
}

export function createStatsSort(db: Database) {
  // `seq > 0`: said as a search by key, since the plan of every statement is tested not to read a whole table.
  const waiting: Statement<[number], { seq: number; body: string }> = db.prepare(
    "SELECT seq, body FROM stats_waiting WHERE seq > 0 ORDER BY seq LIMIT ?",
  );
  return {
    /** The oldest of what waits, `most` rows at most; null: nothing does. */
    sortCounts({ most }: { most: number }): SortedCounts | null {
      const sums = new Map<string, CountsOfQuarter>();
      let [read, entries, last] = [0, 0, 0];
      for (const { seq, body } of waiting.iterate(Math.min(mostWaiting, most))) {
        const list = JSON.parse(body) as WaitingCounts[];
        for (const entry of list) merge(sums, readWaiting(entry));
        last = seq;
        entries += list.length;
        read += 1;
        if (entries >= mostEntries || sums.size >= mostSums) break;
      }
      return read === 0 ? null : { read, last, pieces: piecesOf(sums.values()) };
    },
  };
}

function piecesOf(sums: Iterable<CountsOfQuarter>): string[] {
  const rows = new Map<string, DayRow>();
  for (const sum of sums) expand(rows, sum);
  const sorted = Array.from(rows.values(), ({ rowKey, key, quarters }): SortedRow => [
    rowKey,
    key,
    quartersOf(quarters),
  ]);
  const pieces: string[] = [];
  for (let at = 0; at < sorted.length; at += pieceRows)
    pieces.push(JSON.stringify(sorted.slice(at, at + pieceRows)));
  return pieces;
}

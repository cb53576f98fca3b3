// The database as it is at one moment, read beside the writer: a connection in a read transaction, and a copy of what it
// sees by SQLite's backup API. A reader of the write-ahead log takes no lock that a writer waits for. Knows no noun.
import { closeSync, fdatasyncSync, fsyncSync, openSync } from "node:fs";
import type { Database } from "better-sqlite3";
import { openReading, openWriting } from "./open.ts";
import { createWalState, leftToRestartBytes } from "./wal.ts";

/** Pages of one step, 8 MB: synced after it, since more at once would make the writer's own sync wait longer for them. */
const stepPages = 1024;

export interface Snapshot {
  readonly db: Database;
  /** What a copy of it takes. */
  readonly bytes: number;
  /** Copies it to `target`, an empty file. `between` is called after each step, and ends the copy by throwing. */
  copyTo(target: string, between: (share: number) => void): Promise<void>;
  close(): void;
}

/** What is read of it from here on is of this moment. */
export function openSnapshot(path: string): Snapshot {
  const db = openReading(path, 8192);
  try {
    db.exec("BEGIN");
    db.prepare("SELECT count(*) FROM sqlite_schema").get(); // a read transaction begins with its first read
  } catch (error) {
    db.close();
    throw error;
  }
  const pragma = (name: string): number => Number(db.pragma(name, { simple: true }));
  return {
    db,
    bytes: pragma("page_count") * pragma("page_size"),
    async copyTo(target, between) {
      const file = openSync(target, "r+");
      try {
        await db.backup(target, {
          progress({ totalPages, remainingPages }) {
            fdatasyncSync(file);
            between(totalPages === 0 ? 0 : (totalPages - remainingPages) / totalPages);
            return stepPages;
          },
        });
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    },
    close: () => void db.close(),
  };
}

/**
 * Copies the log into the database as far as no reader prevents it, and syncs that, so that the writer need not when it
 * restarts it: again and again, since what is written during a pass is left by it, until little is. SQLite itself does not
 * sync a database to which it could not copy the whole log; the writer's restart would, with gigabytes to write.
 * `databaseFile`: a descriptor of it that stays open; `ended`: it is to stop.
 */
export function copyLog(path: string, databaseFile: number, ended: () => boolean): void {
  const db = openWriting(path);
  try {
    db.pragma("busy_timeout = 0");
    const state = createWalState(db);
    const leftBytes = (): number => {
      const { bytes, copiedBytes } = state();
      return bytes - copiedBytes;
    };
    for (let before = Infinity, left = leftBytes(); left < before && !ended(); left = leftBytes()) {
      db.pragma("wal_checkpoint(PASSIVE)");
      fdatasyncSync(databaseFile);
      if (left < leftToRestartBytes) return;
      before = left;
    }
  } finally {
    db.close();
  }
}

// How large the write-ahead log may grow. It is copied into the database beside the writer from 64 MB on; only where that
// never catches up does the writer itself wait for readers and restart it. What its file has grown by is cut off in pieces.
import { statSync, truncateSync } from "node:fs";
import type { Database } from "better-sqlite3";
import { pageBytesOf } from "./pages.ts";

/** Of the log: bytes in it, and how many of them the database has already. */
export interface WalState {
  bytes: number;
  copiedBytes: number;
}

/** What stands in front of each page of the log (SQLite's file format §4.1). */
const frameHeaderBytes = 24;

/** Asks without copying anything. An array: SQLite compiles a pragma for each run, and better-sqlite3 an object's shape with it. */
export function createWalState(db: Database): () => WalState {
  const frameBytes = pageBytesOf(db) + frameHeaderBytes;
  const state = db
    .prepare<[], [busy: number, log: number, copied: number]>("PRAGMA wal_checkpoint(NOOP)")
    .raw();
  return () => {
    const [, log, copied] = state.get() ?? [0, 0, 0];
    return { bytes: log * frameBytes, copiedBytes: copied * frameBytes };
  };
}

/** Bytes that the database does not have yet, past which they are copied. A commit beside a copy takes two to four times as long. */
export const checkpointAtBytes = 64 * 1024 * 1024;
/** What the copies may leave to the writer's restart, which copies it while all callers wait. */
export const leftToRestartBytes = 16 * 1024 * 1024;
/** Past this the writer restarts the log, and nothing copies beside it. */
export const restartAtBytes = 256 * 1024 * 1024;
/** After a restart that a reader prevented, the log grows by this before the next; by less where a copy was under way beside it. */
export const restartAgainAfterBytes = 64 * 1024 * 1024;
export const restartSoonAfterBytes = 4 * 1024 * 1024;
/** How long a restart waits for readers, with every caller behind it. */
export const restartWaitMs = 80;
/**
 * What the file keeps of its size: what it grows to under load while no reader delays it. Syncing bytes that are
 * overwritten takes half as long as syncing a file that grows.
 */
export const keptBytes = restartAtBytes + restartAgainAfterBytes;
/** What is cut off at once. SQLite's own journal_size_limit cuts all of it within a commit: seconds, for a file of gigabytes. */
const cutBytes = 4 * 1024 * 1024;

/**
 * Cuts a piece of the log's file off where it is longer than it is to be. Of the writer's thread between two batches: nothing
 * is written to the file then, and what is cut off is behind the log's `bytes`, where SQLite reads nothing. Answers whether
 * there is more to cut; true too while the log itself is that long.
 */
export function cutLogFile(path: string, { bytes }: WalState): boolean {
  const file = `${path}-wal`;
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= keptBytes) return false;
  if (bytes > keptBytes / 2) return true;
  truncateSync(file, Math.max(keptBytes, size - cutBytes));
  return true;
}

// Opens connections to svc.db. Every connection that acknowledges has synchronous=FULL, set and read back:
// better-sqlite3 is compiled to default to NORMAL in WAL mode, which would answer before the fsync. Checkpoints are
// run by hand (wal_autocheckpoint=0), never in front of an answer. Files are 0600 in a directory that is made 0700.
import { chmodSync, closeSync, lstatSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import type { Database } from "better-sqlite3";
import { pageBytes } from "./pages.ts";

export const databaseName = "svc.db";
/** How long a connection waits for another one's lock. */
export const busyTimeoutMs = 5000;

/** As the pragma auto_vacuum answers it. */
const incremental = 2;

export interface PragmasReadBack {
  journalMode: string;
  synchronous: number;
  schemaVersion: number;
}

/** Makes the data directory and the empty database file with their modes. Call with the lock held. */
export function prepareFiles(dataDir: string): string {
  const path = join(dataDir, databaseName);
  makeFile(path);
  return path;
}

/** An empty file of mode 0600. One that exists is never opened here: closing it would drop SQLite's own locks in this process (fcntl). */
export function makeFile(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) closeSync(openSync(path, "wx", 0o600));
  else if (found.isFile()) chmodSync(path, 0o600); // not where a link leads: this may be root in a directory of another
}

/** One that exists keeps its mode: it may be another's, as `/tmp`. The doctor says where others can read it. */
export function makeDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
}

/** A connection that writes. Throws where the database cannot promise what an acknowledgement means. */
export function openWriting(path: string): Database {
  const db = new Sqlite(path, { fileMustExist: true, timeout: busyTimeoutMs });
  try {
    db.pragma("wal_autocheckpoint = 0");
    db.pragma(`page_size = ${pageBytes}`); // this and the next have an effect only before the first table
    // Where it is so already, to set it is a write all the same, beside the one connection that is to write.
    if (db.pragma("auto_vacuum", { simple: true }) !== incremental) db.pragma("auto_vacuum = INCREMENTAL");
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = FULL");
    db.pragma("journal_size_limit = -1"); // wal.ts cuts the log's file
    db.pragma("foreign_keys = ON");
    db.pragma("temp_store = MEMORY"); // savepoint journals too
    const { journalMode, synchronous } = readBack(db);
    if (journalMode !== "wal" || synchronous !== 2) {
      throw new Error(
        `${path}: journal_mode=${journalMode}, synchronous=${synchronous}; wal and 2 are needed before anything is acknowledged`,
      );
    }
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A connection that only reads; a write through it fails. */
export function openReading(path: string, cacheKib: number): Database {
  const db = new Sqlite(path, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs });
  db.pragma(`cache_size = -${cacheKib}`);
  db.pragma("temp_store = MEMORY");
  return db;
}

export function readBack(db: Database): PragmasReadBack {
  return {
    journalMode: String(db.pragma("journal_mode", { simple: true })),
    synchronous: Number(db.pragma("synchronous", { simple: true })),
    schemaVersion: Number(db.pragma("user_version", { simple: true })),
  };
}

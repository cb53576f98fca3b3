// The size of the database's pages. SQLite writes each page of a transaction as a frame of the log with two system calls,
// and copies it into the database later: a mail of 50 KB is 7 pages of 8 KB in place of 13 of 4 KB.
import type { Database } from "better-sqlite3";

/** Of a new database; one that was made with another size keeps it. */
export const pageBytes = 8192;

export const pageBytesOf = (db: Database): number => Number(db.pragma("page_size", { simple: true }));

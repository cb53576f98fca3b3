// A database that is not the one that was written: unreadable, or empty where there was one. It is not opened until
// an operator has looked: a start on it would sweep the spool as orphaned.
import type { Database } from "better-sqlite3";
import { readBack } from "./open.ts";

/** The message says which file, and what is the matter with it. */
export class StoreDamaged extends Error {
  readonly code = "STORE_DAMAGED";
}

/** Before the schema is made: throws StoreDamaged for an empty database beside a spool that is not. */
export function refuseLostDatabase(db: Database, spool: { empty(): boolean }, path: string): void {
  if (readBack(db).schemaVersion === 0 && !spool.empty())
    throw new StoreDamaged(`${path} is empty, and the spool beside it holds messages of another one`);
}

/** SQLite's words for SQLITE_CORRUPT and SQLITE_NOTADB, which come from the store's threads without their codes. */
const damage = /^(?:file is not a database|database disk image is malformed|malformed database schema)/;

/** What an open threw, as StoreDamaged where that is what it means. */
export function asDamage(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || !damage.test(error.message)) return error;
  return new StoreDamaged(`${path} is damaged: ${error.message}`, { cause: error });
}

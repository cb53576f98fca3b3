// `svc migrate`: brings the database of a service that does not run to this program's schema, under the lock that it would
// hold, after a copy beside it. A start does the same; by itself it can be done, and looked at, before one.
import { join } from "node:path";
import { createSpool } from "./spool.ts";
import { asDamage, refuseLostDatabase } from "./engine/corruption.ts";
import { lockDirectory } from "./engine/lock.ts";
import { databaseName, openWriting } from "./engine/open.ts";
import { migrate, plannedMigration } from "./migrations.ts";
import { refuseHalfRestored } from "./restore.ts";

export interface Migrated {
  /** Versions of the schema. */
  from: number;
  to: number;
  /** The database as it was; null: nothing was to be changed, or nothing was. */
  copy: string | null;
}

/** Throws StoreLocked, SchemaTooNew, StoreDamaged; the database is as it was then. */
export function migrateStore({ dataDir, dryRun }: { dataDir: string; dryRun: boolean }): Migrated {
  const path = join(dataDir, databaseName);
  const lock = lockDirectory(dataDir);
  try {
    refuseHalfRestored(dataDir);
    const db = openWriting(path);
    try {
      refuseLostDatabase(
        db,
        createSpool(join(dataDir, "spool"), () => undefined),
        path,
      );
      return dryRun ? { ...plannedMigration(db, path), copy: null } : migrate(db, path);
    } finally {
      db.close();
    }
  } catch (error) {
    throw asDamage(error, path);
  } finally {
    lock.release();
  }
}

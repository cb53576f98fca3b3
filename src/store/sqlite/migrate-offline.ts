// `svc migrate`: brings the database of a service that does not run to this program's schema, under the lock that it would
// hold, after a copy beside it. A start does the same; by itself it can be done, and looked at, before one.
import { join } from "node:path";
import { createSpool } from "./spool.ts";
import { asDamage, refuseLostDatabase } from "./engine/corruption.ts";
import { lockDirectory } from "./engine/lock.ts";
import { databaseName, openWriting } from "./engine/open.ts";
import type { Migrations, SchemaChange } from "./engine/migrate.ts";
import { migrate, plannedMigration } from "./migrations.ts";
import { refuseHalfRestored } from "./restore.ts";

export interface MigrationRequest {
  dataDir: string;
  dryRun: boolean;
  /** This program's. */
  schema?: Migrations | undefined;
}

export interface Migrated extends SchemaChange {
  /** The database as it was; null: nothing was to be changed, or nothing was. */
  copy: string | null;
}

/** Throws StoreLocked, SchemaRefused, StoreDamaged; the database is as it was then. */
export function migrateStore({ dataDir, dryRun, schema }: MigrationRequest): Migrated {
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
      return dryRun ? { ...plannedMigration(db, path, schema), copy: null } : migrate(db, path, schema);
    } finally {
      db.close();
    }
  } catch (error) {
    throw asDamage(error, path);
  } finally {
    lock.release();
  }
}

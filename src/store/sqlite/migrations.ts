// The schema: steps of embedded SQL, each in the file of schema/ that has its table, run by engine/migrate.ts. A test compares
// what they make with the types beside them. Secondary indexes cost more than the row they point at, so each one serves
// a look-up that is promised.
import type { Database } from "better-sqlite3";
import { counterColumns } from "../counters.ts";
import {
  joinSteps,
  planMigration,
  runMigrations,
  type Migrations,
  type SchemaChange,
} from "./engine/migrate.ts";
import * as accounts from "./schema/accounts.ts";
import * as appliance from "./schema/appliance.ts";
import * as events from "./schema/events.ts";
import * as ipPools from "./schema/ip-pools.ts";
import * as listings from "./schema/listings.ts";
import * as messages from "./schema/messages.ts";
import * as statistics from "./schema/statistics.ts";
import * as suppressions from "./schema/suppressions.ts";
import * as tls from "./schema/tls.ts";
import * as tracking from "./schema/tracking.ts";

/** A step runs in this order: a table comes before those that refer to it. */
export const schemaFiles = [
  accounts,
  messages,
  events,
  suppressions,
  ipPools,
  listings,
  statistics,
  appliance,
  tls,
  tracking,
] as const;

/** Versions before the first one were never released. */
export const migrations: Migrations = joinSteps(schemaFiles.map(({ steps }) => steps));

/** Brings the database at `path` to the newest schema. Throws SchemaRefused. */
export function migrate(
  db: Database,
  path: string,
  schema = migrations,
): SchemaChange & { copy: string | null } {
  const done = runMigrations(db, path, schema);
  addCounterColumns(db);
  return done;
}

/** What the steps of `migrate` would do. Throws SchemaRefused. */
export function plannedMigration(db: Database, path: string, schema = migrations): SchemaChange {
  return planMigration(db, path, schema);
}

/**
 * The columns of the counters are made of their list (model/counters.ts): in a new database by its step, since SQLite reads
 * the whole schema again after each ALTER; in an older one here. What was counted before there was a counter is 0; an
 * older program leaves a column that it does not know at that.
 */
function addCounterColumns(db: Database): void {
  const columns = db.pragma("table_info(stats_days)") as { name: string }[];
  const there = new Set(columns.map(({ name }) => name));
  const missing = counterColumns.filter((name) => !there.has(name));
  db.transaction(() => {
    for (const name of missing)
      db.exec(`ALTER TABLE stats_days ADD COLUMN ${name} INTEGER NOT NULL DEFAULT 0`);
  })();
}

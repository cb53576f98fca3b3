// Counters: as they were counted, as they are folded, by day and by quarter of an hour. What a day counted is together, so
// that a fold writes few pages and retention takes a stretch; the quarters of an hour are one text a row and day: most have
// little, and one reading gives the edge of any time zone's day.
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Steps } from "../engine/migrate.ts";
import { counterColumns } from "../../counters.ts";

/** What was counted and is not folded yet: WaitingCounts[] as JSON. */
export const statsWaiting = sqliteTable("stats_waiting", {
  seq: integer("seq").primaryKey(),
  body: text("body").notNull(),
});

/** What is being folded, by the rows that it changes: SortedRow[] as JSON. */
export const statsSorted = sqliteTable("stats_sorted", {
  seq: integer("seq").primaryKey(),
  body: text("body").notNull(),
});

const statsRow = {
  day: integer("day").notNull(),
  accountKey: integer("account_key").notNull(),
  test: integer("test").notNull(),
  kind: integer("kind").notNull(),
  scope: integer("scope").notNull(),
  scopeKey: text("scope_key").notNull(),
  key: text("key").notNull(),
};

/** Sums of a UTC day, of one thing. */
export const statsDays = sqliteTable(
  "stats_days",
  {
    ...statsRow,
    ...Object.fromEntries(counterColumns.map((name) => [name, integer(name).notNull().default(0)])),
  },
  (t) => [primaryKey({ columns: [t.day, t.accountKey, t.test, t.kind, t.scope, t.scopeKey, t.key] })],
);

/** The same by quarters of an hour: QuarterCounts[] as JSON. */
export const statsQuarters = sqliteTable(
  "stats_quarters",
  { ...statsRow, counts: text("counts").notNull() },
  (t) => [primaryKey({ columns: [t.day, t.accountKey, t.test, t.kind, t.scope, t.scopeKey, t.key] })],
);

/** Those of a new database; what is added to the list later, each start adds to an older one (migrations.ts). */
const counters = counterColumns.map((name) => `  ${name} INTEGER NOT NULL DEFAULT 0,\n`).join("");

export const steps: Steps = {
  5: `
CREATE TABLE stats_waiting (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE stats_sorted (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE stats_days (
  day INTEGER NOT NULL, account_key INTEGER NOT NULL, test INTEGER NOT NULL, kind INTEGER NOT NULL,
  scope INTEGER NOT NULL, scope_key TEXT NOT NULL, key TEXT NOT NULL,
${counters}  PRIMARY KEY (day, account_key, test, kind, scope, scope_key, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE stats_quarters (
  day INTEGER NOT NULL, account_key INTEGER NOT NULL, test INTEGER NOT NULL, kind INTEGER NOT NULL,
  scope INTEGER NOT NULL, scope_key TEXT NOT NULL, key TEXT NOT NULL, counts TEXT NOT NULL,
  PRIMARY KEY (day, account_key, test, kind, scope, scope_key, key)
) STRICT, WITHOUT ROWID;
`,
};

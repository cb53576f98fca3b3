// Counters: as they were counted, as they are folded, by day and by quarter of an hour.
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
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

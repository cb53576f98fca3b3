// The keys that sign the tokens of tracked mail, and the names that its links lead to.
import type { Steps } from "../engine/migrate.ts";
import { blob, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** The newest signs. */
export const trackingKeys = sqliteTable("tracking_keys", {
  number: integer("number").primaryKey(),
  secret: blob("secret", { mode: "buffer" }).notNull(),
  createdAt: integer("created_at").notNull(),
});

export const trackingNames = sqliteTable(
  "tracking_names",
  {
    name: text("name").notNull(),
    accountKey: integer("account_key").notNull(),
    /** Of the names of an account the one with the highest was seen last, whatever the clock does. */
    seen: integer("seen").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.name, table.accountKey] }),
    index("tracking_names_account").on(table.accountKey, table.seen),
  ],
);

export const steps: Steps = {
  5: `
CREATE TABLE tracking_keys (
  number INTEGER PRIMARY KEY, secret BLOB NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE tracking_names (
  name TEXT NOT NULL, account_key INTEGER NOT NULL, seen INTEGER NOT NULL, PRIMARY KEY (name, account_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX tracking_names_account ON tracking_names (account_key, seen);
`,
};

// The keys that sign the tokens of tracked mail, and the names that its links lead to.
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

// The keys that sign the tokens of tracked mail, and the names that its links lead to.
import { blob, index, integer, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";

/** The newest signs. */
export const trackingKeys = sqliteTable("tracking_keys", {
  number: integer("number").primaryKey(),
  secret: blob("secret", { mode: "buffer" }).notNull(),
  createdAt: integer("created_at").notNull(),
});

/** In the order in which they were last seen. */
export const trackingNames = sqliteTable(
  "tracking_names",
  {
    key: integer("key").primaryKey(),
    accountKey: integer("account_key").notNull(),
    name: text("name").notNull(),
  },
  (table) => [
    unique().on(table.name, table.accountKey),
    index("tracking_names_account").on(table.accountKey, table.key),
  ],
);

// The keys that sign the tokens of tracked mail.
import { blob, integer, sqliteTable } from "drizzle-orm/sqlite-core";

/** The newest signs. */
export const trackingKeys = sqliteTable("tracking_keys", {
  number: integer("number").primaryKey(),
  secret: blob("secret", { mode: "buffer" }).notNull(),
  createdAt: integer("created_at").notNull(),
});

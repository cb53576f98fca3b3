// What is known of the TLS of recipient domains.
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { MtaStsMode } from "../../../model/mta-sts.ts";

/** MTA-STS policies as they were fetched last; `mx` is JSON. */
export const mtaStsPolicies = sqliteTable(
  "mta_sts_policies",
  {
    domain: text("domain").primaryKey(),
    id: text("id").notNull(),
    mode: text("mode").$type<MtaStsMode>().notNull(),
    mx: text("mx").notNull(),
    fetchedAt: integer("fetched_at").notNull(),
    expiresAt: integer("expires_at").notNull(),
  },
  (table) => [index("mta_sts_policies_expiry").on(table.expiresAt)],
);

// What is known of the TLS of recipient domains.
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Steps } from "../engine/migrate.ts";
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

/** Sessions by what their TLS came to, until they were reported; `policy` and `failure` are JSON, an empty failure is none. */
export const tlsResults = sqliteTable(
  "tls_results",
  {
    day: integer("day").notNull(),
    domain: text("domain").notNull(),
    policy: text("policy").notNull(),
    failure: text("failure").notNull(),
    reason: text("reason").notNull(),
    sessions: integer("sessions").notNull(),
  },
  (table) => [primaryKey({ columns: [table.day, table.domain, table.policy, table.failure] })],
);

export const steps: Steps = {
  5: `
CREATE TABLE mta_sts_policies (
  domain TEXT NOT NULL PRIMARY KEY, id TEXT NOT NULL, mode TEXT NOT NULL, mx TEXT NOT NULL,
  fetched_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mta_sts_policies_expiry ON mta_sts_policies (expires_at);
CREATE TABLE tls_results (
  day INTEGER NOT NULL, domain TEXT NOT NULL, policy TEXT NOT NULL, failure TEXT NOT NULL, reason TEXT NOT NULL,
  sessions INTEGER NOT NULL, PRIMARY KEY (day, domain, policy, failure)
) STRICT, WITHOUT ROWID;
`,
};

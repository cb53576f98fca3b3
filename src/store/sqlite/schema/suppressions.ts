// The suppression list, and what may come to it.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Steps } from "../engine/migrate.ts";
import type { SuppressionReason, SuppressionSource } from "../../../model/suppression.ts";

export const suppressions = sqliteTable(
  "suppressions",
  {
    accountKey: integer("account_key").notNull(),
    canonical: text("canonical").notNull(),
    email: text("email").notNull(),
    reason: text("reason").$type<SuppressionReason>().notNull(),
    source: text("source").$type<SuppressionSource>().notNull(),
    description: text("description"),
    messageId: text("message_id"),
    eventId: text("event_id"),
    smtpCode: integer("smtp_code"),
    smtpStatus: text("smtp_status"),
    expiresAt: integer("expires_at"),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
  },
  (table) => [
    index("suppressions_expiry")
      .on(table.accountKey, table.expiresAt)
      .where(sql`expires_at IS NOT NULL`),
    primaryKey({ columns: [table.accountKey, table.canonical] }),
  ],
);

/** Addresses whose domain did not exist, until the recheck. */
export const nxdomainRechecks = sqliteTable(
  "nxdomain_rechecks",
  {
    accountKey: integer("account_key").notNull(),
    canonical: text("canonical").notNull(),
    domain: text("domain").notNull(),
    knownName: text("known_name").notNull(),
    since: integer("since").notNull(),
    dueAt: integer("due_at").notNull(),
    entry: text("entry").notNull(),
  },
  (table) => [
    index("nxdomain_rechecks_due").on(table.dueAt),
    primaryKey({ columns: [table.accountKey, table.canonical] }),
  ],
);

export const steps: Steps = {
  5: `
CREATE TABLE suppressions (
  account_key INTEGER NOT NULL, canonical TEXT NOT NULL, email TEXT NOT NULL, reason TEXT NOT NULL,
  source TEXT NOT NULL, description TEXT, message_id TEXT, event_id TEXT, smtp_code INTEGER, smtp_status TEXT,
  expires_at INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (account_key, canonical)
) STRICT, WITHOUT ROWID;
CREATE INDEX suppressions_expiry ON suppressions (account_key, expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE nxdomain_rechecks (
  account_key INTEGER NOT NULL, canonical TEXT NOT NULL, domain TEXT NOT NULL, known_name TEXT NOT NULL,
  since INTEGER NOT NULL, due_at INTEGER NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (account_key, canonical)
) STRICT, WITHOUT ROWID;
CREATE INDEX nxdomain_rechecks_due ON nxdomain_rechecks (due_at);
`,
};

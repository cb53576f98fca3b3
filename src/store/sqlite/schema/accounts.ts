// Accounts, their keys, logins, sender domains and quotas. The tables of schema/ are what the look-ups read, and what a test
// holds equal to the tables that the migrations make, every column and index. Times are milliseconds since 1970, keys are
// integers inside; prefixed ULIDs are what the interfaces show.
import { sql } from "drizzle-orm";
import { blob, index, integer, primaryKey, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { Account, GuardBaseline } from "../../../model/account.ts";
import type { KeyStatus, Scope } from "../../../model/api-key.ts";
import type { DkimKey } from "../../../model/dkim-key.ts";
import type { DnsRecord } from "../../../model/dns-record.ts";
import type { DomainStatus } from "../../../model/domain.ts";
import type { AccountLimits, Quota, Rates } from "../../../model/limits.ts";
import type { Steps } from "../engine/migrate.ts";
import type { CredentialStatus } from "../../../model/smtp-credential.ts";

export const accounts = sqliteTable(
  "accounts",
  {
    key: integer("key").primaryKey(),
    id: text("id").notNull().unique(),
    name: text("name").notNull().unique(),
    status: text("status").$type<Account["status"]>().notNull(),
    createdAt: integer("created_at").notNull(),
    pausedAt: integer("paused_at"),
    pauseReason: text("pause_reason"),
    guarded: text("guarded", { mode: "json" }).$type<GuardBaseline>(),
    rates: text("rates", { mode: "json" }).$type<Rates>().notNull().default({}),
    dailyQuota: integer("daily_quota"),
    limits: text("limits", { mode: "json" }).$type<AccountLimits>().notNull().default({}),
    /** Its suppressions that a person or an import added; those of the system are not counted. */
    suppressionsAdded: integer("suppressions_added").notNull().default(0),
  },
  (table) => [
    index("accounts_time").on(table.createdAt),
    index("accounts_paused")
      .on(table.pausedAt)
      .where(sql`paused_at IS NOT NULL`),
  ],
);

export const apiKeys = sqliteTable(
  "api_keys",
  {
    key: integer("key").primaryKey(),
    id: text("id").notNull().unique(),
    accountKey: integer("account_key")
      .notNull()
      .references(() => accounts.key),
    name: text("name").notNull(),
    test: integer("test", { mode: "boolean" }).notNull(),
    scope: text("scope").$type<Scope>().notNull(),
    hash: blob("hash", { mode: "buffer" }).notNull().unique(),
    hint: text("hint").notNull(),
    allowIps: text("allow_ips", { mode: "json" }).$type<string[]>().notNull(),
    status: text("status").$type<KeyStatus>().notNull(),
    createdAt: integer("created_at").notNull(),
    expiresAt: integer("expires_at"),
    lastUsedAt: integer("last_used_at"),
    revokedAt: integer("revoked_at"),
    rates: text("rates", { mode: "json" }).$type<Rates>().notNull().default({}),
    dailyQuota: integer("daily_quota"),
  },
  (table) => [index("api_keys_account").on(table.accountKey, table.createdAt)],
);

export const smtpCredentials = sqliteTable(
  "smtp_credentials",
  {
    key: integer("key").primaryKey(),
    id: text("id").notNull().unique(),
    accountKey: integer("account_key")
      .notNull()
      .references(() => accounts.key),
    name: text("name").notNull(),
    test: integer("test", { mode: "boolean" }).notNull(),
    hash: blob("hash", { mode: "buffer" }).notNull(),
    hint: text("hint").notNull(),
    status: text("status").$type<CredentialStatus>().notNull(),
    createdAt: integer("created_at").notNull(),
    lastUsedAt: integer("last_used_at"),
    revokedAt: integer("revoked_at"),
  },
  (table) => [
    unique().on(table.accountKey, table.test, table.hash),
    index("smtp_credentials_account").on(table.accountKey, table.createdAt),
  ],
);

export const domains = sqliteTable(
  "domains",
  {
    key: integer("key").primaryKey(),
    id: text("id").notNull().unique(),
    accountKey: integer("account_key")
      .notNull()
      .references(() => accounts.key),
    name: text("name").notNull(),
    status: text("status").$type<DomainStatus>().notNull(),
    returnPathDomain: text("return_path_domain").notNull(),
    returnPathBefore: text("return_path_before"),
    records: text("records", { mode: "json" }).$type<DnsRecord[]>().notNull(),
    dkimKeys: text("dkim_keys", { mode: "json" }).$type<DkimKey[]>().notNull(),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
    verifiedAt: integer("verified_at"),
    checkedAt: integer("checked_at"),
    failingSince: integer("failing_since"),
    trackOpens: integer("track_opens", { mode: "boolean" }).notNull().default(false),
    trackClicks: integer("track_clicks", { mode: "boolean" }).notNull().default(false),
    trackingDomain: text("tracking_domain"),
    allowSubdomains: integer("allow_subdomains", { mode: "boolean" }).notNull().default(true),
    revision: integer("revision").notNull().default(0),
    trackingEnabled: integer("tracking_enabled", { mode: "boolean" }).notNull().default(false),
  },
  (table) => [unique().on(table.accountKey, table.name), index("domains_checked").on(table.checkedAt)],
);

/** Messages that a key or account with a quota had accepted on `day`, counted from 1970. */
export const quotaUses = sqliteTable(
  "quota_uses",
  {
    kind: text("kind").$type<Quota["kind"]>().notNull(),
    owner: integer("owner").notNull(),
    day: integer("day").notNull(),
    used: integer("used").notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.owner] })],
);

export const steps: Steps = {
  5: `
CREATE TABLE accounts (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE, status TEXT NOT NULL,
  created_at INTEGER NOT NULL, paused_at INTEGER, pause_reason TEXT, guarded TEXT, rates TEXT NOT NULL DEFAULT '{}',
  daily_quota INTEGER, limits TEXT NOT NULL DEFAULT '{}', suppressions_added INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX accounts_time ON accounts (created_at);
CREATE INDEX accounts_paused ON accounts (paused_at) WHERE paused_at IS NOT NULL;
CREATE TABLE api_keys (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_key INTEGER NOT NULL REFERENCES accounts (key),
  name TEXT NOT NULL, test INTEGER NOT NULL, scope TEXT NOT NULL, hash BLOB NOT NULL UNIQUE, hint TEXT NOT NULL,
  allow_ips TEXT NOT NULL, status TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER, last_used_at INTEGER,
  revoked_at INTEGER, rates TEXT NOT NULL DEFAULT '{}', daily_quota INTEGER
) STRICT;
CREATE INDEX api_keys_account ON api_keys (account_key, created_at);
CREATE TABLE smtp_credentials (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_key INTEGER NOT NULL REFERENCES accounts (key),
  name TEXT NOT NULL, test INTEGER NOT NULL, hash BLOB NOT NULL, hint TEXT NOT NULL, status TEXT NOT NULL,
  created_at INTEGER NOT NULL, last_used_at INTEGER, revoked_at INTEGER, UNIQUE (account_key, test, hash)
) STRICT;
CREATE INDEX smtp_credentials_account ON smtp_credentials (account_key, created_at);
CREATE TABLE domains (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_key INTEGER NOT NULL REFERENCES accounts (key),
  name TEXT NOT NULL, status TEXT NOT NULL, return_path_domain TEXT NOT NULL, records TEXT NOT NULL,
  dkim_keys TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, verified_at INTEGER,
  checked_at INTEGER, failing_since INTEGER, track_opens INTEGER NOT NULL DEFAULT 0,
  track_clicks INTEGER NOT NULL DEFAULT 0, tracking_domain TEXT, allow_subdomains INTEGER NOT NULL DEFAULT 1,
  revision INTEGER NOT NULL DEFAULT 0, return_path_before TEXT,
  tracking_enabled INTEGER NOT NULL DEFAULT 0, UNIQUE (account_key, name)
) STRICT;
CREATE INDEX domains_checked ON domains (checked_at);
CREATE TABLE quota_uses (
  kind TEXT NOT NULL, owner INTEGER NOT NULL, day INTEGER NOT NULL, used INTEGER NOT NULL, PRIMARY KEY (kind, owner)
) STRICT, WITHOUT ROWID;
`,
};

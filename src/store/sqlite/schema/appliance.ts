// The appliance's own: audit log, boots, maintenance, sequences, secrets, how far retention has come.
import { sql } from "drizzle-orm";
import {
  blob,
  index,
  integer,
  primaryKey,
  real,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";
import type { AuditEntry } from "../../../model/audit.ts";
import type { PauseScope } from "../../../model/queue-pause.ts";
import type { OutboundTls } from "../../../model/tls.ts";
import type { Steps } from "../engine/migrate.ts";
import type { SequenceName } from "../sequences.ts";

/** Who did what, from where; `detail` is JSON. */
export const audit = sqliteTable(
  "audit",
  {
    /** Tells rows of one time apart; sequences.ts gives it. */
    seq: integer("seq").primaryKey(),
    at: integer("at").notNull(),
    accountKey: integer("account_key"),
    actorKind: text("actor_kind").$type<AuditEntry["actorKind"]>().notNull(),
    actor: text("actor"),
    sourceIp: text("source_ip"),
    requestId: text("request_id"),
    action: text("action").notNull(),
    target: text("target"),
    times: integer("times").notNull(),
    detail: text("detail").notNull(),
  },
  (table) => [
    index("audit_time").on(table.at),
    uniqueIndex("audit_uses")
      .on(table.actor, table.sourceIp, sql`at / 86400000`)
      .where(sql`action IN ('keys.used', 'smtp_credentials.used')`),
  ],
);

/** Starts of the daemon: what each leased is its own until it ends, or `lease_until` passes without a renewal. */
export const boots = sqliteTable("boots", {
  id: text("id").primaryKey(),
  node: text("node").notNull(),
  leaseUntil: integer("lease_until").notNull(),
  endedAt: integer("ended_at"),
});

/** At most one row: the appliance is in maintenance mode since then. */
export const maintenance = sqliteTable("maintenance", {
  key: integer("key").primaryKey(),
  since: integer("since").notNull(),
  until: integer("until"),
});

/** Parts of the queue that get no attempts; `account_key` 0: of every account's mail. */
export const queuePauses = sqliteTable(
  "queue_pauses",
  {
    scope: text("scope").$type<PauseScope>().notNull(),
    accountKey: integer("account_key").notNull(),
    name: text("name").notNull(),
    since: integer("since").notNull(),
    until: integer("until"),
  },
  (table) => [primaryKey({ columns: [table.scope, table.accountKey, table.name] })],
);
/** Limits of destinations that were set while the program ran; null: the rule says nothing of it. */
export const shapingRules = sqliteTable("shaping_rules", {
  name: text("name").primaryKey(),
  connections: integer("connections"),
  perSecond: real("per_second"),
  messagesPerConnection: integer("messages_per_connection"),
  tls: text("tls").$type<OutboundTls>(),
  updatedAt: integer("updated_at").notNull(),
});

/** The last number of each sequence (sequences.ts). */
export const sequences = sqliteTable("sequences", {
  name: text("name").$type<SequenceName>().primaryKey(),
  last: integer("last").notNull(),
});

export const secrets = sqliteTable("secrets", {
  name: text("name").primaryKey(),
  value: blob("value", { mode: "buffer" }).notNull(),
});

/** One row that is written to find out whether writing works again. */
export const probe = sqliteTable("probe", {
  key: integer("key").primaryKey(),
  bytes: blob("bytes", { mode: "buffer" }).notNull(),
});

export type RetentionKind = "content" | "messages" | "events" | "idempotency";

/** How far retention has walked: rows up to `passed` are gone, or stand in `retention_later`. */
export const retentionWalks = sqliteTable("retention_walks", {
  kind: text("kind").$type<RetentionKind>().primaryKey(),
  passed: integer("passed").notNull(),
});

/** Rows that a walk has passed and left: their time counts from `since` at the earliest. */
export const retentionLater = sqliteTable(
  "retention_later",
  {
    kind: text("kind").$type<RetentionKind>().notNull(),
    since: integer("since").notNull(),
    key: integer("key").notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.since, table.key] })],
);

export const steps: Steps = {
  5: `
CREATE TABLE queue_pauses (
  scope TEXT NOT NULL, account_key INTEGER NOT NULL, name TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER,
  PRIMARY KEY (scope, account_key, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, account_key INTEGER, actor_kind TEXT NOT NULL,
  actor TEXT, source_ip TEXT, request_id TEXT, action TEXT NOT NULL, target TEXT, times INTEGER NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX audit_time ON audit (at);
CREATE UNIQUE INDEX audit_uses ON audit (actor, source_ip, at / 86400000) WHERE action IN ('keys.used', 'smtp_credentials.used');
CREATE TABLE boots (
  id TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL, lease_until INTEGER NOT NULL, ended_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE maintenance (key INTEGER PRIMARY KEY CHECK (key = 1), since INTEGER NOT NULL, until INTEGER) STRICT;
CREATE TABLE shaping_rules (
  name TEXT NOT NULL PRIMARY KEY, connections INTEGER, per_second REAL, messages_per_connection INTEGER, tls TEXT,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sequences (name TEXT NOT NULL PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE secrets (name TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE probe (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE retention_walks (kind TEXT NOT NULL PRIMARY KEY, passed INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE retention_later (
  kind TEXT NOT NULL, since INTEGER NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (kind, since, key)
) STRICT, WITHOUT ROWID;
`,
};

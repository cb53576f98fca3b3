// Events, webhook endpoints, and the deliveries to them.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { DeliveryAttemptStatus, DeliveryStatus } from "../../../model/webhook-delivery.ts";
import type { WebhookFormat } from "../../../model/webhook.ts";
import type { Steps } from "../engine/migrate.ts";
import { accounts } from "./accounts.ts";

export const events = sqliteTable(
  "events",
  {
    /** The order of commits, of all accounts; sequences.ts gives it. */
    seq: integer("seq").primaryKey(),
    id: text("id").notNull().unique(),
    accountKey: integer("account_key").notNull(),
    type: text("type").notNull(),
    occurredAt: integer("occurred_at").notNull(),
    receivedAt: integer("received_at").notNull(),
    messageKey: integer("message_key"),
    recipient: text("recipient"),
    body: text("body").notNull(),
  },
  (table) => [
    index("events_account").on(table.accountKey),
    index("events_message")
      .on(table.messageKey)
      .where(sql`message_key IS NOT NULL`),
    index("events_address")
      .on(table.accountKey, table.recipient)
      .where(sql`message_key IS NULL`),
  ],
);

export const endpoints = sqliteTable(
  "endpoints",
  {
    /** Never given again (sequences.ts): deliveries of a deleted endpoint may still be there. */
    key: integer("key").primaryKey(),
    id: text("id").notNull().unique(),
    accountKey: integer("account_key")
      .notNull()
      .references(() => accounts.key),
    url: text("url").notNull(),
    eventMask: integer("event_mask").notNull(),
    description: text("description"),
    active: integer("active", { mode: "boolean" }).notNull(),
    secret: text("secret").notNull(),
    previousSecret: text("previous_secret"),
    previousSecretUntil: integer("previous_secret_until"),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
    lastSuccessAt: integer("last_success_at"),
    lastFailureAt: integer("last_failure_at"),
    consecutiveFailures: integer("consecutive_failures").notNull(),
    failingSince: integer("failing_since"),
    format: text("format").$type<WebhookFormat>().notNull().default("svc"),
  },
  (table) => [index("endpoints_account").on(table.accountKey, table.createdAt)],
);

/** One event to one endpoint. `due_at` 0: the first attempt waits; a time: a retry; null: leased to a boot, or final. */
export const deliveries = sqliteTable(
  "deliveries",
  {
    endpointKey: integer("endpoint_key").notNull(),
    eventSeq: integer("event_seq").notNull(),
    status: text("status").$type<DeliveryStatus>().notNull(),
    attempts: integer("attempts").notNull(),
    dueAt: integer("due_at"),
    leaseOwner: text("lease_owner"),
    lastAttemptAt: integer("last_attempt_at"),
    lastStatus: integer("last_status"),
    /** Of the last attempt. */
    durationMs: integer("duration_ms"),
  },
  (table) => [
    index("deliveries_due")
      .on(table.endpointKey, table.dueAt)
      .where(sql`due_at IS NOT NULL`),
    index("deliveries_leased")
      .on(table.leaseOwner)
      .where(sql`lease_owner IS NOT NULL`),
    primaryKey({ columns: [table.endpointKey, table.eventSeq] }),
  ],
);

/** Events that are still to be queued for endpoints beyond the first few. */
export const fanOuts = sqliteTable(
  "fan_outs",
  {
    accountKey: integer("account_key").notNull(),
    eventSeq: integer("event_seq").notNull(),
    typeBit: integer("type_bit").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountKey, table.eventSeq] })],
);

/** Attempts that failed, and successes after which the event was sent again; the last success is the delivery's own row. */
export const deliveryAttempts = sqliteTable(
  "delivery_attempts",
  {
    endpointKey: integer("endpoint_key").notNull(),
    eventSeq: integer("event_seq").notNull(),
    attemptedAt: integer("attempted_at").notNull(),
    attempt: integer("attempt").notNull(),
    status: text("status").$type<DeliveryAttemptStatus>().notNull(),
    responseStatus: integer("response_status"),
    error: text("error"),
    durationMs: integer("duration_ms").notNull(),
    nextAttemptAt: integer("next_attempt_at"),
    responseBody: text("response_body"),
  },
  (table) => [primaryKey({ columns: [table.endpointKey, table.eventSeq, table.attemptedAt, table.attempt] })],
);

export const steps: Steps = {
  5: `
CREATE TABLE events (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_key INTEGER NOT NULL, type TEXT NOT NULL,
  occurred_at INTEGER NOT NULL, received_at INTEGER NOT NULL, message_key INTEGER, recipient TEXT, body TEXT NOT NULL
) STRICT;
CREATE INDEX events_account ON events (account_key);
CREATE INDEX events_message ON events (message_key) WHERE message_key IS NOT NULL;
CREATE INDEX events_address ON events (account_key, recipient) WHERE message_key IS NULL;
CREATE TABLE endpoints (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
  account_key INTEGER NOT NULL REFERENCES accounts (key), url TEXT NOT NULL, event_mask INTEGER NOT NULL,
  description TEXT, active INTEGER NOT NULL, secret TEXT NOT NULL, previous_secret TEXT, previous_secret_until INTEGER,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, last_success_at INTEGER, last_failure_at INTEGER,
  consecutive_failures INTEGER NOT NULL, format TEXT NOT NULL DEFAULT 'svc'
) STRICT;
CREATE INDEX endpoints_account ON endpoints (account_key, created_at);
CREATE TABLE deliveries (
  endpoint_key INTEGER NOT NULL, event_seq INTEGER NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL,
  due_at INTEGER, lease_owner TEXT, last_attempt_at INTEGER, last_status INTEGER, duration_ms INTEGER,
  PRIMARY KEY (endpoint_key, event_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (endpoint_key, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_leased ON deliveries (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE TABLE fan_outs (
  account_key INTEGER NOT NULL, event_seq INTEGER NOT NULL, type_bit INTEGER NOT NULL, PRIMARY KEY (account_key, event_seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery_attempts (
  endpoint_key INTEGER NOT NULL, event_seq INTEGER NOT NULL, attempted_at INTEGER NOT NULL, attempt INTEGER NOT NULL,
  status TEXT NOT NULL, response_status INTEGER, error TEXT, duration_ms INTEGER NOT NULL, next_attempt_at INTEGER,
  response_body TEXT, PRIMARY KEY (endpoint_key, event_seq, attempted_at, attempt)
) STRICT, WITHOUT ROWID;
`,
  6: `
ALTER TABLE endpoints ADD COLUMN failing_since INTEGER;
UPDATE endpoints SET failing_since = last_failure_at WHERE consecutive_failures >= 10;
`,
};

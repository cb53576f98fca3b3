// Messages: the row, its content apart from what is scanned, recipients, attempts, inbox copies, and the answers to
// idempotent requests.
import { sql } from "drizzle-orm";
import { blob, index, integer, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { AttemptOutcome, ShownDecision } from "../../../model/attempt.ts";
import type { ContentRef } from "../../../model/content.ts";
import type { MessageSource } from "../../../model/message.ts";
import type { Steps } from "../engine/migrate.ts";
import type { RecipientState, RecipientType } from "../../../model/recipient.ts";

export const messages = sqliteTable(
  "messages",
  {
    /** The order of acceptance; sequences.ts gives it. */
    key: integer("key").primaryKey(),
    id: text("id").notNull().unique(),
    accountKey: integer("account_key").notNull(),
    test: integer("test").notNull(),
    from: text("from_address").notNull(),
    fromName: text("from_name"),
    subject: text("subject").notNull(),
    messageIdHeader: text("message_id_header").notNull(),
    tagsJson: text("tags").notNull(),
    metadataJson: text("metadata").notNull(),
    ipPool: text("ip_pool").notNull(),
    source: text("source").$type<MessageSource>().notNull(),
    apiKey: integer("api_key"),
    sizeBytes: integer("size_bytes").notNull(),
    createdAt: integer("created_at").notNull(),
    sendAt: integer("send_at"),
    queuedAt: integer("queued_at").notNull(),
    signingDomain: text("signing_domain"),
    returnPathDomain: text("return_path_domain").notNull(),
    headerLength: integer("header_length").notNull(),
    bodyHash: blob("body_hash", { mode: "buffer" }).notNull(),
    eightBit: integer("eight_bit").notNull(),
    smtpUtf8: integer("smtp_utf8").notNull(),
    /** Where the bytes are; null once retention has removed them. `inline`: the row of `content` with the message's key. */
    contentKind: text("content_kind").$type<ContentRef["kind"]>(),
    contentName: text("content_name"),
    trackOpens: integer("track_opens").notNull().default(0),
    trackClicks: integer("track_clicks").notNull().default(0),
    /** List-Unsubscribe of each recipient names our page. */
    hostedUnsubscribe: integer("hosted_unsubscribe").notNull().default(0),
    /** The id of the message that it sends again. */
    resendOf: text("resend_of"),
  },
  (table) => [
    index("messages_time").on(table.accountKey, table.createdAt),
    index("messages_spool")
      .on(table.contentName)
      .where(sql`content_name IS NOT NULL`),
  ],
);

export const content = sqliteTable("content", {
  messageKey: integer("message_key").primaryKey(),
  bytes: blob("bytes", { mode: "buffer" }).notNull(),
});

/**
 * Waiting: `due_at` and no owner. Leased: to a boot, and no `due_at`. On hold: leased to a holder (held-mail.ts), with
 * `held_since`. Final: neither.
 */
export const recipients = sqliteTable(
  "recipients",
  {
    /** In the order of the message's recipients; sequences.ts gives it. */
    key: integer("key").primaryKey(),
    messageKey: integer("message_key").notNull(),
    accountKey: integer("account_key").notNull(),
    type: text("type").$type<RecipientType>().notNull(),
    to: text("to_address").notNull(),
    rcptTo: text("rcpt_to").notNull(),
    canonical: text("canonical").notNull(),
    domain: text("domain").notNull(),
    queueName: text("queue_name").notNull(),
    /** As last written; that it is being sent or has become due shows in the columns below (shownState in message-rows.ts). */
    state: text("state").$type<Exclude<RecipientState, "sending">>().notNull(),
    dueAt: integer("due_at"),
    leaseOwner: text("lease_owner"),
    heldSince: integer("held_since"),
    attempts: integer("attempts").notNull(),
    lastAttemptAt: integer("last_attempt_at"),
    lastEventAt: integer("last_event_at").notNull(),
    smtpCode: integer("smtp_code"),
    smtpStatus: text("smtp_status"),
    smtpResponse: text("smtp_response"),
    receivingMta: text("receiving_mta"),
    sendingIp: text("sending_ip"),
    tls: text("tls"),
    updatedAt: integer("updated_at").notNull(),
    complainedAt: integer("complained_at"),
    /** 1: complaints came, and none of them suppressed the recipient. */
    complaintUnconfirmed: integer("complaint_unconfirmed"),
    /** How long it was held, the current hold excluded. */
    heldMs: integer("held_ms").notNull().default(0),
    provider: text("provider"),
    /** Its part of the message's content. */
    shareBytes: integer("share_bytes").notNull().default(0),
    /** The first and the number of opens and clicks, without those by machines. */
    openedAt: integer("opened_at"),
    openCount: integer("open_count").notNull().default(0),
    clickedAt: integer("clicked_at"),
    clickCount: integer("click_count").notNull().default(0),
    unsubscribedAt: integer("unsubscribed_at"),
    /** 1: a machine has opened the message, 2: one has followed a link; or their sum. */
    machineVisits: integer("machine_visits").notNull().default(0),
  },
  (table) => [
    index("recipients_message").on(table.messageKey),
    index("recipients_address").on(table.accountKey, table.canonical, table.messageKey),
    index("recipients_waiting")
      .on(table.queueName, table.dueAt, table.state, table.shareBytes)
      .where(sql`due_at IS NOT NULL`),
    index("recipients_leased")
      .on(table.leaseOwner, table.heldSince, table.shareBytes)
      .where(sql`lease_owner IS NOT NULL`),
    index("recipients_scheduled")
      .on(table.accountKey, table.dueAt)
      .where(sql`state = 'scheduled' AND due_at IS NOT NULL`),
  ],
);

export const attempts = sqliteTable(
  "attempts",
  {
    key: integer("key").primaryKey(),
    id: text("id").notNull(),
    messageKey: integer("message_key").notNull(),
    recipientKey: integer("recipient_key").notNull(),
    attempt: integer("attempt").notNull(),
    startedAt: integer("started_at").notNull(),
    endedAt: integer("ended_at").notNull(),
    sendingIp: text("sending_ip"),
    host: text("host"),
    address: text("address"),
    tls: text("tls"),
    ambiguous: integer("ambiguous").notNull(),
    decidedBy: text("decided_by").$type<ShownDecision>().notNull(),
    outcome: text("outcome").$type<AttemptOutcome>().notNull(),
    smtpCode: integer("smtp_code"),
    smtpStatus: text("smtp_status"),
    smtpResponse: text("smtp_response"),
    nextAttemptAt: integer("next_attempt_at"),
    /** JSON {mx, dialogue}; lives as long as the content. */
    trace: text("trace"),
  },
  (table) => [index("attempts_message").on(table.messageKey)],
);

/** What a recipient of the sandbox would have got; the mail itself is the message's content. */
export const inbox = sqliteTable(
  "inbox",
  {
    key: integer("key").primaryKey(),
    accountKey: integer("account_key").notNull(),
    messageKey: integer("message_key").notNull(),
    to: text("to_address").notNull(),
    caughtAt: integer("caught_at").notNull(),
  },
  (table) => [
    index("inbox_account").on(table.accountKey, table.caughtAt),
    index("inbox_message").on(table.messageKey),
  ],
);

/**
 * The answer to an idempotent request, by the message that it accepted: in the order of messages, the oldest first. The row is
 * appended and only its small index is random, half the cost of a table that is itself sorted by the request's key.
 */
export const idempotency = sqliteTable(
  "idempotency",
  {
    messageKey: integer("message_key").primaryKey(),
    accountKey: integer("account_key").notNull(),
    test: integer("test").notNull(),
    requestKey: text("request_key").notNull(),
    fingerprint: blob("fingerprint", { mode: "buffer" }).notNull(),
    status: integer("status").notNull(),
    body: text("body").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [unique().on(table.accountKey, table.test, table.requestKey)],
);

export const steps: Steps = {
  5: `
CREATE TABLE messages (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_key INTEGER NOT NULL, test INTEGER NOT NULL,
  from_address TEXT NOT NULL, from_name TEXT, subject TEXT NOT NULL, message_id_header TEXT NOT NULL,
  tags TEXT NOT NULL, metadata TEXT NOT NULL, ip_pool TEXT NOT NULL, source TEXT NOT NULL, api_key INTEGER,
  size_bytes INTEGER NOT NULL, created_at INTEGER NOT NULL, send_at INTEGER, queued_at INTEGER NOT NULL,
  signing_domain TEXT, return_path_domain TEXT NOT NULL, header_length INTEGER NOT NULL, body_hash BLOB NOT NULL,
  eight_bit INTEGER NOT NULL, smtp_utf8 INTEGER NOT NULL, content_kind TEXT, content_name TEXT,
  track_opens INTEGER NOT NULL DEFAULT 0, track_clicks INTEGER NOT NULL DEFAULT 0,
  hosted_unsubscribe INTEGER NOT NULL DEFAULT 0, resend_of TEXT
) STRICT;
CREATE INDEX messages_time ON messages (account_key, created_at);
CREATE INDEX messages_spool ON messages (content_name) WHERE content_name IS NOT NULL;
CREATE TABLE content (message_key INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE recipients (
  key INTEGER PRIMARY KEY, message_key INTEGER NOT NULL, account_key INTEGER NOT NULL,
  type TEXT NOT NULL, to_address TEXT NOT NULL, rcpt_to TEXT NOT NULL, canonical TEXT NOT NULL, domain TEXT NOT NULL,
  queue_name TEXT NOT NULL CHECK (queue_name <> ''), state TEXT NOT NULL, due_at INTEGER, lease_owner TEXT, held_since INTEGER,
  attempts INTEGER NOT NULL, last_attempt_at INTEGER, last_event_at INTEGER NOT NULL, smtp_code INTEGER,
  smtp_status TEXT, smtp_response TEXT, receiving_mta TEXT, sending_ip TEXT, tls TEXT, updated_at INTEGER NOT NULL,
  complained_at INTEGER, held_ms INTEGER NOT NULL DEFAULT 0, provider TEXT, complaint_unconfirmed INTEGER,
  share_bytes INTEGER NOT NULL DEFAULT 0,
  opened_at INTEGER, open_count INTEGER NOT NULL DEFAULT 0, clicked_at INTEGER,
  click_count INTEGER NOT NULL DEFAULT 0, unsubscribed_at INTEGER, machine_visits INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX recipients_message ON recipients (message_key);
CREATE INDEX recipients_address ON recipients (account_key, canonical, message_key);
CREATE INDEX recipients_scheduled ON recipients (account_key, due_at) WHERE state = 'scheduled' AND due_at IS NOT NULL;
CREATE INDEX recipients_waiting ON recipients (queue_name, due_at, state, share_bytes) WHERE due_at IS NOT NULL;
CREATE INDEX recipients_leased ON recipients (lease_owner, held_since, share_bytes) WHERE lease_owner IS NOT NULL;
CREATE TABLE attempts (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL, message_key INTEGER NOT NULL, recipient_key INTEGER NOT NULL,
  attempt INTEGER NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL, sending_ip TEXT, host TEXT,
  address TEXT, tls TEXT, ambiguous INTEGER NOT NULL, decided_by TEXT NOT NULL, outcome TEXT NOT NULL,
  smtp_code INTEGER, smtp_status TEXT, smtp_response TEXT, next_attempt_at INTEGER, trace TEXT
) STRICT;
CREATE INDEX attempts_message ON attempts (message_key);
CREATE TABLE inbox (
  key INTEGER PRIMARY KEY, account_key INTEGER NOT NULL, message_key INTEGER NOT NULL, to_address TEXT NOT NULL,
  caught_at INTEGER NOT NULL
) STRICT;
CREATE INDEX inbox_account ON inbox (account_key, caught_at);
CREATE INDEX inbox_message ON inbox (message_key);
CREATE TABLE idempotency (
  message_key INTEGER PRIMARY KEY, account_key INTEGER NOT NULL, test INTEGER NOT NULL, request_key TEXT NOT NULL,
  fingerprint BLOB NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL, created_at INTEGER NOT NULL,
  UNIQUE (account_key, test, request_key)
) STRICT;
`,
};

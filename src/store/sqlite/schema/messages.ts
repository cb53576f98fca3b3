// Messages: the row, its content apart from what is scanned, recipients, attempts, inbox copies, and the answers to
// idempotent requests.
import { sql } from "drizzle-orm";
import { blob, index, integer, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { AttemptOutcome, ShownDecision } from "../../../model/attempt.ts";
import type { ContentRef } from "../../../model/content.ts";
import type { MessageSource } from "../../../model/message.ts";
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

/** The answer to an idempotent request, by the message that it accepted. */
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

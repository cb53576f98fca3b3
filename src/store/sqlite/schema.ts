// The tables as types: what the typed look-ups read and what a test compares with the tables that the
// migrations really made (migrations.ts holds the SQL and the indexes). Times are milliseconds since 1970,
// keys are integers inside; prefixed ULIDs are what the doors show. Content is apart from the rows that are scanned.
// Over 300 lines: it is one list, a line a column.
import { blob, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Account, GuardBaseline } from "../../model/account.ts";
import type { KeyStatus, Scope } from "../../model/api-key.ts";
import type { AttemptOutcome, ShownDecision } from "../../model/attempt.ts";
import type { AuditEntry } from "../../model/audit.ts";
import type { ContentRef } from "../../model/content.ts";
import type { DkimKey } from "../../model/dkim-key.ts";
import type { DnsRecord } from "../../model/dns-record.ts";
import type { DomainStatus } from "../../model/domain.ts";
import type { AccountLimits, Quota, Rates } from "../../model/limits.ts";
import type { MessageSource } from "../../model/message.ts";
import type { RecipientState, RecipientType } from "../../model/recipient.ts";
import type { CredentialStatus } from "../../model/smtp-credential.ts";
import type { SuppressionReason, SuppressionSource } from "../../model/suppression.ts";
import type { DeliveryAttemptStatus, DeliveryStatus } from "../../model/webhook-delivery.ts";
import type { WebhookFormat } from "../../model/webhook.ts";

export const accounts = sqliteTable("accounts", {
  key: integer("key").primaryKey(),
  id: text("id").notNull(),
  name: text("name").notNull(),
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
});

export const apiKeys = sqliteTable("api_keys", {
  key: integer("key").primaryKey(),
  id: text("id").notNull(),
  accountKey: integer("account_key").notNull(),
  name: text("name").notNull(),
  test: integer("test", { mode: "boolean" }).notNull(),
  scope: text("scope").$type<Scope>().notNull(),
  hash: blob("hash", { mode: "buffer" }).notNull(),
  hint: text("hint").notNull(),
  allowIps: text("allow_ips", { mode: "json" }).$type<string[]>().notNull(),
  status: text("status").$type<KeyStatus>().notNull(),
  createdAt: integer("created_at").notNull(),
  expiresAt: integer("expires_at"),
  lastUsedAt: integer("last_used_at"),
  revokedAt: integer("revoked_at"),
  rates: text("rates", { mode: "json" }).$type<Rates>().notNull().default({}),
  dailyQuota: integer("daily_quota"),
});

export const smtpCredentials = sqliteTable("smtp_credentials", {
  key: integer("key").primaryKey(),
  id: text("id").notNull(),
  accountKey: integer("account_key").notNull(),
  name: text("name").notNull(),
  test: integer("test", { mode: "boolean" }).notNull(),
  hash: blob("hash", { mode: "buffer" }).notNull(),
  hint: text("hint").notNull(),
  status: text("status").$type<CredentialStatus>().notNull(),
  createdAt: integer("created_at").notNull(),
  lastUsedAt: integer("last_used_at"),
  revokedAt: integer("revoked_at"),
});

export const domains = sqliteTable("domains", {
  key: integer("key").primaryKey(),
  id: text("id").notNull(),
  accountKey: integer("account_key").notNull(),
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
  trackOpens: integer("track_opens", { mode: "boolean" }).notNull(),
  trackClicks: integer("track_clicks", { mode: "boolean" }).notNull(),
  trackingDomain: text("tracking_domain"),
  allowSubdomains: integer("allow_subdomains", { mode: "boolean" }).notNull(),
  revision: integer("revision").notNull(),
});

export const messages = sqliteTable("messages", {
  key: integer("key").primaryKey({ autoIncrement: true }),
  id: text("id").notNull(),
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
});

export const content = sqliteTable("content", {
  messageKey: integer("message_key").primaryKey(),
  bytes: blob("bytes", { mode: "buffer" }).notNull(),
});

/**
 * Waiting: `due_at` and no lease. Leased: a lease and no `due_at`. On hold: leased to a holder (held-mail.ts), `lease_until`
 * being since when. Final: neither.
 */
export const recipients = sqliteTable("recipients", {
  key: integer("key").primaryKey({ autoIncrement: true }),
  messageKey: integer("message_key").notNull(),
  accountKey: integer("account_key").notNull(),
  type: text("type").$type<RecipientType>().notNull(),
  to: text("to_address").notNull(),
  rcptTo: text("rcpt_to").notNull(),
  canonical: text("canonical").notNull(),
  domain: text("domain").notNull(),
  lane: text("lane").notNull(),
  /** As last written; that it is being sent or has become due shows in the columns below (shownState in message-rows.ts). */
  state: text("state").$type<Exclude<RecipientState, "sending">>().notNull(),
  dueAt: integer("due_at"),
  leaseOwner: text("lease_owner"),
  leaseUntil: integer("lease_until"),
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
  /** How long it was on hold, holds of now left out. */
  heldMs: integer("held_ms").notNull().default(0),
  provider: text("provider"),
  /** Its part of the message's content. */
  shareBytes: integer("share_bytes").notNull().default(0),
});

export const attempts = sqliteTable("attempts", {
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
});

export const events = sqliteTable("events", {
  seq: integer("seq").primaryKey({ autoIncrement: true }),
  id: text("id").notNull(),
  accountKey: integer("account_key").notNull(),
  type: text("type").notNull(),
  occurredAt: integer("occurred_at").notNull(),
  receivedAt: integer("received_at").notNull(),
  messageKey: integer("message_key"),
  recipient: text("recipient"),
  body: text("body").notNull(),
});

export const endpoints = sqliteTable("endpoints", {
  key: integer("key").primaryKey({ autoIncrement: true }),
  id: text("id").notNull(),
  accountKey: integer("account_key").notNull(),
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
  format: text("format").$type<WebhookFormat>().notNull().default("svc"),
});

/** One event to one endpoint. `due_at` 0: the first attempt waits; a time: a retry, or the end of a lease; null: final. */
export const deliveries = sqliteTable(
  "deliveries",
  {
    endpointKey: integer("endpoint_key").notNull(),
    eventSeq: integer("event_seq").notNull(),
    status: text("status").$type<DeliveryStatus>().notNull(),
    attempts: integer("attempts").notNull(),
    dueAt: integer("due_at"),
    leased: integer("leased").notNull(),
    lastAttemptAt: integer("last_attempt_at"),
    lastStatus: integer("last_status"),
    /** Of the last attempt. */
    durationMs: integer("duration_ms"),
  },
  (table) => [primaryKey({ columns: [table.endpointKey, table.eventSeq] })],
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
  (table) => [primaryKey({ columns: [table.accountKey, table.canonical] })],
);

/** The answer to an idempotent request, by the message that it accepted. */
export const secondLooks = sqliteTable(
  "second_looks",
  {
    accountKey: integer("account_key").notNull(),
    canonical: text("canonical").notNull(),
    domain: text("domain").notNull(),
    knownName: text("known_name").notNull(),
    since: integer("since").notNull(),
    dueAt: integer("due_at").notNull(),
    entry: text("entry").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountKey, table.canonical] })],
);

export const idempotency = sqliteTable("idempotency", {
  messageKey: integer("message_key").primaryKey(),
  accountKey: integer("account_key").notNull(),
  test: integer("test").notNull(),
  requestKey: text("request_key").notNull(),
  fingerprint: blob("fingerprint", { mode: "buffer" }).notNull(),
  status: integer("status").notNull(),
  body: text("body").notNull(),
  createdAt: integer("created_at").notNull(),
});

/** What a recipient of the sandbox would have got; the mail itself is the message's content. */
export const inbox = sqliteTable("inbox", {
  key: integer("key").primaryKey(),
  accountKey: integer("account_key").notNull(),
  messageKey: integer("message_key").notNull(),
  to: text("to_address").notNull(),
  caughtAt: integer("caught_at").notNull(),
});

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

/** Who did what, from where; `detail` is JSON. */
export const audit = sqliteTable("audit", {
  seq: integer("seq").primaryKey({ autoIncrement: true }),
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

/** What was counted and is not folded yet: WaitingCounts[] as JSON. */
export const statsWaiting = sqliteTable("stats_waiting", {
  seq: integer("seq").primaryKey(),
  body: text("body").notNull(),
});

/** What is being folded, by the rows that it changes: SortedRow[] as JSON. */
export const statsSorted = sqliteTable("stats_sorted", {
  seq: integer("seq").primaryKey(),
  body: text("body").notNull(),
});

const statsRow = {
  day: integer("day").notNull(),
  accountKey: integer("account_key").notNull(),
  test: integer("test").notNull(),
  kind: integer("kind").notNull(),
  scope: integer("scope").notNull(),
  scopeKey: text("scope_key").notNull(),
  key: text("key").notNull(),
};

/** Sums of a UTC day, of one thing. */
export const statsDays = sqliteTable(
  "stats_days",
  {
    ...statsRow,
    accepted: integer("accepted").notNull(),
    delivered: integer("delivered").notNull(),
    deferred: integer("deferred").notNull(),
    bounced: integer("bounced").notNull(),
    bouncedHard: integer("bounced_hard").notNull(),
    bouncedSoft: integer("bounced_soft").notNull(),
    complained: integer("complained").notNull(),
    opened: integer("opened").notNull(),
    uniqueOpened: integer("unique_opened").notNull(),
    clicked: integer("clicked").notNull(),
    uniqueClicked: integer("unique_clicked").notNull(),
    unsubscribed: integer("unsubscribed").notNull(),
    suppressedRejections: integer("suppressed_rejections").notNull(),
    attempts: integer("attempts").notNull(),
    failed: integer("failed").notNull(),
    deadLettered: integer("dead_lettered").notNull(),
    complainedUnconfirmed: integer("complained_unconfirmed").notNull().default(0),
  },
  (t) => [primaryKey({ columns: [t.day, t.accountKey, t.test, t.kind, t.scope, t.scopeKey, t.key] })],
);

/** The same by quarters of an hour: QuarterCounts[] as JSON. */
export const statsQuarters = sqliteTable(
  "stats_quarters",
  { ...statsRow, counts: text("counts").notNull() },
  (t) => [primaryKey({ columns: [t.day, t.accountKey, t.test, t.kind, t.scope, t.scopeKey, t.key] })],
);

export const secrets = sqliteTable("secrets", {
  name: text("name").primaryKey(),
  value: blob("value", { mode: "buffer" }).notNull(),
});

/** At most one row: the door is closed to clients since then. */
export const maintenance = sqliteTable("maintenance", {
  key: integer("key").primaryKey(),
  since: integer("since").notNull(),
  until: integer("until"),
});

/** One row that is written to find out whether writing works again. */
export const probe = sqliteTable("probe", {
  key: integer("key").primaryKey(),
  bytes: blob("bytes", { mode: "buffer" }).notNull(),
});

export const ipPools = sqliteTable("ip_pools", {
  key: integer("key").primaryKey({ autoIncrement: true }),
  accountKey: integer("account_key").notNull(),
  name: text("name").notNull(),
  description: text("description"),
  /** The default pool of the account; where none is, `default` is. */
  chosen: integer("chosen").notNull(),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

/** An address is in one pool of one account. `bindable`, `ptr` and `ptr_ok` are what was seen last; null: not looked at. */
export const ipAddresses = sqliteTable("ip_addresses", {
  address: text("address").primaryKey(),
  poolKey: integer("pool_key").notNull(),
  hostname: text("hostname"),
  weight: integer("weight").notNull(),
  paused: integer("paused").notNull(),
  warmup: integer("warmup"),
  bindable: integer("bindable"),
  ptr: text("ptr"),
  ptrOk: integer("ptr_ok"),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

/** Addresses that belong to an account, whether it has them in a pool or not. */
export const ipAssignments = sqliteTable("ip_assignments", {
  address: text("address").primaryKey(),
  accountKey: integer("account_key").notNull(),
  assignedAt: integer("assigned_at").notNull(),
});

export const tables = {
  accounts,
  apiKeys,
  smtpCredentials,
  domains,
  messages,
  content,
  recipients,
  attempts,
  events,
  endpoints,
  deliveries,
  deliveryAttempts,
  suppressions,
  secondLooks,
  idempotency,
  inbox,
  quotaUses,
  audit,
  retentionWalks,
  retentionLater,
  statsWaiting,
  statsSorted,
  statsDays,
  statsQuarters,
  ipPools,
  ipAddresses,
  ipAssignments,
  secrets,
  maintenance,
  probe,
};

// The one interface through which every room keeps and finds things. Calls say an
// intent, take and return plain values, and are asynchronous: nobody outside this room knows SQL, SQLite,
// threads or that a second implementation may stand on another engine. Time comes in as an argument.
// A call that writes is answered only after its commit is on disk. StoreUnavailable means that nothing of it was kept.
// Over 300 lines: it is the whole language between the rooms and what is kept, read as one list.
import type { DialogueLine, TlsSummary } from "../mail/outcome.ts";
import type { ContentRef, Job, QueuedMessage } from "../mail/envelope.ts";
import type { MailFacts, StatsKind, StatsScope, Totals } from "./counters.ts";

export type Scope = "send" | "suppressions" | "reporting" | "admin";
export type KeyStatus = "active" | "disabled" | "revoked";

/** Burst and refill of a rate bucket. */
export interface Rate {
  burst: number;
  perSecond: number;
}
/** By the bucket's name (access/buckets.ts): what differs from the rates of everybody. */
export type Rates = Record<string, Rate>;

export interface Limits {
  rates: Rates;
  /** Messages accepted in a day of UTC; null: any number. */
  dailyQuota: number | null;
}
/** By the limit's name (access/account-limits.ts): what differs from the limits of everybody. */
export type AccountLimits = Record<string, number>;
/** A bucket that is null goes back to the rate of everybody. */
export interface LimitsChange {
  rates?: Record<string, Rate | null>;
  dailyQuota?: number | null;
}

/** How many messages a key or an account may have accepted in a day of UTC. `owner`: its integer key. */
export interface Quota {
  kind: "key" | "account";
  owner: number;
  limit: number;
}

export interface Account extends Limits {
  key: number;
  /** What it may have of things that it makes itself. */
  limits: AccountLimits;
  id: string; // acct_…
  name: string;
  /** Of a deleted one the row stays, since what it sent outlives it: its key is never given again. */
  status: "active" | "suspended" | "deleted";
  createdAt: number;
  /** Sending is paused since then: what is due is held, and nothing new is taken. */
  pausedAt: number | null;
  /** As the operator is told it. */
  pauseReason: string | null;
  /** What the guard had counted when the account was last resumed; it counts on from there. */
  guarded: GuardBaseline | null;
}

export type AccountChange = {
  status?: "active" | "suspended";
  limits?: Record<string, number | null>;
} & LimitsChange;

/** The figures from `from` on, as they stood at a resume. */
export interface GuardBaseline {
  from: number;
  delivered: number;
  bounced: number;
  bouncedHard: number;
  complained: number;
}

export interface ApiKey extends Limits {
  key: number;
  id: string; // key_…
  accountKey: number;
  name: string;
  test: boolean;
  scope: Scope;
  /** The last four characters, to tell keys apart. */
  hint: string;
  /** CIDR networks; empty: any address. */
  allowIps: string[];
  status: KeyStatus;
  createdAt: number;
  expiresAt: number | null;
  lastUsedAt: number | null;
  revokedAt: number | null;
}

/** `hash`: SHA-256 of the whole key, 32 bytes; a key is found by it, and it is never read back. */
export type NewApiKey = Omit<ApiKey, "key" | "lastUsedAt" | "revokedAt"> & { hash: Uint8Array };
export type ApiKeyChange = Partial<Pick<ApiKey, "name" | "allowIps">> & LimitsChange;

export interface SmtpCredential {
  key: number;
  id: string; // cred_…
  accountKey: number;
  name: string;
  test: boolean;
  hint: string;
  status: "active" | "revoked";
  createdAt: number;
  lastUsedAt: number | null;
  revokedAt: number | null;
}
/** `hash`: SHA-256 of the password, 32 bytes. */
export type NewSmtpCredential = Omit<SmtpCredential, "key" | "lastUsedAt" | "revokedAt"> & {
  hash: Uint8Array;
};

export type DomainStatus = "pending" | "verified" | "degraded" | "failed" | "suspended";

export interface DkimKey {
  selector: string;
  algorithm: "rsa-sha256" | "ed25519-sha256";
  /** PKCS#8 PEM. */
  privatePem: string;
  /** The `p=` value of the DNS record, base64. */
  publicKey: string;
  /** `pending`: published, and signs once it is seen in the DNS. `retired`: signs no more, and is published a while longer. */
  status: "active" | "pending" | "retired";
  /** When it was retired; absent where it is not. */
  retiredAt?: number;
}

export interface DnsRecord {
  purpose: "dkim" | "spf" | "return_path" | "dmarc" | "tracking";
  type: "TXT" | "MX" | "CNAME";
  name: string;
  value: string;
  required: boolean;
  status: "unchecked" | "ok" | "missing" | "mismatch" | "unknown";
  found: string[];
  issue: string | null;
}

export interface SenderDomain {
  key: number;
  id: string; // dom_…
  accountKey: number;
  /** A-label, lower case. */
  name: string;
  status: DomainStatus;
  returnPathDomain: string;
  /** The one before it, which mail carries until the records of the new one are seen; null: they are. */
  returnPathBefore: string | null;
  records: DnsRecord[];
  dkimKeys: DkimKey[];
  createdAt: number;
  updatedAt: number;
  verifiedAt: number | null;
  checkedAt: number | null;
  /** When a verified domain began to fail; null while it holds. */
  failingSince: number | null;
  /** What is tracked in messages that do not say, once tracking is enabled. */
  trackOpens: boolean;
  trackClicks: boolean;
  /** The host of tracked links; null: none of its own. */
  trackingDomain: string | null;
  /** Its subdomains may send by it (relaxed alignment). */
  allowSubdomains: boolean;
  /** Raised by each change: one that was made of an older state is not kept. */
  revision: number;
}

export type RecipientState =
  "scheduled" | "queued" | "sending" | "delivered" | "deferred" | "bounced" | "canceled";

export interface NewRecipient {
  type: "to" | "cc" | "bcc";
  /** As the sender wrote it. */
  to: string;
  rcptTo: string;
  /** Canonical form that the suppression list compares: whole address in lower case, domain in A-label form. */
  canonical: string;
  domain: string;
  lane: string;
  /** Inserted already leased to `owner` (the runner has a slot for it); null: it waits until `dueAt`. */
  lease: { owner: string; until: number } | null;
}

/** The success of an idempotent request, stored with its effect. */
export interface IdempotencyRecord {
  key: string;
  /** SHA-256 over method, path and body bytes. */
  fingerprint: Uint8Array;
  status: number;
  body: string;
}

export interface NewMessage {
  message: Omit<QueuedMessage, "key" | "content"> & {
    fromName: string | null;
    source: "api" | "smtp";
    apiKey: number | null;
  };
  content: PutContent;
  createdAt: number;
  /** null: at once. */
  sendAt: number | null;
  recipients: NewRecipient[];
  idempotency: IdempotencyRecord | null;
  /** Refuse with `over_quota` what would pass one of these; of a batch, all of it. */
  quotas: Quota[];
  /** Refuse with `queue_full` when this many recipients are unsent; 0: no limit. */
  maxQueue: number;
  /**
   * Refuse with `share_full` when the account has this many recipients, or bytes of their content, unsent; null in it:
   * half of what the other accounts leave, where there are any. null: the account is bound by no share.
   */
  share: { recipients: number | null; bytes: number | null } | null;
}

/** Content that is ready to be named by a message: bytes for the same commit, or a synced spool file. */
export type PutContent =
  { kind: "inline"; bytes: Uint8Array } | { kind: "spool"; name: string; sizeBytes: number };

export type AcceptResult =
  | { kind: "accepted"; jobs: Job[] /* those inserted leased, in the order of `recipients` */ }
  | { kind: "suppressed"; entries: Suppression[] }
  | { kind: "replayed"; status: number; body: string }
  | { kind: "idempotency_conflict" }
  | { kind: "queue_full" }
  | { kind: "share_full"; of: "recipients" | "bytes"; most: number }
  | NotSending
  | { kind: "over_quota"; quota: Quota };

/** The account was paused, suspended or deleted between the first look at it and the commit. */
export interface NotSending {
  kind: "not_sending";
  account: string;
  status: Account["status"] | "deleted";
  pausedAt: number | null;
  pauseReason: string | null;
}

/** A request whose answer is kept: whose key it is, and SHA-256 over method, path and body bytes. */
export interface AnswerRequest {
  accountKey: number;
  test: boolean;
  key: string;
  fingerprint: Uint8Array;
  at: number;
}

/** What the audit log keeps of an act, or of something that was noticed. */
export interface AuditEntry {
  at: number;
  /** null: the whole appliance. */
  accountKey: number | null;
  /** `none`: nobody that is known. */
  actorKind: "operator" | "key" | "smtp_credential" | "system" | "none";
  /** The operator's name, or the id of the key or credential. */
  actor: string | null;
  sourceIp: string | null;
  requestId: string | null;
  /** `keys.create`, `domains.verify`, `security.scope_mismatch`, … */
  action: string;
  /** Id or name of what it was done to. */
  target: string | null;
  /** How often, where several are told in one. */
  times: number;
  detail: Record<string, unknown>;
}

export interface AuditRecord extends AuditEntry {
  seq: number;
  /** Name of the account. */
  account: string | null;
}

export interface AuditFilter {
  accountKey?: number;
  actor?: string;
  target?: string;
  /** `keys.*`: all that begin so. */
  action?: string;
  since?: number;
  until?: number;
}

/** An answer that is kept, and what the audit log is told with it. */
export interface KeptAnswer {
  status: number;
  body: string;
  audit: AuditEntry | null;
}

export type AnsweredResult<T> =
  { kind: "done"; result: T } | Extract<AcceptResult, { kind: "replayed" | "idempotency_conflict" }>;

/** The answer to a request for several things at once, and whose key it stands under. */
export interface BatchAnswer extends IdempotencyRecord {
  accountKey: number;
  test: boolean;
  at: number;
}

/** `refused`: nothing was kept; what stood against each message, null where nothing did. */
export type BatchAcceptResult =
  | { kind: "accepted"; jobs: Job[][] /* of each message, those inserted leased */ }
  | {
      kind: "refused";
      refusals: (Extract<
        AcceptResult,
        { kind: "suppressed" | "queue_full" | "share_full" | "not_sending" }
      > | null)[];
    }
  | Extract<AcceptResult, { kind: "replayed" | "idempotency_conflict" | "over_quota" }>;

export interface AttemptRecord {
  id: string; // att_…
  startedAt: number;
  endedAt: number;
  sendingIp: string | null;
  mx: { host: string; preference: number }[];
  host: string | null;
  address: string | null;
  tls: TlsSummary | null;
  ambiguous: boolean;
  dialogue: DialogueLine[];
  /** What decided the next attempt. */
  decidedBy: "schedule" | "receiver" | "final" | "expired";
}

/** An event, its body written once: what webhooks get and what the API shows, byte for byte. */
export interface NewEvent {
  id: string; // evt_…
  accountKey: number;
  /** One of events/catalog.ts. */
  type: string;
  /** Bit of the type in an endpoint's `eventMask`. */
  typeBit: number;
  occurredAt: number;
  receivedAt: number;
  messageKey: number | null;
  /** Canonical recipient address, for filters. */
  recipient: string | null;
  /** The counters that it raises (counterMask), by the facts of counters.ts; 0: none. */
  counters: number;
  facts: string;
  /** The JSON envelope {event, event_id, occurred_at, received_at, data}. */
  body: string;
}

export interface Settlement {
  /** Recipient key of the job. */
  recipientKey: number;
  messageKey: number;
  accountKey: number;
  owner: string;
  outcome: "delivered" | "deferred" | "bounced";
  /** For deferred: when the next attempt is due. */
  nextAttemptAt: number | null;
  at: number;
  attempt: number;
  /** null where no attempt was made (a suppressed recipient, an expiry without a try). */
  record: AttemptRecord | null;
  /** The group of MX hosts that was tried; null where none was. */
  provider: string | null;
  smtpCode: number | null;
  smtpStatus: string | null;
  smtpResponse: string | null;
  event: NewEvent;
  suppression: NewSuppression | null;
  secondLook: SecondLook | null;
  /** Put a copy into the local inbox (test keys, --dev). */
  catchInInbox: boolean;
}

/** A recipient of a message that went out, as a report that comes back is judged against it. */
export interface SentRecipient {
  /** `attempt`: the last one; no lease. */
  job: Job;
  state: RecipientState;
  receivingMta: string | null;
  sendingIp: string | null;
  /** The group of MX hosts of its last attempt. */
  provider: string | null;
}

/** What a report that came back changes for one recipient. */
export interface Report {
  kind: "bounced" | "complained";
  recipientKey: number;
  messageKey: number;
  at: number;
  /** Of a bounce; a complaint leaves the recipient's reply as it is. */
  smtpCode: number | null;
  smtpStatus: string | null;
  smtpResponse: string | null;
  event: NewEvent;
  suppression: NewSuppression | null;
}

/** `already`: told before, or nothing that it could be about. `busy`: an attempt is under way, ask again later. */
export type ReportResult = "recorded" | "already" | "busy";

export type SuppressionReason = "complaint" | "hard_bounce" | "unsubscribe" | "manual";

/** A stronger reason replaces a weaker one. */
export const reasonStrength: Readonly<Record<SuppressionReason, number>> = {
  manual: 1,
  unsubscribe: 2,
  hard_bounce: 3,
  complaint: 4,
};

export interface NewSuppression {
  accountKey: number;
  canonical: string;
  /** First spelling, for display. */
  email: string;
  reason: SuppressionReason;
  source: "system" | "api" | "cli" | "import" | "recipient" | "smtp";
  description: string | null;
  messageId: string | null;
  eventId: string | null;
  smtpCode: string | null;
  smtpStatus: string | null;
  expiresAt: number | null;
}

/** An address whose domain did not exist: it is suppressed when a later look agrees. */
export interface SecondLook {
  domain: string;
  /** A name that the DNS has shown before. */
  knownName: string;
  /** The bounce. */
  since: number;
  dueAt: number;
  /** The suppression that it comes to; it names the bounce. */
  entry: NewSuppression;
}

export interface Suppression extends NewSuppression {
  createdAt: number;
  updatedAt: number;
}

export interface RecipientRecord {
  type: "to" | "cc" | "bcc";
  to: string;
  state: RecipientState;
  attempts: number;
  lastAttemptAt: number | null;
  nextAttemptAt: number | null;
  smtpCode: number | null;
  smtpStatus: string | null;
  smtpResponse: string | null;
  receivingMta: string | null;
  sendingIp: string | null;
  tls: TlsSummary | null;
  updatedAt: number;
  complainedAt: number | null;
}

export interface MessageRecord {
  key: number;
  id: string;
  accountKey: number;
  test: boolean;
  from: string;
  fromName: string | null;
  subject: string;
  messageIdHeader: string;
  tags: string[];
  metadata: Record<string, string>;
  ipPool: string;
  source: "api" | "smtp";
  sizeBytes: number;
  createdAt: number;
  sendAt: number | null;
  recipients: RecipientRecord[];
  /** null once retention has removed it. */
  content: ContentRef | null;
  signingDomain: string | null;
  headerLength: number;
  bodyHash: Uint8Array;
}

export interface AttemptView extends Omit<AttemptRecord, "decidedBy"> {
  recipient: string;
  attempt: number;
  /** `interrupted`: the program ended before the attempt did; `endedAt` is the next start, which made it due again. */
  outcome: "delivered" | "deferred" | "bounced" | "interrupted";
  decidedBy: AttemptRecord["decidedBy"] | "restart";
  smtpCode: number | null;
  smtpStatus: string | null;
  smtpResponse: string | null;
  nextAttemptAt: number | null;
}

/** A page of a list. `next` is an opaque position of this engine, never parsed by a caller. */
export interface Page<T> {
  rows: T[];
  next: string | null;
  hasMore: boolean;
}

export interface PageRequest {
  limit: number;
  /** `next` of the page before; null: from the start. */
  cursor: string | null;
}

/** Patterns in lower case, in which an asterisk stands for any text; all that concern a recipient hold for the same one. */
export interface Patterns {
  toLike?: string;
  fromLike?: string;
  tagLike?: string;
  domain?: string;
  ip?: string;
  pool?: string;
  /** Of an event. */
  type?: string;
  code?: string;
  enhanced?: string;
  /** An API key's id. */
  key?: string;
}

export const patternNames = [
  "toLike",
  "fromLike",
  "tagLike",
  "domain",
  "ip",
  "pool",
  "type",
  "code",
  "enhanced",
  "key",
] as const satisfies (keyof Patterns)[];

export interface MessageFilter extends Patterns {
  status?: RecipientState | "partially_delivered" | "processing";
  from?: string;
  to?: string; // canonical
  toDomain?: string;
  tag?: string;
  subject?: string; // contains
  ipPool?: string;
  source?: "api" | "smtp";
  createdAfter?: number;
  createdBefore?: number;
}

export type DeliveryStatus = "pending" | "delivered" | "dead_lettered";

export interface EventFilter extends Patterns {
  types?: string[];
  eventId?: string;
  messageId?: string;
  to?: string; // canonical
  tag?: string;
  ipAddress?: string;
  webhookId?: string;
  deliveryStatus?: DeliveryStatus | "none";
  occurredAfter?: number;
  occurredBefore?: number;
  order?: "asc" | "desc";
}

export interface EventRecord {
  seq: number;
  id: string;
  type: string;
  body: string;
  deliveries: {
    webhookId: string;
    status: DeliveryStatus;
    attempts: number;
    lastAttemptAt: number | null;
    lastStatus: number | null;
  }[];
}

/** Which signatures a webhook carries: our own, those of Standard Webhooks, or both. */
export type WebhookFormat = "svc" | "standard" | "both";

export interface Endpoint {
  key: number;
  id: string; // whk_…
  accountKey: number;
  url: string;
  /** Bits of the subscribed event types (events/catalog.ts). */
  eventMask: number;
  description: string | null;
  active: boolean;
  /** 64 printable ASCII characters; their bytes are the HMAC key. */
  secret: string;
  previousSecret: string | null;
  previousSecretUntil: number | null;
  createdAt: number;
  updatedAt: number;
  lastSuccessAt: number | null;
  lastFailureAt: number | null;
  consecutiveFailures: number;
  format: WebhookFormat;
}

/** `since` to before `until`: by when they occurred. `types`: what counts of all, whether it was sent there before or not. */
export type ReplayRequest =
  | { kind: "events"; ids: string[] }
  | { kind: "range"; since: number | null; until: number | null; deadLettered: boolean; types: string[] };

/** One event due at one endpoint; the attempt number is on disk before this is returned. */
export interface DueDelivery {
  accountKey: number;
  endpointKey: number;
  eventSeq: number;
  eventId: string;
  attempt: number; // 1–10
  body: string;
}

export interface DeliveryResult {
  accountKey: number;
  endpointKey: number;
  eventSeq: number;
  attempt: number;
  at: number;
  /** HTTP status of the answer; null where there was none. */
  status: number | null;
  durationMs: number;
  /** Of a failure: why there was no answer, and the start of the one that there was. */
  error: string | null;
  responseBody: string | null;
  result: { kind: "delivered" } | { kind: "retry"; dueAt: number } | { kind: "dead_lettered" };
}

/** One attempt at an endpoint that has ended. */
export interface DeliveryAttempt {
  eventId: string;
  attempt: number;
  /** `failed`: another attempt followed, or is to. */
  status: "delivered" | "failed" | "dead_lettered";
  responseStatus: number | null;
  /** The first 4 KB of what was answered; of failures, and not of all where they are many. */
  responseBody: string | null;
  /** Why there was no answer. */
  error: string | null;
  durationMs: number | null;
  attemptedAt: number;
  /** As it was planned when the attempt failed. */
  nextAttemptAt: number | null;
}

export interface DeliveryAttemptFilter {
  statuses?: DeliveryAttempt["status"][];
  eventId?: string;
}

/** An address of a pool; canonical in form. */
export interface PoolAddress {
  address: string;
  /** Said in EHLO from it; null: the server's own name. */
  hostname: string | null;
  weight: number;
  paused: boolean;
  /** As it was asked for; null: nothing was. */
  warmup: boolean | null;
  /** Whether this machine has it, as it was last seen; null: not looked at yet. */
  bindable: boolean | null;
  ptr: string | null;
  /** The PTR is the name said in EHLO, and that name has the address; null: the DNS did not tell yet. */
  ptrOk: boolean | null;
  createdAt: number;
  updatedAt: number;
}

export interface Pool {
  accountKey: number;
  name: string;
  description: string | null;
  /** What a message that names no pool leaves by; one pool of each account is. */
  isDefault: boolean;
  addresses: PoolAddress[];
  createdAt: number;
  updatedAt: number;
}

export type NewAddress = Pick<PoolAddress, "address" | "hostname" | "weight" | "warmup" | "bindable">;
/** `pool`: where it is moved to, with its settings. */
export type AddressChange = Partial<Pick<PoolAddress, "hostname" | "weight" | "paused" | "warmup">> & {
  pool?: string;
};
export type AddressLook = Pick<PoolAddress, "address" | "bindable" | "ptr" | "ptrOk">;

/** The pool as it is after the write, or what stands against it; nothing was written then. */
export type PoolWrite =
  | { ok: true; pool: Pool }
  | {
      ok: false;
      why:
        | "no_pool"
        | "no_other_pool" // that it is to be moved to
        | "no_address"
        | "exists"
        | "taken" // the address is in a pool, perhaps of another account
        | "too_many_pools"
        | "too_many_addresses"
        | "not_assigned" // the address is not the account's, or belongs to another
        | "default"
        | "has_addresses"
        | "has_mail";
    };

/** What binds an account's key, and not the operator. */
export interface PoolRules {
  /** Pools, or addresses, that the account may have. */
  most?: number;
  /** Where several accounts send: only an address that was assigned to the account. */
  ownOnly?: boolean;
}

/** An address that belongs to an account. */
export interface IpAssignment {
  address: string;
  accountKey: number;
  /** The account's name. */
  account: string;
  /** The pool that it is in; null: none. */
  pool: string | null;
  assignedAt: number;
}

/** `assigned`, `in_pool`: it belongs to another account, or is in a pool of it; `account` names that one. */
export type AssignResult =
  { ok: true; assignment: IpAssignment } | { ok: false; why: "assigned" | "in_pool"; account: string };

export interface InboxMail {
  key: number;
  messageId: string;
  to: string;
  from: string;
  subject: string;
  caughtAt: number;
  sizeBytes: number;
}

export interface QueueCounts {
  scheduled: number;
  queued: number;
  deferred: number;
  sending: number;
  /** Due, and not tried while the account's sending is paused. */
  held: number;
  oldestDueAt: number | null;
}

/** The door is closed to clients, and until when; null: until the operator opens it. */
export interface MaintenanceWindow {
  since: number;
  until: number | null;
}

/** What was removed of one person, and what was not. */
export interface Forgotten {
  /** Records of it as a recipient; `canceled` of them were still to be sent. */
  recipients: number;
  canceled: number;
  /** That were to nobody else: removed whole. */
  messages: number;
  /** Of messages, those to others among them. */
  content: number;
  events: number;
  inbox: number;
  /** Being sent now, and left: ask again. */
  underWay: number;
  /** Messages that others still wait for: their content, which may show the address, stays as long as any other's. */
  contentKept: string[];
}

/** What is to be kept: everything after these moments, and nothing that is still to be sent, however old. */
export interface PurgeRequest {
  now: number;
  /** Content, and what else shows it (dialogues, inbox copies), of messages whose last recipient was final by then. */
  contentBefore: number;
  /** Messages whose last recipient was final by then, with what is left of them. */
  messagesBefore: number;
  /** Events received by then that no delivery waits for and that were not dead-lettered since, with their deliveries. */
  eventsBefore: number;
  /** Rows of the audit log from before then. */
  auditBefore: number;
  /** About how many rows, and pages of content, one call removes: other writes wait for as long. */
  limit: number;
}

export interface Purged {
  content: number;
  messages: number;
  events: number;
  deliveries: number;
  /** Answers to idempotent requests that are too old to be replayed. */
  idempotency: number;
  /** Rows of the statistics. */
  stats: number;
  audit: number;
  /** Spool files. */
  files: number;
  /** There is more to remove, or space to give back: call again. */
  more: boolean;
}

/** What can change apart from the rest: the lists of the API. */
export const resources = [
  "messages",
  "events", // with their deliveries
  "suppressions",
  "webhooks",
  "domains",
  "ip_pools", // with their addresses
  "keys",
  "smtp_credentials",
  "inbox",
  "accounts",
  "stats", // beside messages and events, which are counted
] as const;
export type Resource = (typeof resources)[number];

/**
 * When what was asked for last changed: `at`, a whole second that no answer before the change could name. A row's own
 * time may stand for it where the row changes at nothing else, not before `late` and counted from the end of the second
 * after it: rows are written before they are seen.
 */
export interface LastChange {
  at: number;
  late: number;
}

/** One row of the statistics: an account, or one tag, domain, pool, address, … of it. */
export interface StatsOf {
  accountKey: number;
  test: boolean;
  kind: StatsKind;
  /** Of the kind `account`: empty. */
  key: string;
}

/** A list of the statistics: every tag, say, of an account, or of what one sending domain or one pool sent. */
export interface StatsListOf {
  accountKey: number;
  test: boolean;
  kind: Exclude<StatsKind, "account">;
  scope: { of: StatsScope; key: string };
}

/** Recipients that were refused for being suppressed. */
export interface Rejection extends Pick<MailFacts, "accountKey" | "test" | "domain" | "pool" | "tagsJson"> {
  recipientDomains: string[];
  at: number;
}

/** What a commit brought; told to listeners right after it, on the loop. */
export interface Commit {
  events: boolean;
}

/** A time in which mail of a lane could not be tried, since its pool could use no address. */
export interface Wait {
  from: number;
  until: number;
}

export interface Store {
  // access
  accountByName(name: string): Promise<Account | null>;
  accountByKey(key: number): Promise<Account | null>;
  accountById(id: string): Promise<Account | null>;
  /** null: there is an account of this name. */
  createAccount(account: Pick<Account, "id" | "name" | "createdAt">): Promise<Account | null>;
  /** In the order in which they were made, without those that were deleted. */
  listAccounts(page: PageRequest): Promise<Page<Account>>;
  /** The account as it is then; null: no such account, or it was deleted. */
  changeAccount(id: string, change: AccountChange): Promise<Account | null>;
  /** Whether any mail of the account is still to be sent. */
  hasUnsent(accountKey: number): Promise<boolean>;
  /**
   * A suspended account, for good: keys and logins are revoked; domains, webhooks and suppressions go; its name is
   * free. Messages and events stay for their retention. False: there is none that is suspended.
   */
  deleteAccount(id: string, at: number): Promise<boolean>;
  createApiKey(key: NewApiKey): Promise<ApiKey>;
  apiKeyByHash(hash: Uint8Array): Promise<ApiKey | null>;
  apiKey(accountKey: number, id: string): Promise<ApiKey | null>;
  /** In the order in which they were made. */
  listApiKeys(accountKey: number, page: PageRequest): Promise<Page<ApiKey>>;
  changeApiKey(accountKey: number, id: string, change: ApiKeyChange): Promise<ApiKey | null>;
  /** Revoked is final: answers the key as it is now, null where there is none. */
  setApiKeyStatus(accountKey: number, id: string, status: KeyStatus, at: number): Promise<ApiKey | null>;
  createSmtpCredential(credential: NewSmtpCredential): Promise<SmtpCredential>;
  smtpCredentialByHash(accountKey: number, test: boolean, hash: Uint8Array): Promise<SmtpCredential | null>;
  listSmtpCredentials(accountKey: number): Promise<SmtpCredential[]>;
  /** A credential in place of an active one, which is revoked: the new one; the old one where it was revoked before; null: there is none. */
  rotateSmtpCredential(
    accountKey: number,
    id: string,
    fresh: Pick<NewSmtpCredential, "id" | "hash" | "hint">,
    at: number,
  ): Promise<SmtpCredential | null>;
  revokeSmtpCredential(accountKey: number, id: string, at: number): Promise<SmtpCredential | null>;
  /** Notes uses, coarsely: callers send a key at most once a minute. */
  noteUse(use: { apiKeys: number[]; smtpCredentials: number[]; at: number }): Promise<void>;

  // domains
  /** null where the account has the domain already. Throws LimitReached where it would have more than `most`. */
  createDomain(domain: Omit<SenderDomain, "key">, most?: number): Promise<SenderDomain | null>;
  countDomains(accountKey: number): Promise<number>;
  domainByName(accountKey: number, name: string): Promise<SenderDomain | null>;
  listDomains(accountKey: number): Promise<SenderDomain[]>;
  /**
   * Domains that should be looked at again: those that wait for the DNS (pending, or with a pending key) checked before
   * `pendingBefore`, others before `othersBefore`; of each account up to `limit`, the longest unseen first.
   */
  domainsToCheck(pendingBefore: number, othersBefore: number, limit: number): Promise<SenderDomain[]>;
  /** Everything of it that can change. False: it was changed or deleted since it was read, and nothing was written. */
  saveDomain(domain: SenderDomain): Promise<boolean>;
  deleteDomain(accountKey: number, name: string): Promise<boolean>;

  // content and messages
  /** Bytes up to 64 KB stay in memory for the commit; above, a spool file that is synced before this resolves. */
  putContent(bytes: AsyncIterable<Uint8Array>): Promise<PutContent>;
  /** Lets go of content that no message came to name. */
  dropContent(content: PutContent): Promise<void>;
  /** The bytes from `offset` on, in chunks. Throws ContentGone where retention removed it. */
  openContent(ref: ContentRef, offset?: number): AsyncIterable<Buffer>;
  /** The first of the quotas that is used up on the day of `at`; null: none is. */
  spentQuota(quotas: Quota[], at: number): Promise<Quota | null>;
  acceptMessage(message: NewMessage): Promise<AcceptResult>;
  /** All of the messages (their own idempotency records are null) and the one answer, in one transaction, or nothing. */
  acceptMessages(messages: NewMessage[], answer: BatchAnswer | null): Promise<BatchAcceptResult>;
  /** What a stored key would answer: looked up before the body is checked. */
  idempotent(
    accountKey: number,
    test: boolean,
    key: string,
    notBefore: number,
  ): Promise<{ fingerprint: Uint8Array; status: number; body: string } | null>;
  /**
   * Runs `effect` and keeps what `answer` makes of its result, under the request's key where it has one, with what the
   * audit log is told: in one transaction with what it wrote, at most one call of the store that it is given. What
   * either throws is thrown on, and nothing is kept. Both may run again where another write came between, so nothing
   * else may happen in them.
   */
  answered<T>(
    request: AnswerRequest | null,
    effect: (store: Store) => Promise<T>,
    answer: (result: T) => KeptAnswer,
  ): Promise<AnsweredResult<T>>;
  message(accountKey: number, id: string): Promise<MessageRecord | null>;
  listMessages(accountKey: number, filter: MessageFilter, page: PageRequest): Promise<Page<MessageRecord>>;
  attempts(accountKey: number, messageId: string): Promise<AttemptView[]>;
  /** Cancels every recipient that is scheduled, queued, deferred or on hold, and not leased; `canceled` is how many, `message` as it is then. null: no such message. */
  cancelMessage(
    accountKey: number,
    id: string,
    at: number,
  ): Promise<{ canceled: number; message: MessageRecord } | null>;

  // queue
  /** Lanes that hold waiting recipients, in lane order from after `afterLane`, each with its earliest due time. */
  lanes(afterLane: string | null, limit: number): Promise<{ lane: string; dueAt: number }[]>;
  /**
   * Leases what is due in a lane, oldest first, attempt numbers raised and written. `waits`: times, each after the one
   * before, that do not count towards the age of what was due in them. `nextDueAt`: the lane's earliest that still waits.
   */
  claimDue(claim: {
    owner: string;
    lane: string;
    limit: number;
    now: number;
    leaseUntil: number;
    waits?: readonly Wait[];
  }): Promise<{ jobs: Job[]; nextDueAt: number | null }>;
  /** Extends every lease of an owner; answers the number of leases held. */
  renewLeases(owner: string, until: number): Promise<number>;
  /** Puts back what was leased and not tried; the attempt number goes back too. */
  release(owner: string, recipientKeys: number[], dueAt: number): Promise<void>;
  /**
   * At start: leases of other owners (`owner` is this boot) and expired ones become due at `now`; answers how many. The
   * attempt that each lease was for is recorded as interrupted, and as ambiguous except in `localLane`, whose mail stays here.
   */
  takeBackLeases(owner: string, now: number, localLane: string): Promise<number>;
  /** Outcome, attempt, event, webhook rows, suppression and inbox copy in one transaction. False: the recipient was final already and nothing was written. */
  settle(settlement: Settlement): Promise<boolean>;
  queueCounts(): Promise<QueueCounts>;

  // holds
  /** From now on a claim puts what is due of the account on hold. `audit` is written with it. False: it is paused already, or there is none. */
  pauseAccount(accountKey: number, at: number, reason: string, audit?: AuditEntry | null): Promise<boolean>;
  /** Ends the pause; what is on hold stays there until it is released. False: it was not paused. */
  resumeAccount(accountKey: number, guarded: GuardBaseline | null): Promise<boolean>;
  pausedAccounts(): Promise<Account[]>;
  /** Accounts of whose mail something is on hold. */
  accountsOnHold(): Promise<number[]>;
  /** Puts up to `limit` of what is on hold, the longest held first, back in line, unless the account is paused: how many, and their lanes. */
  releaseHeld(
    accountKey: number,
    at: number,
    limit: number,
  ): Promise<{ released: number; lanes: { lane: string; dueAt: number }[] }>;

  // maintenance
  maintenance(): Promise<MaintenanceWindow | null>;
  /** null ends it. */
  setMaintenance(window: MaintenanceWindow | null): Promise<void>;

  // reports
  /** The recipients of a message, by its key or its id, in any account; null: no such message. */
  sentMessage(of: { key: number } | { id: string }): Promise<SentRecipient[] | null>;
  /** What a returned mail tells, in one transaction. A recipient bounces and complains once: later reports write nothing. */
  settleReports(reports: Report[]): Promise<ReportResult[]>;

  // events
  recordEvent(event: NewEvent): Promise<void>;
  /** Accounts that have an event after this one, and the last event of all. */
  accountsWithEvents(afterSeq: number): Promise<{ accounts: number[]; lastSeq: number }>;
  listEvents(accountKey: number, filter: EventFilter, page: PageRequest): Promise<Page<EventRecord>>;

  // suppressions
  suppression(accountKey: number, canonical: string, now: number): Promise<Suppression | null>;
  suppressed(accountKey: number, canonicals: string[], now: number): Promise<Suppression[]>;
  listSuppressions(
    accountKey: number,
    filter: {
      reason?: SuppressionReason;
      source?: string;
      domain?: string;
      emailPrefix?: string;
      createdAfter?: number;
      createdBefore?: number;
    },
    page: PageRequest,
  ): Promise<Page<Suppression>>;
  /**
   * A stronger reason replaces a weaker one (complaint > hard_bounce > unsubscribe > manual); the first spelling stays.
   * All are of one account. Throws LimitReached where it would have more than `most` that were added by hand.
   */
  addSuppressions(
    entries: NewSuppression[],
    at: number,
    most?: number,
  ): Promise<{ added: number; updated: number; unchanged: number; rows: Suppression[] }>;
  removeSuppression(accountKey: number, canonical: string): Promise<boolean>;
  /** Looks that are due, the oldest first. */
  secondLooksDue(now: number, limit: number): Promise<SecondLook[]>;
  /** `suppress`: agreed, `drop`: there is nothing to it, `later`: due again at `dueAt`. */
  settleSecondLooks(looks: {
    suppress: SecondLook[];
    drop: SecondLook[];
    later: SecondLook[];
    at: number;
    dueAt: number;
  }): Promise<void>;
  /** Domains that took mail lately, in any account; of the newest thousand recipients. */
  domainsDelivered(limit: number): Promise<string[]>;

  // webhooks
  /** Throws LimitReached where the account would have more than `most`. */
  createEndpoint(endpoint: Omit<Endpoint, "key">, most?: number): Promise<Endpoint>;
  endpoint(accountKey: number, id: string): Promise<Endpoint | null>;
  endpointByKey(key: number): Promise<Endpoint | null>;
  listEndpoints(accountKey: number): Promise<Endpoint[]>;
  /** `discardBacklog`: pending deliveries are dropped; the events stay in the pull API. */
  updateEndpoint(
    accountKey: number,
    id: string,
    change: Partial<Pick<Endpoint, "url" | "eventMask" | "description" | "active" | "format">> & {
      updatedAt: number;
    },
    options?: { discardBacklog?: boolean },
  ): Promise<Endpoint | null>;
  /** Signs with `secret` from now on, and until `previousUntil` with the one before as well; null: no more. */
  rotateSecret(
    accountKey: number,
    id: string,
    rotation: { secret: string; previousUntil: number | null; at: number },
  ): Promise<Endpoint | null>;
  /** Puts events in line again, with all their attempts; answers how many. What is in line already is left alone. null: no such endpoint. */
  replayDeliveries(accountKey: number, id: string, which: ReplayRequest, at: number): Promise<number | null>;
  deleteEndpoint(accountKey: number, id: string): Promise<boolean>;
  /** Active endpoints with pending deliveries and when the earliest of each is due (0: a first attempt waits). */
  endpointsDue(): Promise<{ endpointKey: number; accountKey: number; dueAt: number }[]>;
  /** First attempts in event order before retries; raises and writes the attempt number, leased until `leaseUntil`. */
  claimDeliveries(claim: {
    accountKey: number;
    endpointKey: number;
    limit: number;
    now: number;
    leaseUntil: number;
  }): Promise<{ deliveries: DueDelivery[]; nextDueAt: number | null }>;
  /** Of one account. */
  settleDeliveries(results: DeliveryResult[]): Promise<void>;
  /** Puts back what was claimed and not tried: its attempt does not count. */
  giveBackDeliveries(deliveries: DueDelivery[], at: number): Promise<void>;
  /** Attempts of the endpoint: events newest first, of each the last attempt first. null: no such endpoint. */
  listDeliveries(
    accountKey: number,
    id: string,
    filter: DeliveryAttemptFilter,
    page: PageRequest,
  ): Promise<Page<DeliveryAttempt> | null>;

  // audit
  recordAudit(entries: AuditEntry[]): Promise<void>;
  /** Newest first. */
  listAudit(filter: AuditFilter, page: PageRequest): Promise<Page<AuditRecord>>;

  // pools
  /** By name, their addresses in order; `default` is always among them. */
  listPools(accountKey: number): Promise<Pool[]>;
  /** Accounts that have more to their pools than `default` without an address. */
  accountsWithPools(): Promise<number[]>;
  createPool(pool: {
    accountKey: number;
    name: string;
    description: string | null;
    isDefault: boolean;
    at: number;
    /** Pools that the account may have. */
    most?: number;
  }): Promise<PoolWrite>;
  updatePool(
    accountKey: number,
    name: string,
    change: { description?: string | null; isDefault?: boolean },
    at: number,
  ): Promise<PoolWrite>;
  /** Only a pool without addresses and without unsent mail, whose lanes begin with `lanes`. */
  deletePool(accountKey: number, name: string, lanes: string): Promise<PoolWrite>;
  addAddress(
    accountKey: number,
    pool: string,
    address: NewAddress,
    at: number,
    rules?: PoolRules,
  ): Promise<PoolWrite>;
  /** Answers the pool that it is in then. */
  updateAddress(
    accountKey: number,
    pool: string,
    address: string,
    change: AddressChange,
    at: number,
  ): Promise<PoolWrite>;
  removeAddress(accountKey: number, pool: string, address: string, at: number): Promise<PoolWrite>;
  saveLooks(looks: AddressLook[], at: number): Promise<void>;
  /** Whether the account's key may put the address into a pool: there is no other account, or it was assigned. */
  mayHoldAddress(accountKey: number, address: string): Promise<boolean>;
  listAssignments(): Promise<IpAssignment[]>;
  assignAddress(accountKey: number, address: string, at: number): Promise<AssignResult>;
  /** Takes an address from its account, and out of the pool that it is in. null: it belongs to none. */
  unassignAddress(address: string, at: number): Promise<IpAssignment | null>;

  // inbox
  listInbox(accountKey: number, page: PageRequest): Promise<Page<InboxMail>>;
  clearInbox(accountKey: number): Promise<number>;

  // statistics
  /** Counts a refusal, at the latest a second later, together with those of that second. */
  countRejection(rejection: Rejection): void;
  /** What an account counted from `from` until before `to`, both widened to quarters of an hour. Not for every message. */
  statsTotals(accountKey: number, range: { from: number; to: number; test: boolean }): Promise<Totals>;
  /** The sums between each two neighbours of `bounds`, ascending times at quarters of an hour. */
  statsSums(of: StatsOf, bounds: number[]): Promise<Totals[]>;
  /** Every key of a list that was counted from `from` until before `to`, times at quarters of an hour; in no order. */
  statsList(of: StatsListOf, range: { from: number; to: number }): Promise<{ key: string; totals: Totals }[]>;
  /** Sorts what was counted into the rows that statistics are read from. Every reading does it too; done often, it is little. */
  foldStats(): Promise<void>;

  // one person
  /**
   * Removes a piece of what an account keeps of an address, but for its suppressions; `afterKey`: 0, then the `next` of
   * the piece before, until that is null.
   */
  forgetRecipient(
    accountKey: number,
    canonical: string,
    afterKey: number,
  ): Promise<Forgotten & { next: number | null }>;

  // retention
  /** Removes a piece of what is too old, the oldest first, and gives space back that has lain idle. */
  purge(request: PurgeRequest): Promise<Purged>;

  // the store itself
  /** A secret of this installation, made at first use: 32 random bytes (`verp`, …). */
  secret(name: string): Promise<Uint8Array>;
  /** Pragmas as read back, file sizes, rows waiting: for status and tests. */
  health(): Promise<{
    journalMode: string;
    synchronous: number;
    schemaVersion: number;
    freeBytes: number;
    walBytes: number;
    writable: boolean;
  }>;
  /** When anything of these kinds, of the account or of all of them, last changed; to be asked before it is read. */
  lastChange(accountKey: number, of: readonly Resource[]): Promise<LastChange>;
  /** True while free space is under the low-water mark or the last write failed for want of room. */
  full(): boolean;
  onCommit(listener: (commit: Commit) => void): () => void;
  close(): Promise<void>;
}

/** The store could not write: nothing of the call was kept. `full`: no room; `failed`: the disk or engine refused. */
export class StoreUnavailable extends Error {
  readonly why: "full" | "failed";
  constructor(why: "full" | "failed", detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.name = "StoreUnavailable";
    this.why = why;
  }
}

/** The account has as many of these as it may; nothing was written. */
export class LimitReached extends Error {
  /** How many it has. */
  readonly has: number;
  constructor(has: number) {
    super(`the account has ${has}, which is its limit`);
    this.name = "LimitReached";
    this.has = has;
  }
}

/** The content was removed by retention. */
export class ContentGone extends Error {}

/** Another process holds the data directory. */
export class StoreLocked extends Error {}

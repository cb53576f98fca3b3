// The transaction that an acceptance stands for: idempotency record, whether the account may still send (it may have been
// paused or deleted while the content was on its way), the suppression check that decides, the queue's limit, message, content and recipients, all or nothing. Both halves are here: the loop packs a message into
// flat rows (cheap to hand to a thread), the writer runs them.
import type { Database, Statement } from "better-sqlite3";
import type { MessageRefusal, NewMessage, QuotaSpent } from "../../model/acceptance.ts";
import { operationsAccount } from "../../model/account.ts";
import type { ContentRef } from "../../model/content.ts";
import { counterMask } from "../../model/counters.ts";
import { mailFacts } from "../../model/facts.ts";
import type { BatchAnswer } from "../../model/idempotency.ts";
import type { QueueShare, Quota } from "../../model/limits.ts";
import type { Job, QueuedMessage } from "../../model/queued-recipient.ts";
import type { Suppression } from "../../model/suppression.ts";
import { createNotSending } from "./not-sending.ts";
import { createQuotas } from "./quotas.ts";
import type { Answers, Stored } from "./idempotency.ts";
import { createQueueLimit, createShareLimit } from "../queue-limit.ts";
import { suppressionColumns } from "./suppressions.ts";
import type { Tally } from "../batch-counters.ts";

export type Cell = string | number | null;

export interface PackedMessage {
  accountKey: number;
  test: number;
  createdAt: number;
  maxQueue: number;
  /** null: its account is bound by no share. */
  share: QueueShare | null;
  /** Free bytes of the disk before all mail is refused. */
  room: number;
  /** Of its content, to each recipient. */
  bytesEach: number;
  /** null: none, which is what most have. */
  quotas: Quota[] | null;
  /** What its recipients are counted under, but for their own domains. */
  domain: string | null;
  pool: string;
  tagsJson: string;
  /** In the order of `insertMessage`'s columns, the body hash left out. */
  row: Cell[];
  inline: boolean;
  /** In the order of `insertRecipient`'s columns, the message key left out. */
  recipients: Cell[][];
  idempotency: { key: string; status: number; body: string } | null;
}

/** The keys that a message and its recipients got. */
export interface Inserted {
  messageKey: number;
  recipientKeys: number[];
}

export type Accepted = ({ kind: "accepted" } & Inserted) | MessageRefusal | QuotaSpent | Stored;

export interface PackedBatch {
  messages: PackedMessage[];
  idempotency: {
    accountKey: number;
    test: number;
    key: string;
    at: number;
    status: number;
    body: string;
  } | null;
}

export type BatchAccepted =
  | { kind: "accepted"; messages: Inserted[] }
  | { kind: "refused"; refusals: (MessageRefusal | null)[] }
  | QuotaSpent
  | Stored;

/** Blobs of one packed message. */
const blobsAMessage = 3;

/** Where they stand in a packed recipient. */
const canonicalAt = 4;
const domainAt = 5;

const accepted = counterMask(["accepted"]);
const rejected = counterMask(["suppressedRejections"]);

/** The message as rows, and its bytes: [body hash, fingerprint or nothing, content or nothing]. `room`: free bytes. */
export function packMessage(
  input: NewMessage,
  room = Infinity,
): { packed: PackedMessage; blobs: Uint8Array[] } {
  const { message: m, content, createdAt, sendAt, idempotency } = input;
  const later = sendAt !== null && sendAt > createdAt;
  const test = m.test ? 1 : 0;
  const inline = content.kind === "inline";
  const sizeBytes = inline ? content.bytes.byteLength : content.sizeBytes;
  // prettier-ignore
  const row: Cell[] = [
    m.id, m.accountKey, test, m.from, m.fromName, m.subject, m.messageIdHeader, m.tagsJson, m.metadataJson, m.ipPool,
    m.source, m.apiKey, sizeBytes, createdAt, sendAt, m.queuedAt, m.signingDomain, m.returnPathDomain, m.headerLength,
    m.eightBit ? 1 : 0, m.smtpUtf8 ? 1 : 0, content.kind, inline ? null : content.name,
  ];
  const state = later ? "scheduled" : "queued";
  const dueAt = sendAt ?? createdAt;
  const bytesEach = Math.ceil(sizeBytes / Math.max(1, input.recipients.length));
  // prettier-ignore
  const recipients = input.recipients.map((r): Cell[] => [
    m.accountKey, r.type, r.to, r.rcptTo, r.canonical, r.domain, r.lane, state, r.lease ? null : dueAt,
    r.lease ? r.lease.owner : null, r.lease ? r.lease.until : null, r.lease ? 1 : 0, createdAt, bytesEach,
  ]);
  const blobs = [m.bodyHash, idempotency ? idempotency.fingerprint : empty, inline ? content.bytes : empty];
  const stored = idempotency && { key: idempotency.key, status: idempotency.status, body: idempotency.body };
  return {
    packed: {
      accountKey: m.accountKey,
      test,
      createdAt,
      maxQueue: input.maxQueue,
      share: input.share,
      room,
      bytesEach,
      quotas: input.quotas.length > 0 ? input.quotas : null,
      domain: m.signingDomain,
      pool: m.ipPool,
      tagsJson: m.tagsJson,
      row,
      inline,
      recipients,
      idempotency: stored,
    },
    blobs,
  };
}

const empty = new Uint8Array(0);

/** The jobs of the recipients that were inserted leased, from what the caller knows and the keys they got. */
export function jobsOf(input: NewMessage, accepted: Inserted): Job[] {
  const { fromName: _name, source: _source, apiKey: _key, ...rest } = input.message;
  const { content } = input;
  const ref: ContentRef =
    content.kind === "inline"
      ? { kind: "inline", id: accepted.messageKey, sizeBytes: content.bytes.byteLength }
      : { kind: "spool", name: content.name, sizeBytes: content.sizeBytes };
  const message: QueuedMessage = { ...rest, key: accepted.messageKey, content: ref };
  const jobs: Job[] = [];
  input.recipients.forEach((recipient, index) => {
    const key = accepted.recipientKeys[index];
    if (!recipient.lease || key === undefined) return;
    const { rcptTo, canonical, to, domain, lane, lease } = recipient;
    jobs.push({
      key,
      message,
      rcptTo,
      canonical,
      to,
      domain,
      lane,
      attempt: 1,
      lastEventAt: 0,
      leaseUntil: lease.until,
    });
  });
  return jobs;
}

/** The messages of a batch, their bytes one after another and the fingerprint last. */
export function packBatch(
  inputs: NewMessage[],
  answer: BatchAnswer | null,
  room = Infinity,
): { packed: PackedBatch; blobs: Uint8Array[] } {
  const parts = inputs.map((input) => packMessage(input, room));
  const idempotency = answer && {
    accountKey: answer.accountKey,
    test: answer.test ? 1 : 0,
    key: answer.key,
    at: answer.at,
    status: answer.status,
    body: answer.body,
  };
  return {
    packed: { messages: parts.map(({ packed }) => packed), idempotency },
    blobs: [...parts.flatMap(({ blobs }) => blobs), answer ? answer.fingerprint : empty],
  };
}

function factsOf({ accountKey, test, domain, pool, tagsJson }: PackedMessage, recipient: Cell[]): string {
  const recipientDomain = String(recipient[domainAt]);
  const unknown = { ip: null, provider: null, classification: null };
  return mailFacts({ accountKey, test: test === 1, domain, pool, tagsJson, recipientDomain, ...unknown });
}

/** The writer's half. */
export function createAcceptance(db: Database, tally: Tally, answers: Answers) {
  const quotas = createQuotas(db);
  const findSuppression: Statement<[number, Cell, number], Suppression> = db.prepare(
    `SELECT ${suppressionColumns} FROM suppressions
     WHERE account_key = ? AND canonical = ? AND (expires_at IS NULL OR expires_at > ?)`,
  );
  const insertMessage = db.prepare(
    `INSERT INTO messages (id, account_key, test, from_address, from_name, subject, message_id_header, tags, metadata, ip_pool,
       source, api_key, size_bytes, created_at, send_at, queued_at, signing_domain, return_path_domain, header_length,
       eight_bit, smtp_utf8, content_kind, content_name, body_hash)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertContent = db.prepare("INSERT INTO content (message_key, bytes) VALUES (?, ?)");
  const insertRecipient = db.prepare(
    `INSERT INTO recipients (account_key, type, to_address, rcpt_to, canonical, domain, lane, state, due_at,
       lease_owner, lease_until, attempts, updated_at, share_bytes, message_key, last_event_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
  );
  const countAccounts: Statement<[], { n: number }> = db.prepare(
    `SELECT count(*) AS n FROM accounts WHERE status <> 'deleted' AND name <> '${operationsAccount}'`,
  );

  const notSendingOf = createNotSending(db);
  const isFull = createQueueLimit(tally);
  const shareFull = createShareLimit(tally, () => (tally.accounts ??= countAccounts.get()?.n ?? 0));

  const suppressedOf = (p: PackedMessage): Suppression[] => {
    const found: Suppression[] = [];
    for (const recipient of p.recipients) {
      const entry = findSuppression.get(p.accountKey, recipient[canonicalAt] ?? "", p.createdAt);
      if (!entry) continue;
      found.push(entry);
      tally.counted.push({ facts: factsOf(p, recipient), at: p.createdAt, counters: rejected, times: 1 });
    }
    return found;
  };

  /** `before`: recipients of the same batch before it. */
  const refusalOf = (p: PackedMessage, before = 0): MessageRefusal | null => {
    const notSending = notSendingOf(p.accountKey);
    if (notSending) return notSending;
    const entries = suppressedOf(p);
    if (entries.length > 0) return { kind: "suppressed", entries };
    const { accountKey, share, maxQueue, room, createdAt: at } = p;
    if (isFull(maxQueue, at, before)) return { kind: "queue_full" };
    return share && shareFull({ accountKey, share, maxQueue, room, at }, before);
  };

  const overQuotaOf = ({ quotas: own, createdAt }: PackedMessage, times: number): QuotaSpent | null => {
    const quota = own && quotas.passed(own, createdAt, times);
    return quota && { kind: "over_quota", quota };
  };

  const insert = (p: PackedMessage, bodyHash: Buffer, bytes: Buffer): Inserted => {
    const messageKey = Number(insertMessage.run(p.row, bodyHash).lastInsertRowid);
    if (p.inline) insertContent.run(messageKey, bytes);
    const recipientKeys = p.recipients.map((row) =>
      Number(insertRecipient.run(row, messageKey).lastInsertRowid),
    );
    tally.change(p.accountKey, recipientKeys.length, recipientKeys.length * p.bytesEach);
    if (p.quotas) quotas.use(p.quotas, p.createdAt);
    for (const recipient of p.recipients)
      tally.counted.push({ facts: factsOf(p, recipient), at: p.createdAt, counters: accepted, times: 1 });
    return { messageKey, recipientKeys };
  };

  return {
    acceptMessage(p: PackedMessage, blobs: readonly Buffer[]): Accepted {
      const [bodyHash, fingerprint, bytes] = blobs;
      if (!bodyHash || !fingerprint || !bytes) throw new Error("acceptMessage needs its three blobs");
      const { accountKey, test, createdAt: at, idempotency } = p;
      const scope = idempotency && { accountKey, test, key: idempotency.key, at };
      const stored = scope && answers.find(scope, fingerprint);
      if (stored) return stored;
      const refusal = refusalOf(p) ?? overQuotaOf(p, 1);
      if (refusal) return refusal;
      const inserted = insert(p, bodyHash, bytes);
      if (scope) answers.store(scope, fingerprint, idempotency, inserted.messageKey);
      return { kind: "accepted", ...inserted };
    },

    /** All of the messages and their answer, or nothing. */
    acceptMessages({ messages, idempotency }: PackedBatch, blobs: readonly Buffer[]): BatchAccepted {
      const fingerprint = blobs.at(-1);
      if (!fingerprint) throw new Error("acceptMessages needs its fingerprint");
      const stored = idempotency && answers.find(idempotency, fingerprint);
      if (stored) return stored;
      let before = 0;
      const refusals = messages.map((message) => {
        const refusal = refusalOf(message, before);
        before += message.recipients.length;
        return refusal;
      });
      if (refusals.some((refusal) => refusal !== null)) return { kind: "refused", refusals };
      const over = messages[0] ? overQuotaOf(messages[0], messages.length) : null; // they are one sender's
      if (over) return over;
      const inserted = messages.map((message, index) => {
        const [bodyHash, bytes] = [blobs[index * blobsAMessage], blobs[index * blobsAMessage + 2]];
        if (!bodyHash || !bytes) throw new Error("acceptMessages needs three blobs a message");
        return insert(message, bodyHash, bytes);
      });
      if (idempotency) answers.store(idempotency, fingerprint, idempotency, inserted[0]?.messageKey ?? null);
      return { kind: "accepted", messages: inserted };
    },
  };
}

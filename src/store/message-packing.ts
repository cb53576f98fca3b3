// A message as flat rows, which are cheap to hand to a thread, and its bytes beside them; and the jobs of what was inserted
// leased, made of what the caller knows and the keys that it got.
import type { NewMessage } from "../model/acceptance.ts";
import type { ContentRef } from "../model/content.ts";
import type { BatchAnswer } from "../model/idempotency.ts";
import type { QueueShare, Quota } from "../model/limits.ts";
import type { Job, QueuedMessage } from "../model/queued-recipient.ts";
import { storable, storableJson, storableOrNull } from "./storable-text.ts";

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

/** Blobs of one packed message. */
export const blobsAMessage = 3;

/** Where they stand in a packed recipient. */
export const canonicalAt = 4;
export const domainAt = 5;

/**
 * The message as rows, its texts storable (addresses are as they were parsed), and its bytes: [body hash, fingerprint or
 * nothing, content or nothing]. `room`: free bytes.
 */
export function packMessage(
  input: NewMessage,
  room = Infinity,
): { packed: PackedMessage; blobs: Uint8Array[] } {
  const { message: m, content, createdAt, sendAt, idempotency } = input;
  const later = sendAt !== null && sendAt > createdAt;
  const test = m.test ? 1 : 0;
  const inline = content.kind === "inline";
  const tagsJson = storableJson(m.tagsJson);
  const sizeBytes = inline ? content.bytes.byteLength : content.sizeBytes;
  // prettier-ignore
  const row: Cell[] = [
    m.id, m.accountKey, test, m.from, storableOrNull(m.fromName), storable(m.subject), storable(m.messageIdHeader),
    tagsJson, storableJson(m.metadataJson), m.ipPool,
    m.source, m.apiKey, sizeBytes, createdAt, sendAt, m.queuedAt, m.signingDomain, m.returnPathDomain, m.headerLength,
    m.eightBit ? 1 : 0, m.smtpUtf8 ? 1 : 0, content.kind, inline ? null : content.name,
    m.tracking?.opens ? 1 : 0, m.tracking?.clicks ? 1 : 0, m.tracking?.unsubscribe ? 1 : 0, m.resendOf ?? null,
  ];
  const state = later ? "scheduled" : "queued";
  const dueAt = sendAt ?? createdAt;
  const bytesEach = Math.ceil(sizeBytes / Math.max(1, input.recipients.length));
  // prettier-ignore
  const recipients = input.recipients.map((r): Cell[] => [
    m.accountKey, r.type, r.to, r.rcptTo, r.canonical, r.domain, r.queueName, state, r.leaseOwner === null ? dueAt : null,
    r.leaseOwner, r.leaseOwner === null ? 0 : 1, createdAt, bytesEach,
  ]);
  const blobs = [m.bodyHash, idempotency ? idempotency.fingerprint : empty, inline ? content.bytes : empty];
  const stored = idempotency && {
    key: storable(idempotency.key),
    status: idempotency.status,
    body: idempotency.body,
  };
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
      tagsJson,
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
  const { fromName: _name, source: _source, apiKey: _key, resendOf: _first, ...rest } = input.message;
  const { content } = input;
  const ref: ContentRef =
    content.kind === "inline"
      ? { kind: "inline", id: accepted.messageKey, sizeBytes: content.bytes.byteLength }
      : { kind: "spool", name: content.name, sizeBytes: content.sizeBytes };
  const message: QueuedMessage = { ...rest, key: accepted.messageKey, content: ref };
  const jobs: Job[] = [];
  input.recipients.forEach((recipient, index) => {
    const key = accepted.recipientKeys[index];
    if (recipient.leaseOwner === null || key === undefined) return;
    const { rcptTo, canonical, to, domain, queueName } = recipient;
    jobs.push({
      key,
      message,
      rcptTo,
      canonical,
      to,
      domain,
      queueName,
      attempt: 1,
      lastEventAt: 0,
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
    key: storable(answer.key),
    at: answer.at,
    status: answer.status,
    body: answer.body,
  };
  return {
    packed: { messages: parts.map(({ packed }) => packed), idempotency },
    blobs: [...parts.flatMap(({ blobs }) => blobs), answer ? answer.fingerprint : empty],
  };
}

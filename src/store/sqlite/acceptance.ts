// The transaction of an acceptance: idempotency record, whether the account may still send (it may have been
// paused or deleted while the content was on its way), the suppression check that decides, the queue's limit, message,
// content and recipients, all or nothing.
import type { Database, Statement } from "better-sqlite3";
import type { MessageRefusal, QuotaSpent } from "../../model/acceptance.ts";
import { operationsAccount } from "../../model/account.ts";
import { counterMask } from "../../model/counters.ts";
import { mailFacts } from "../../model/facts.ts";
import type { Suppression } from "../../model/suppression.ts";
import type { Tally } from "../batch-counters.ts";
import { blobsAMessage, canonicalAt, domainAt } from "../message-packing.ts";
import type { Cell, Inserted, PackedBatch, PackedMessage } from "../message-packing.ts";
import { createQueueLimit, createShareLimit } from "../queue-limit.ts";
import type { Answers, Stored } from "./idempotency.ts";
import { createNotSending } from "./not-sending.ts";
import { createQuotas } from "./quotas.ts";
import type { Sequences } from "./sequences.ts";
import { suppressionColumns } from "./suppression-columns.ts";

export type Accepted = ({ kind: "accepted" } & Inserted) | MessageRefusal | QuotaSpent | Stored;

export type BatchAccepted =
  | { kind: "accepted"; messages: Inserted[] }
  | { kind: "refused"; refusals: (MessageRefusal | null)[] }
  | QuotaSpent
  | Stored;

const accepted = counterMask(["accepted"]);
const rejected = counterMask(["suppressedRejections"]);

function factsOf({ accountKey, test, domain, pool, tagsJson }: PackedMessage, recipient: Cell[]): string {
  const recipientDomain = String(recipient[domainAt]);
  const unknown = { ip: null, provider: null, classification: null };
  return mailFacts({ accountKey, test: test === 1, domain, pool, tagsJson, recipientDomain, ...unknown });
}

/** The writer's half. */
export function createAcceptance(
  db: Database,
  tally: Tally,
  sequences: Pick<Sequences, "next">,
  answers: Answers,
) {
  const quotas = createQuotas(db);
  const findSuppression: Statement<[number, Cell, number], Suppression> = db.prepare(
    `SELECT ${suppressionColumns} FROM suppressions
     WHERE account_key = ? AND canonical = ? AND (expires_at IS NULL OR expires_at > ?)`,
  );
  const insertMessage = db.prepare(
    `INSERT INTO messages (id, account_key, test, from_address, from_name, subject, message_id_header, tags, metadata, ip_pool,
       source, api_key, size_bytes, created_at, send_at, queued_at, signing_domain, return_path_domain, header_length,
       eight_bit, smtp_utf8, content_kind, content_name, track_opens, track_clicks, hosted_unsubscribe,
       resend_of, body_hash, key)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertContent = db.prepare("INSERT INTO content (message_key, bytes) VALUES (?, ?)");
  const insertRecipient = db.prepare(
    `INSERT INTO recipients (account_key, type, to_address, rcpt_to, canonical, domain, queue_name, state, due_at,
       lease_owner, attempts, updated_at, share_bytes, message_key, key, last_event_at)
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
    const messageKey = sequences.next("messages");
    insertMessage.run(p.row, bodyHash, messageKey);
    if (p.inline) insertContent.run(messageKey, bytes);
    const recipientKeys = p.recipients.map((row) => {
      const key = sequences.next("recipients");
      insertRecipient.run(row, messageKey, key);
      return key;
    });
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

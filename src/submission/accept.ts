// The last step of every acceptance, for HTTP and SMTP: one transaction with the message, its recipients and the
// idempotency record; then the first attempts of the recipients that have a concurrency slot start.
import { shareWords, type Share } from "../access/account-limits.ts";
import { notSendingRefusal } from "../sending-pause/refusals.ts";
import { OverQuota } from "../access/quotas.ts";
import type { Config } from "../config.ts";
import { Refusal } from "../errors.ts";
import type { Address } from "../mail/address.ts";
import { canonicalAddress, rcptTo } from "../mail/address.ts";
import type { MessageRefusal, NewMessage } from "../model/acceptance.ts";
import type { PutContent } from "../model/content.ts";
import type { BatchAnswer, IdempotencyRecord } from "../model/idempotency.ts";
import type { Quota } from "../model/limits.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { NewRecipient, RecipientType } from "../model/recipient.ts";
import { queueNameOf, sandboxQueue } from "../queue/queue-name.ts";
import type { Reservation } from "../queue/reservations.ts";
import type { Runner } from "../queue/runner.ts";
import type { Store } from "../store/store.ts";
import { noRoom, problemsRefusal, suppressedProblems } from "./refusals.ts";

export interface AcceptDeps {
  store: Pick<Store, "acceptMessage" | "acceptMessages" | "full">;
  runner: Pick<Runner, "reserve" | "cancelReservation" | "run" | "note">;
  config: { limits: Pick<Config["limits"], "maxQueue">; dev: boolean };
}

export interface Acceptable {
  message: NewMessage["message"];
  content: PutContent;
  recipients: { type: RecipientType; address: Address }[];
  createdAt: number;
  sendAt: number | null;
  idempotency: IdempotencyRecord | null;
  quotas: Quota[];
  /** null: no share applies. */
  share: Share | null;
}

type Replayed = { kind: "replayed"; status: number; body: string };
export type Accepted = { kind: "accepted" } | Replayed;

/** A recipient and the concurrency slot reserved for it; null where none was free. */
interface RecipientSlot {
  recipient: NewRecipient;
  reservation: Reservation | null;
}

/** Throws Refusal: account_paused, key_disabled, recipient_suppressed, duplicate_idempotency_key, rate_limit_exceeded, service_overloaded; StoreUnavailable. */
export async function accept(deps: AcceptDeps, mail: Acceptable): Promise<Accepted> {
  const result = await withSlots(deps, [mail], async ([slots]) => {
    const found = await deps.store.acceptMessage(newMessage(deps, mail, slots ?? []));
    return found.kind === "accepted" ? { ...found, jobs: [found.jobs] } : { ...found, slots: slots ?? [] };
  });
  if (result.kind === "accepted") return { kind: "accepted" };
  if (result.kind === "replayed") return result;
  if (result.kind === "over_quota") throw new OverQuota(result.quota, mail.createdAt);
  throw result.kind === "idempotency_conflict" ? reusedKey() : refusalOf(result, result.slots, mail.share);
}

/** `refused`: nothing was stored; the refusal of each mail, null for a mail without one. */
export type BatchAccepted =
  { kind: "accepted" } | { kind: "refused"; refusals: (Refusal | null)[] } | Replayed;

/** All of them and their answer, or nothing. Throws Refusal: duplicate_idempotency_key, rate_limit_exceeded, service_overloaded; StoreUnavailable. */
export async function acceptAll(
  deps: AcceptDeps,
  mails: Acceptable[],
  answer: BatchAnswer | null,
): Promise<BatchAccepted> {
  const result = await withSlots(deps, mails, async (slots) => {
    const messages = mails.map((mail, index) => newMessage(deps, mail, slots[index] ?? []));
    const found = await deps.store.acceptMessages(messages, answer);
    if (found.kind !== "refused") return found;
    const refusals = found.refusals.map(
      (one, index) => one && refusalOf(one, slots[index] ?? [], mails[index]?.share ?? null),
    );
    return { kind: "refused" as const, refusals };
  });
  if (result.kind === "accepted") return { kind: "accepted" };
  if (result.kind === "idempotency_conflict") throw reusedKey();
  if (result.kind === "over_quota") throw new OverQuota(result.quota, mails[0]?.createdAt ?? 0);
  return result;
}

/** Reserves slots for the recipients while `commit` runs: used if it accepted, cancelled if not. */
async function withSlots<Result extends { kind: string }>(
  deps: AcceptDeps,
  mails: Acceptable[],
  commit: (slots: RecipientSlot[][]) => Promise<Result | { kind: "accepted"; jobs: Job[][] }>,
): Promise<Result | { kind: "accepted"; jobs: Job[][] }> {
  const { store, runner } = deps;
  if (await store.full()) throw noRoom("the disk is nearly full");
  const slots: RecipientSlot[][] = [];
  let result: Result | { kind: "accepted"; jobs: Job[][] } | null = null;
  try {
    for (const mail of mails) {
      const own: RecipientSlot[] = [];
      slots.push(own);
      for (const recipient of mail.recipients) own.push(reserve(deps, mail, recipient));
      prepare(mail, own);
    }
    result = await commit(slots);
  } finally {
    if (result?.kind !== "accepted")
      for (const { reservation } of slots.flat()) if (reservation) runner.cancelReservation(reservation);
  }
  if (isAccepted(result))
    mails.forEach((mail, index) => start(runner, slots[index] ?? [], result.jobs[index] ?? [], dueAt(mail)));
  return result;
}

const isAccepted = (result: { kind: string }): result is { kind: "accepted"; jobs: Job[][] } =>
  result.kind === "accepted";

const dueAt = ({ sendAt, createdAt }: Acceptable): number => sendAt ?? createdAt;

function newMessage({ config }: AcceptDeps, mail: Acceptable, slots: RecipientSlot[]): NewMessage {
  const recipients = slots.map(({ recipient }) => recipient);
  return { ...mail, recipients, maxQueue: config.limits.maxQueue };
}

function reserve(
  { runner, config }: AcceptDeps,
  mail: Acceptable,
  to: Acceptable["recipients"][number],
): RecipientSlot {
  const { type, address } = to;
  const { test, accountKey, ipPool } = mail.message;
  const queueName = test || config.dev ? sandboxQueue : queueNameOf(accountKey, ipPool, address.ascii);
  const reservation = mail.sendAt === null ? runner.reserve(queueName) : null;
  const recipient: NewRecipient = {
    type,
    to: address.email,
    rcptTo: rcptTo(address),
    canonical: canonicalAddress(address),
    domain: address.ascii,
    queueName,
    leaseOwner: reservation?.leaseOwner ?? null,
  };
  return { recipient, reservation };
}

/** Recipients with a slot are signed while the commit is under way; not for content in the spool, which would have to be read. */
function prepare({ message, content }: Acceptable, slots: RecipientSlot[]): void {
  if (content.kind !== "inline") return;
  const { buffer, byteOffset } = content.bytes;
  const section = Buffer.from(buffer, byteOffset, message.headerLength);
  for (const { reservation } of slots) reservation?.to.prepare(message, section);
}

/** `jobs`: those of the recipients with a slot, in their order. */
function start(runner: AcceptDeps["runner"], slots: RecipientSlot[], jobs: Job[], dueAtMs: number): void {
  const next = jobs.values();
  for (const { recipient, reservation } of slots) {
    if (!reservation) {
      runner.note(recipient.queueName, dueAtMs);
      continue;
    }
    const { value: job } = next.next();
    if (job) runner.run(reservation, job);
    else runner.cancelReservation(reservation);
  }
}

function reusedKey(): Refusal {
  return new Refusal(
    "duplicate_idempotency_key",
    "this Idempotency-Key was used with another request in the last 24 hours; use a new key",
  );
}

function refusalOf(result: MessageRefusal, slots: RecipientSlot[], share: Share | null): Refusal {
  if (result.kind === "not_sending") return notSendingRefusal(result);
  if (result.kind === "queue_full") return noRoom("the queue is full");
  if (result.kind === "share_full") return noRoom(shareWords(share?.account ?? "", result.of, result.most));
  const typeOf = new Map(slots.map(({ recipient }) => [recipient.canonical, recipient.type]));
  const refusal = problemsRefusal([
    suppressedProblems(result.entries, (canonical) => typeOf.get(canonical) ?? "to"),
  ]);
  if (!refusal) throw new Error("a suppressed result names its entries");
  return refusal;
}

// The last step of every acceptance: one transaction that holds the message, its recipients and
// what proves it, and then the start of those that have a slot. Both interfaces end here.
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
import type { Reservation, Runner } from "../queue/runner.ts";
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
  /** null: bound by none. */
  share: Share | null;
}

type Replayed = { kind: "replayed"; status: number; body: string };
export type Accepted = { kind: "accepted" } | Replayed;

/** A recipient and the slot that is kept for it, if there is one. */
interface Held {
  recipient: NewRecipient;
  reservation: Reservation | null;
}

/** Throws Refusal: account_paused, key_disabled, recipient_suppressed, duplicate_idempotency_key, rate_limit_exceeded, service_overloaded; StoreUnavailable. */
export async function accept(deps: AcceptDeps, mail: Acceptable): Promise<Accepted> {
  const result = await withSlots(deps, [mail], async ([held]) => {
    const found = await deps.store.acceptMessage(newMessage(deps, mail, held ?? []));
    return found.kind === "accepted" ? { ...found, jobs: [found.jobs] } : { ...found, held: held ?? [] };
  });
  if (result.kind === "accepted") return { kind: "accepted" };
  if (result.kind === "replayed") return result;
  if (result.kind === "over_quota") throw new OverQuota(result.quota, mail.createdAt);
  throw result.kind === "idempotency_conflict" ? reusedKey() : refusalOf(result, result.held, mail.share);
}

/** `refused`: nothing was kept; what stands against each mail, null where nothing does. */
export type BatchAccepted =
  { kind: "accepted" } | { kind: "refused"; refusals: (Refusal | null)[] } | Replayed;

/** All of them and their answer, or nothing. Throws Refusal: duplicate_idempotency_key, rate_limit_exceeded, service_overloaded; StoreUnavailable. */
export async function acceptAll(
  deps: AcceptDeps,
  mails: Acceptable[],
  answer: BatchAnswer | null,
): Promise<BatchAccepted> {
  const result = await withSlots(deps, mails, async (held) => {
    const messages = mails.map((mail, index) => newMessage(deps, mail, held[index] ?? []));
    const found = await deps.store.acceptMessages(messages, answer);
    if (found.kind !== "refused") return found;
    const refusals = found.refusals.map(
      (one, index) => one && refusalOf(one, held[index] ?? [], mails[index]?.share ?? null),
    );
    return { kind: "refused" as const, refusals };
  });
  if (result.kind === "accepted") return { kind: "accepted" };
  if (result.kind === "idempotency_conflict") throw reusedKey();
  if (result.kind === "over_quota") throw new OverQuota(result.quota, mails[0]?.createdAt ?? 0);
  return result;
}

/** Keeps slots for the recipients while `commit` runs: used where it accepted, let go of where not. */
async function withSlots<Result extends { kind: string }>(
  deps: AcceptDeps,
  mails: Acceptable[],
  commit: (held: Held[][]) => Promise<Result | { kind: "accepted"; jobs: Job[][] }>,
): Promise<Result | { kind: "accepted"; jobs: Job[][] }> {
  const { store, runner } = deps;
  if (store.full()) throw noRoom("the disk is nearly full");
  const held: Held[][] = [];
  let result: Result | { kind: "accepted"; jobs: Job[][] } | null = null;
  try {
    for (const mail of mails) {
      const own: Held[] = [];
      held.push(own);
      for (const recipient of mail.recipients) own.push(hold(deps, mail, recipient));
      prepare(mail, own);
    }
    result = await commit(held);
  } finally {
    if (result?.kind !== "accepted")
      for (const { reservation } of held.flat()) if (reservation) runner.cancelReservation(reservation);
  }
  if (isAccepted(result))
    mails.forEach((mail, index) => start(runner, held[index] ?? [], result.jobs[index] ?? [], dueAt(mail)));
  return result;
}

const isAccepted = (result: { kind: string }): result is { kind: "accepted"; jobs: Job[][] } =>
  result.kind === "accepted";

const dueAt = ({ sendAt, createdAt }: Acceptable): number => sendAt ?? createdAt;

function newMessage({ config }: AcceptDeps, mail: Acceptable, held: Held[]): NewMessage {
  const recipients = held.map(({ recipient }) => recipient);
  return { ...mail, recipients, maxQueue: config.limits.maxQueue };
}

function hold({ runner, config }: AcceptDeps, mail: Acceptable, to: Acceptable["recipients"][number]): Held {
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
    lease: reservation?.lease ?? null,
  };
  return { recipient, reservation };
}

/** What has a slot is signed while it is on its way to the disk; content in the spool would have to be read for it. */
function prepare({ message, content }: Acceptable, held: Held[]): void {
  if (content.kind !== "inline") return;
  const { buffer, byteOffset } = content.bytes;
  const section = Buffer.from(buffer, byteOffset, message.headerLength);
  for (const { reservation } of held) reservation?.to.prepare(message, section);
}

/** `jobs`: of the recipients that hold a slot, in their order. */
function start(runner: AcceptDeps["runner"], held: Held[], jobs: Job[], dueAtMs: number): void {
  const next = jobs.values();
  for (const { recipient, reservation } of held) {
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

function refusalOf(result: MessageRefusal, held: Held[], share: Share | null): Refusal {
  if (result.kind === "not_sending") return notSendingRefusal(result);
  if (result.kind === "queue_full") return noRoom("the queue is full");
  if (result.kind === "share_full") return noRoom(shareWords(share?.account ?? "", result.of, result.most));
  const typeOf = new Map(held.map(({ recipient }) => [recipient.canonical, recipient.type]));
  const refusal = problemsRefusal([
    suppressedProblems(result.entries, (canonical) => typeOf.get(canonical) ?? "to"),
  ]);
  if (!refusal) throw new Error("a suppressed result names its entries");
  return refusal;
}

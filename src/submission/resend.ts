// POST /v1/messages/{id}/resend: the stored content of a message, sent again as a new message. It passes the checks of a
// mail that comes in: its domain may have lost its verification, a recipient may be suppressed by now. What made the first
// one known elsewhere is replaced: ids, Message-ID, Date, our Received field, the token that proves reports.
import { shareOf } from "../access/account-limits.ts";
import { isoTime } from "../clock.ts";
import { Refusal, type Problem } from "../errors.ts";
import { canonicalAddress, parseAddress, type Address } from "../mail/address.ts";
import { MailSyntaxError, parseHeaderSection } from "../mail/header.ts";
import { MailTooLarge } from "../mail/intake.ts";
import { messageTokenField, messageTokenHeader } from "../mail/message-token.ts";
import { receivedField } from "../mail/trace.ts";
import type { ContentRef } from "../model/content.ts";
import type { MessageRecord } from "../model/message.ts";
import type { RecipientType } from "../model/recipient.ts";
import { ContentGone, type Store } from "../store/store.ts";
import type { Accepted, Acceptable } from "./accept.ts";
import { checkAuthors, checkPool, checkRecipients, type CheckDeps } from "./checks.ts";
import { readIncoming, type Incoming } from "./incoming.ts";
import { relayedMessageOf } from "./new-message.ts";
import { refuseProblems, type Checked } from "./refusals.ts";
import type { AssignedFields } from "./render.ts";
import { putMail } from "./rewrap.ts";
import type { TrackingRequest } from "./shape.ts";
import type { Arrival, SendAnswer, Sender, Submission } from "./submission.ts";

export interface ResendDeps {
  store: Pick<Store, "putContent" | "dropContent" | "openContent">;
  checks: CheckDeps;
  hostname: string;
  makeFor(protocol: string): AssignedFields;
  /** Throws Refusal, StoreUnavailable. */
  acceptOrDrop(mail: Acceptable): Promise<Accepted>;
}

interface Chosen {
  type: RecipientType;
  field: string;
  address: Address;
}

export function createResend(deps: ResendDeps): Submission["resend"] {
  const { store, checks } = deps;
  return async (asking, message, to, arrival, idempotency) => {
    // Mail of a test key never leaves the machine, whoever sends it again.
    const sender: Sender = { ...asking, test: asking.test || message.test };
    if (message.content === null) throw contentGone();
    const recipients = await chosenOf(checks, sender, message, to);
    const made = deps.makeFor(arrival.protocol);
    const incoming = readAgain(deps, sender, message, message.content, made, arrival);
    const { mail, fitted } = await putMail(store, incoming).catch((error: unknown) => {
      throw refusalOf(error);
    });
    const options = { ...mail.options, ...optionsOf(message) };
    const answer = answerOf(made, mail.header.messageId, recipients);
    const body = JSON.stringify(answer);
    const accepted = await deps.acceptOrDrop({
      message: {
        ...relayedMessageOf({ ...mail, options }, fitted, made, sender),
        source: "api",
        resendOf: message.id,
      },
      content: fitted.content,
      recipients,
      createdAt: made.now,
      sendAt: null,
      idempotency: idempotency && { ...idempotency, status: 202, body },
      quotas: sender.quotas,
      share: shareOf(sender.account),
    });
    return accepted.kind === "replayed"
      ? { status: accepted.status, body: accepted.body, id: null, replayed: true }
      : { status: 202, body, id: made.id, replayed: false };
  };
}

/** The recipients to send to. Throws Refusal with every problem: one that is none of the message's, one that is suppressed. */
async function chosenOf(
  checks: CheckDeps,
  sender: Sender,
  { recipients }: MessageRecord,
  to: readonly string[] | null,
): Promise<Chosen[]> {
  const all = recipients.map(({ to: email, type }, index): Chosen => {
    const address = parseAddress(email);
    if (!address.ok) throw new Error(`a stored recipient is not an address: ${address.issue}`);
    return { type, field: `recipients[${index}]`, address: address.value };
  });
  const byAddress = new Map(all.map((one) => [canonicalAddress(one.address), one]));
  const chosen: Chosen[] = [];
  const problems: Problem[] = [];
  for (const [index, text] of (to ?? []).entries()) {
    const address = parseAddress(text);
    const one = address.ok ? byAddress.get(canonicalAddress(address.value)) : undefined;
    const field = `to[${index}]`;
    if (one) chosen.push({ ...one, field });
    else if (address.ok)
      problems.push({ field, code: "validation_failed", issue: "is not a recipient of the message" });
    else problems.push({ field, code: "invalid_email_address", issue: address.issue });
  }
  const wanted = [...new Map((to === null ? all : chosen).map((one) => [one.address.email, one])).values()];
  const requests = wanted.map(({ type, field, address }) => ({
    type,
    field,
    mailbox: { name: null, address },
    canonical: canonicalAddress(address),
  }));
  const own: Checked = { problems, extras: {} };
  refuseProblems([own, await checkRecipients(checks, sender, requests)]);
  return wanted;
}

function readAgain(
  deps: ResendDeps,
  sender: Sender,
  message: MessageRecord,
  content: ContentRef,
  made: AssignedFields,
  arrival: Arrival,
): Incoming {
  const { checks, hostname, store } = deps;
  const received = receivedField({
    from: null,
    by: hostname,
    protocol: arrival.protocol,
    id: made.id,
    date: made.now,
  });
  return readIncoming(withoutIdentity(store.openContent(content), message.headerLength), {
    trace: received + messageTokenHeader(made.token),
    messageId: made.messageId,
    now: made.now,
    hostname,
    check: (authors) => checkAuthors(checks, sender, authors),
    maySend: async (address) => (await checks.domains.senderFor(sender.account.key, address.ascii)).ok,
    findPool: () => checkPool(checks, sender, message.ipPool),
  });
}

/**
 * The stored message without what is its own alone; the submission adds these fields again. Without those that were added to it,
 * the largest mail is no larger than it came.
 */
async function* withoutIdentity(stored: AsyncIterable<Buffer>, headerLength: number): AsyncGenerator<Buffer> {
  let head: Buffer | null = Buffer.alloc(0);
  for await (const chunk of stored) {
    if (head === null) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < headerLength) continue;
    yield anonymous(head.subarray(0, headerLength));
    const rest = head.subarray(headerLength);
    if (rest.length > 0) yield rest;
    head = null;
  }
}

const ownFields: ReadonlySet<string> = new Set(["message-id", "date", messageTokenField.toLowerCase()]);

function anonymous(section: Buffer): Buffer {
  const fields = parseHeaderSection(section);
  const ours = fields.findIndex(({ lower }) => lower === "received");
  const kept = fields.filter(({ lower }, index) => index !== ours && !ownFields.has(lower));
  return Buffer.concat([...kept.map(({ raw }) => raw), Buffer.from("\r\n")]);
}

/** What the first message asked for. Where its domain is no longer tracked, it is not tracked. */
function optionsOf({ tags, metadata, tracking }: MessageRecord) {
  const field = "tracking";
  const asked: TrackingRequest = {
    opens: { on: tracking?.opens ?? false, field },
    clicks: { on: tracking?.clicks ?? false, field },
    unsubscribe: tracking?.unsubscribe ? "hosted" : null,
  };
  return { tags, metadata, tracking: asked };
}

function answerOf(made: AssignedFields, messageId: string, recipients: Chosen[]): SendAnswer {
  return {
    id: made.id,
    status: "queued",
    created_at: isoTime(made.now),
    send_at: null,
    recipients: recipients.map(({ type, address }) => ({ email: address.email, type })),
    message_id_header: messageId,
  };
}

/** What was taken once may be past a limit with the fields that were added to it then. */
function refusalOf(error: unknown): unknown {
  if (error instanceof ContentGone) return contentGone();
  if (error instanceof MailTooLarge || error instanceof MailSyntaxError)
    return new Refusal("conflict", `As it is stored it cannot be sent again: ${error.message}.`);
  return error;
}

function contentGone(): Refusal {
  return new Refusal(
    "conflict",
    "The content of the message is no longer kept (retention.content), so it cannot be sent again.",
  );
}

// What both interfaces share. `send` (REST) and `relay` (SMTP) read as lists of named steps;
// then the content is put on disk and one transaction accepts the message (accept.ts).
import { createHash } from "node:crypto";
import { shareOf } from "../access/account-limits.ts";
import { isoTime, isoTimeOrNull, type Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Domains } from "../domains/domains.ts";
import { Refusal } from "../errors.ts";
import type { IdMint } from "../ids.ts";
import { canonicalAddress, type Address } from "../mail/address.ts";
import { messageTokenHeader, type MessageTokens } from "../mail/message-token.ts";
import { receivedField } from "../mail/trace.ts";
import type { IdempotencyRecord } from "../model/idempotency.ts";
import type { Suppression } from "../model/suppression.ts";
import type { Pools } from "../pools/pools.ts";
import type { Runner } from "../queue/runner.ts";
import { StoreUnavailable, type Store } from "../store/store.ts";
import { accept, type Acceptable, type AcceptDeps, type Accepted } from "./accept.ts";
import { createBatch } from "./batch.ts";
import {
  checkAuthors,
  checkPool,
  checkRecipients,
  checkSender,
  checkTracking,
  recipientRefusal,
  type CheckDeps,
} from "./checks.ts";
import { readIncoming, type ReadMail } from "./incoming.ts";
import { LargeRequest, readHere, wholeRequest } from "./large-request.ts";
import { messageOf, relayedMessageOf, type Validated } from "./new-message.ts";
import { notAnObject, refuseProblems, refuseTooLarge, sound } from "./refusals.ts";
import { createResend } from "./resend.ts";
import { putMail } from "./rewrap.ts";
import { putChunks, render, type AssignedFields } from "./render.ts";
import { createRejections } from "./rejections.ts";
import type { ReadRequest } from "./request.ts";
import { isRecord } from "./shape.ts";
import type { Arrival, SendAnswer, Sender, Submission } from "./submission.ts";

export interface SubmissionDeps {
  store: AcceptDeps["store"] &
    Pick<Store, "suppressed" | "putContent" | "dropContent" | "openContent" | "countRejection">;
  domains: Pick<Domains, "senderFor">;
  pools: Pick<Pools, "nameFor" | "names">;
  runner: Pick<Runner, "reserve" | "cancelReservation" | "run" | "note">;
  config: AcceptDeps["config"] & Pick<Config, "hostname">;
  tokens: Pick<MessageTokens, "of">;
  clock: Clock;
  mint: IdMint;
}

export function createSubmission(deps: SubmissionDeps): Submission {
  const { store, clock, mint, config } = deps;
  const { domains, pools } = deps;
  const checkDeps: CheckDeps = { store, domains, pools, dev: config.dev, now: () => clock.now() };

  const rejections = createRejections(store, deps.pools, () => clock.now());

  /** Runs every check of a request before anything is stored. `onSuppressed` receives the suppressed recipients. */
  const validate = async (
    sender: Sender,
    json: unknown,
    arrival: Arrival,
    onSuppressed: (entries: Suppression[], read: ReadRequest, domain: string | null) => void,
  ): Promise<Validated> => {
    const made = makeFor(arrival.protocol);
    const away = json instanceof LargeRequest ? json : null;
    const here = away ? null : readHere(json, made);
    const read = away ? await away.read(made) : here;
    if (!read) throw notAnObject();
    refuseTooLarge(read.leastBytes);
    const { request, problems } = read;
    const pool = checkPool(checkDeps, sender, request.ipPool);
    const from = request.from ? await checkSender(checkDeps, sender, request.from.address) : null;
    const recipients = await checkRecipients(checkDeps, sender, request.recipients);
    if (recipients.suppressed.length > 0)
      onSuppressed(recipients.suppressed, read, from?.domain?.name ?? null);
    const tracking = checkTracking(from?.known ?? null, request.tracking);
    refuseProblems([{ problems, extras: {} }, from ?? sound, recipients, pool, tracking]);
    const whole = wholeRequest(read);
    if (!whole || !from?.domain || pool.pool === null)
      throw new Error("a request without problems has a sender and a pool");
    const composed = away ? await away.compose(made) : (here?.composed ?? render(whole, made));
    refuseTooLarge(composed.sizeBytes);
    return { rendered: { request: whole, ...composed }, made, domain: from.domain, pool: pool.pool };
  };

  /** The same of what is to be sent. */
  const validateSend = (sender: Sender, json: unknown, arrival: Arrival): Promise<Validated> =>
    validate(sender, json, arrival, (entries, read, domain) =>
      rejections.ofRequest(sender, entries, read, domain),
    );

  const keep = async (sender: Sender, valid: Validated): Promise<Acceptable> => {
    const { rendered } = valid;
    const { recipients, sendAt } = rendered.request;
    return {
      message: messageOf(valid, sender),
      content: await putChunks(store, rendered),
      recipients: recipients.map(({ type, mailbox }) => ({ type, address: mailbox.address })),
      createdAt: valid.made.now,
      sendAt,
      idempotency: null,
      quotas: sender.quotas,
      share: shareOf(sender.account),
    };
  };

  const send: Submission["send"] = async (sender, json, arrival, idempotency) => {
    const valid = await validateSend(sender, json, arrival);
    const body = JSON.stringify(answerOf(valid));
    const mail = await keep(sender, valid);
    const accepted = await acceptOrDrop({
      ...mail,
      idempotency: idempotency && { ...idempotency, status: 202, body },
    });
    if (accepted.kind === "replayed")
      return { status: accepted.status, body: accepted.body, id: null, replayed: true };
    return { status: 202, body, id: valid.made.id, replayed: false };
  };

  const sendBatch = createBatch({ ...deps, validate: validateSend, keep, answerOf });

  const relay: Submission["relay"] = async (sender, envelope, data, arrival) => {
    const made = makeFor(arrival.protocol);
    const incoming = readIncoming(data, {
      trace:
        receivedField({
          from: { ip: arrival.ip, helo: arrival.helo },
          by: config.hostname,
          protocol: arrival.protocol,
          id: made.id,
          date: made.now,
        }) + messageTokenHeader(made.token),
      messageId: made.messageId,
      now: made.now,
      hostname: config.hostname,
      check: (authors) => checkAuthors(checkDeps, sender, authors),
      maySend: async (address) => (await checkDeps.domains.senderFor(sender.account.key, address.ascii)).ok,
      findPool: (name) => checkPool(checkDeps, sender, name),
    });
    const { mail, fitted } = await putMail(store, incoming);
    const accepted = await acceptOrDrop({
      message: relayedMessageOf(mail, fitted, made, sender),
      content: fitted.content,
      recipients: envelope.rcptTo.map((address) => ({ type: "to", address })),
      createdAt: made.now,
      sendAt: mail.options.sendAt,
      idempotency: onceOnly(mail, envelope.rcptTo, made.id),
      quotas: sender.quotas,
      share: shareOf(sender.account),
    });
    return { id: accepted.kind === "replayed" ? replayedId(accepted.body) : made.id };
  };

  const makeFor = (protocol: string): AssignedFields => {
    const now = clock.now();
    const id = mint("msg", now);
    const { hostname } = config;
    const token = deps.tokens.of(id);
    return { id, token, messageId: `<${token}@${hostname}>`, hostname, protocol, now };
  };

  /** Drops the content of a refused message. After a failed write it is unknown what is on disk; the next start sweeps it. */
  const acceptOrDrop = async (mail: Acceptable): Promise<Accepted> => {
    const drop = () => store.dropContent(mail.content).catch(() => undefined);
    try {
      const accepted = await accept(deps, mail);
      if (accepted.kind === "replayed") await drop();
      return accepted;
    } catch (error) {
      // Full is a sure refusal; after a failed sync the row may be on disk, and the next start sweeps.
      if (error instanceof Refusal || (error instanceof StoreUnavailable && error.why === "full"))
        await drop();
      throw error;
    }
  };

  return {
    send,
    sendBatch,
    resend: createResend({ store, checks: checkDeps, hostname: config.hostname, makeFor, acceptOrDrop }),
    async check(sender, json, arrival) {
      await validate(sender, json, arrival, () => undefined);
    },
    relay,
    async refuseRecipient(sender, address) {
      const canonical = canonicalAddress(address);
      const refusal = await recipientRefusal(checkDeps, sender, address, canonical);
      if (refusal?.code === "recipient_suppressed") rejections.ofRecipient(sender, canonical);
      return refusal;
    },
  };
}

/** X-Svc-Idempotency-Key: the same recipients and data within a day are one message; the answer is its id. */
function onceOnly({ options, fingerprint }: ReadMail, to: Address[], id: string): IdempotencyRecord | null {
  const key = options.idempotencyKey;
  if (key === null || fingerprint === null) return null;
  const hash = createHash("sha256").update("SMTP\n").update(fingerprint);
  for (const recipient of to.map(canonicalAddress).toSorted()) hash.update(`${recipient}\n`);
  return { key, fingerprint: hash.digest(), status: 250, body: JSON.stringify({ id }) };
}

function replayedId(body: string): string {
  const stored: unknown = JSON.parse(body);
  if (isRecord(stored) && typeof stored["id"] === "string") return stored["id"];
  throw new Error("a mail's idempotency record without its id");
}

/** The 202's body, which idempotency stores as it is. */
function answerOf({ rendered: { request }, made }: Validated): SendAnswer {
  return {
    id: made.id,
    status: request.sendAt === null ? "queued" : "scheduled",
    created_at: isoTime(made.now),
    send_at: isoTimeOrNull(request.sendAt),
    recipients: request.recipients.map(({ type, mailbox }) => ({ email: mailbox.address.email, type })),
    message_id_header: made.messageId,
  };
}

// The one door behind both doors. `send` (REST) and `relay` (SMTP) read as lists of named checks;
// then the content is put on disk and one transaction accepts the message (accept.ts).
import { isoTime, isoTimeOrNull, type Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Domains } from "../domains/domains.ts";
import { Refusal, type Problem, type RefusalExtras } from "../errors.ts";
import type { IdMint } from "../ids.ts";
import { canonicalAddress, type Address } from "../mail/address.ts";
import { composeMessage, textFromHtml, type Composed } from "../mail/compose.ts";
import { maxMessageBytes } from "../mail/intake.ts";
import { receivedField } from "../mail/trace.ts";
import type { Runner } from "../queue/runner.ts";
import type { NewMessage, PutContent, Store } from "../store/store.ts";
import { accept } from "./accept.ts";
import { checkSender, simulatorIssue, suppressedAmong, suppressedProblems, type Checked } from "./checks.ts";
import { readIncoming } from "./incoming.ts";
import { inFieldOrder, readRequest } from "./request.ts";
import type { MessageRequest } from "./shape.ts";
import type { Acceptance, Sender, Submission } from "./submission.ts";

export interface SubmissionDeps {
  store: Pick<Store, "acceptMessage" | "full" | "suppressed" | "putContent" | "dropContent">;
  domains: Pick<Domains, "senderFor">;
  runner: Pick<Runner, "reserve" | "forgo" | "run" | "note">;
  config: Pick<Config, "hostname" | "limits" | "dev">;
  clock: Clock;
  mint: IdMint;
}

/** The only pool until pools can be made. */
export const defaultPool = "default";

export function createSubmission(deps: SubmissionDeps): Submission {
  const { store, clock, mint, config } = deps;
  const checkDeps = { store, domains: deps.domains, now: () => clock.now() };

  const send: Submission["send"] = async (sender, json, arrival, idempotency) => {
    if (typeof json !== "object" || json === null || Array.isArray(json)) throw notAnObject();
    const now = clock.now();
    const { request, problems } = readRequest(json as Record<string, unknown>, now);
    refuseTooLarge(request.attachments.reduce((sum, { bytes }) => sum + bytes.length * (78 / 57), 0));
    const found = [
      { problems, extras: {} },
      checkPool(request.ipPool),
      await checkRecipients(sender, request),
    ];
    const from = request.from ? await checkSender(checkDeps, sender, request.from.address) : null;
    refuseProblems(from ? [from, ...found] : found);
    if (!request.from || !from?.domain) throw new Error("a request without problems has a sender");

    const id = mint("msg", now);
    const messageId = `<${id.slice(4)}@${config.hostname}>`;
    const received = Buffer.from(
      receivedField({ from: null, by: config.hostname, protocol: arrival.protocol, id, date: now }),
    );
    const composed = composeMessage(
      composeInput({ ...request, from: request.from }, { messageId, now, seed: id }),
    );
    refuseTooLarge(composed.sizeBytes + received.length);
    const { address, name } = request.from;
    const body = acceptanceBody(id, now, request, messageId);
    const content = await contentOf(
      store,
      [received, ...composed.chunks],
      composed.sizeBytes + received.length,
    );
    const message: NewMessage["message"] = {
      id,
      accountKey: sender.account.key,
      test: sender.test,
      from: address.email,
      fromName: name,
      signingDomain: from.domain.name,
      returnPathDomain: from.domain.returnPathDomain,
      subject: request.subject,
      tagsJson: JSON.stringify(request.tags),
      metadataJson: JSON.stringify(request.metadata),
      messageIdHeader: messageId,
      ipPool: request.ipPool ?? defaultPool,
      headerLength: composed.headerLength + received.length,
      bodyHash: composed.bodyHash,
      eightBit: composed.smtpUtf8,
      smtpUtf8: composed.smtpUtf8,
      queuedAt: request.sendAt ?? now,
      source: "api",
      apiKey: sender.apiKey,
    };
    const accepted = await acceptOrDrop(content, {
      message,
      content,
      recipients: request.recipients.map(({ type, mailbox }) => ({ type, address: mailbox.address })),
      createdAt: now,
      sendAt: request.sendAt,
      idempotency: idempotency && { ...idempotency, status: 202, body },
    });
    if (accepted.kind === "replayed")
      return { status: accepted.status, body: accepted.body, id: null, replayed: true };
    return { status: 202, body, id, replayed: false } satisfies Acceptance;
  };

  const checkRecipients = async (
    sender: Sender,
    request: Pick<MessageRequest, "recipients">,
  ): Promise<Checked> => {
    const problems = request.recipients.flatMap(({ field, mailbox }): Problem[] => {
      const issue = simulatorIssue(sender, mailbox.address);
      return issue ? [{ field, code: "invalid_email_address", issue }] : [];
    });
    const fields = new Map(request.recipients.map(({ canonical, field }) => [canonical, field]));
    const suppressed = suppressedProblems(
      await suppressedAmong(checkDeps, sender, [...fields.keys()]),
      (canonical) => fields.get(canonical) ?? "to",
    );
    return { problems: [...problems, ...suppressed.problems], extras: suppressed.extras };
  };

  const refuseRecipient: Submission["refuseRecipient"] = async (sender, address) => {
    const issue = simulatorIssue(sender, address);
    if (issue) return new Refusal("invalid_email_address", issue);
    const [entry] = await suppressedAmong(checkDeps, sender, [canonicalAddress(address)]);
    if (!entry) return null;
    return new Refusal(
      "recipient_suppressed",
      `${entry.email} is on the suppression list (${entry.reason}); remove it there if it should get mail again`,
    );
  };

  const relay: Submission["relay"] = async (sender, envelope, data, arrival) => {
    const now = clock.now();
    const id = mint("msg", now);
    const incoming = readIncoming(data, {
      received: receivedField({
        from: { ip: arrival.ip, helo: arrival.helo },
        by: config.hostname,
        protocol: arrival.protocol,
        id,
        date: now,
      }),
      messageId: `<${id.slice(4)}@${config.hostname}>`,
      now,
      check: (authors) => checkAuthors(sender, authors),
    });
    const content = await store.putContent(incoming.bytes);
    const { header, options, domain, summary } = incoming.result();
    const [author] = header.from;
    if (!author) throw new Error("a mail that passed the checks has an author");
    await acceptOrDrop(content, {
      message: {
        id,
        accountKey: sender.account.key,
        test: sender.test,
        from: author.address.email,
        fromName: author.name,
        signingDomain: domain.name,
        returnPathDomain: domain.returnPathDomain,
        subject: header.subject,
        tagsJson: JSON.stringify(options.tags),
        metadataJson: JSON.stringify(options.metadata),
        messageIdHeader: header.messageId,
        ipPool: defaultPool,
        headerLength: header.section.length,
        bodyHash: summary.bodyHash,
        eightBit: summary.eightBit,
        smtpUtf8: summary.eightBitHeader,
        queuedAt: options.sendAt ?? now,
        source: "smtp",
        apiKey: null,
      },
      content,
      recipients: envelope.rcptTo.map((address) => ({ type: "to" as const, address })),
      createdAt: now,
      sendAt: options.sendAt,
      idempotency: null,
    });
    return { id };
  };

  /** Several authors only where every domain is verified; the first one's domain signs. */
  const checkAuthors = async (sender: Sender, authors: Address[]) => {
    const checks = await Promise.all(authors.map((author) => checkSender(checkDeps, sender, author)));
    refuseProblems(checks);
    const [first] = checks;
    if (!first?.domain) throw new Refusal("validation_failed", "the mail has no author in its From field");
    return first.domain;
  };

  /** Content of a refused message is let go. After a failed write nobody knows what is on disk: then the next start sweeps it. */
  const acceptOrDrop = async (
    content: PutContent,
    mail: Parameters<typeof accept>[1],
  ): ReturnType<typeof accept> => {
    const drop = () => store.dropContent(content).catch(() => undefined);
    try {
      const accepted = await accept({ store, runner: deps.runner, config }, mail);
      if (accepted.kind === "replayed") await drop();
      return accepted;
    } catch (error) {
      if (error instanceof Refusal) await drop();
      throw error;
    }
  };

  return { send, refuseRecipient, relay };
}

function composeInput(
  request: MessageRequest,
  made: { messageId: string; now: number; seed: string },
): Parameters<typeof composeMessage>[0] {
  const named = (type: "to" | "cc") =>
    request.recipients.filter((recipient) => recipient.type === type).map(({ mailbox }) => mailbox);
  const text =
    request.text ?? (request.html !== null && request.autoText ? textFromHtml(request.html) : null);
  const { from, replyTo, subject, html, headers, attachments } = request;
  return {
    from,
    replyTo,
    to: named("to"),
    cc: named("cc"),
    subject,
    text,
    html,
    headers,
    attachments,
    messageId: made.messageId,
    date: made.now,
    boundarySeed: made.seed,
  };
}

function acceptanceBody(
  id: string,
  now: number,
  request: Pick<MessageRequest, "sendAt" | "recipients">,
  messageId: string,
): string {
  return JSON.stringify({
    id,
    status: request.sendAt === null ? "queued" : "scheduled",
    created_at: isoTime(now),
    send_at: isoTimeOrNull(request.sendAt),
    recipients: request.recipients.map(({ type, mailbox }) => ({ email: mailbox.address.email, type })),
    message_id_header: messageId,
  });
}

/** One buffer for a small message, a stream for a large one. */
async function contentOf(
  store: Pick<Store, "putContent">,
  chunks: Composed["chunks"],
  sizeBytes: number,
): Promise<PutContent> {
  if (sizeBytes <= 65_536) return { kind: "inline", bytes: Buffer.concat(chunks, sizeBytes) };
  return store.putContent(
    (async function* () {
      yield* chunks;
    })(),
  );
}

function checkPool(name: string | null): Checked {
  if (name === null || name === defaultPool) return { problems: [], extras: {} };
  return {
    problems: [
      {
        field: "ip_pool",
        code: "ip_pool_not_found",
        issue: `no pool of that name; this account has: ${defaultPool}`,
      },
    ],
    extras: {},
  };
}

function refuseTooLarge(bytes: number): void {
  if (bytes > maxMessageBytes) {
    throw new Refusal(
      "message_too_large",
      `the message has about ${Math.ceil(bytes)} bytes as it would be sent; at most ${maxMessageBytes}`,
    );
  }
}

function notAnObject(): Refusal {
  const issue = "expected a JSON object";
  return new Refusal("validation_failed", issue, {
    errors: [{ field: "", code: "validation_failed", issue }],
  });
}

function refuseProblems(checks: Checked[]): void {
  const errors = inFieldOrder(checks.flatMap(({ problems }) => problems));
  const [first] = errors;
  if (!first) return;
  const extras = Object.assign({}, ...checks.map((check) => check.extras)) as RefusalExtras;
  const detail =
    errors.length === 1
      ? `${first.field}: ${first.issue}`
      : `${errors.length} problems; the first: ${first.field}: ${first.issue}`;
  throw new Refusal(first.code, detail.trim(), { field: first.field, errors, ...extras });
}

// A mail that is streamed from SMTP to the store: its bytes are checked as they pass, its header
// section is rewritten once (RFC 6409 §8), its options are read, and its authors are checked before the body is kept.
// Its parts are walked through for attachments that a reader's machine would execute.
import { createHash, type Hash } from "node:crypto";
import { Refusal, type Problem } from "../errors.ts";
import type { Address, Mailbox } from "../mail/address.ts";
import { executableIn } from "../mail/attachment-names.ts";
import type { HeaderField } from "../mail/header.ts";
import { partNeeds, type PartNeeds } from "../mail/header-tidy.ts";
import { foldField, withFieldsAtEnd } from "../mail/header-write.ts";
import { MailIntake, type IntakeSummary } from "../mail/intake.ts";
import { listUnsubscribe } from "../mail/list-unsubscribe.ts";
import { MimeWalk, type MimeVisitor, type Part } from "../mail/mime-walk.ts";
import { rewriteHeaders, type RewrittenHeaders } from "../mail/submit-headers.ts";
import type { SenderDomain } from "../model/domain.ts";
import { checkTracking } from "./checks.ts";
import { readOptions, type FindPool, type MailOptions } from "./mail-options.ts";
import { refuseProblems } from "./refusals.ts";
import type { Unsubscribe } from "./shape.ts";
import { refuseSecond } from "./tracking.ts";

export interface ReadMail {
  header: RewrittenHeaders;
  /** The first one that From names. */
  author: Mailbox;
  options: MailOptions;
  /** Signs the mail. */
  domain: SenderDomain;
  summary: IntakeSummary;
  /** What the header sections of its parts ask for, all together. */
  parts: Readonly<PartNeeds>;
  /** SHA-256 of the data as it came, where the mail has an idempotency key. */
  fingerprint: Buffer | null;
}

type Begun = Omit<ReadMail, "summary" | "parts" | "fingerprint">;

export interface Incoming {
  /** The mail as it is to be stored; throws Refusal, MailSyntaxError, MailTooLarge or what `data` throws. */
  bytes: AsyncIterable<Buffer>;
  /** Once `bytes` has been read to its end. */
  result(): ReadMail;
}

export interface IncomingContext {
  /** The Received field to put on top. */
  trace: string;
  /** The Message-ID for a mail that has none. */
  messageId: string;
  now: number;
  /** Our own. */
  hostname: string;
  /** The domain that signs for the mail's authors; throws Refusal. */
  check(authors: Address[]): Promise<SenderDomain>;
  /** Whether the account has the address's domain. */
  maySend(address: Address): Promise<boolean>;
  findPool: FindPool;
}

export function readIncoming(data: AsyncIterable<Buffer>, context: IncomingContext): Incoming {
  let begun: Begun | null = null;
  let summary: IntakeSummary | null = null;
  let walk: MimeWalk | null = null;
  let hash: Hash | null = null;
  const parts: PartNeeds = { smtpUtf8: false, untidy: false };

  const begin = async (section: Buffer): Promise<Buffer> => {
    begun = await readHeader(section, context);
    walk = new MimeWalk(begun.header.fields, lookAtParts(parts));
    if (begun.options.idempotencyKey !== null) hash = createHash("sha256").update(section);
    return begun.header.section;
  };
  const passing = (body: Buffer): Buffer => {
    walk?.push(body);
    hash?.update(body);
    return body;
  };

  async function* pass(): AsyncGenerator<Buffer> {
    const intake = new MailIntake();
    for await (const chunk of data) {
      const { section, body } = intake.push(chunk);
      if (section) yield await begin(section);
      if (body.length > 0) yield passing(body);
    }
    const rest = intake.end();
    if (rest.section) yield await begin(rest.section);
    if (rest.body.length > 0) yield passing(rest.body);
    walk?.end();
    summary = rest.summary;
  }

  return {
    bytes: pass(),
    result() {
      if (!begun || !summary) throw new Error("the mail was not read to its end");
      return { ...begun, summary, parts, fingerprint: hash && hash.digest() };
    },
  };
}

/** Ignores the contents of the parts. */
function lookAtParts(found: PartNeeds): MimeVisitor {
  return {
    part(part: Part): void {
      refuseExecutable(part.fields);
      // The section of the message itself is empty here: rewriteHeaders sees to it.
      if (part.section.length === 0) return;
      const needs = partNeeds(part);
      found.smtpUtf8 ||= needs.smtpUtf8;
      found.untidy ||= needs.untidy && !part.signed;
    },
    content: () => undefined,
    frame: () => undefined,
  };
}

function refuseExecutable(fields: HeaderField[]): void {
  const name = executableIn(fields);
  if (name === null) return;
  const shown = JSON.stringify(name.slice(0, 100));
  throw new Refusal(
    "invalid_attachment",
    `the attachment ${shown} has an executable extension, which is refused; send it in an archive or as a link`,
  );
}

async function readHeader(section: Buffer, context: IncomingContext): Promise<Begun> {
  const { trace, messageId, now, hostname, findPool } = context;
  const came = rewriteHeaders(section, { trace, messageId, date: now, hostname });
  const header = (await keepsSender(came, context)) ? came : came.withoutSender();
  const [author] = header.from;
  if (!author) throw new Error("rewriteHeaders accepted a mail without an author");
  const options = readOptions(header.svc, now, findPool);
  const domain = await context.check(header.from.map(({ address }) => address));
  refuseProblems([checkTracking(domain, options.tracking)]);
  return { header: withUnsubscribe(header, options.tracking.unsubscribe), author, options, domain };
}

/** The fields of a page of the sender's own, which are the same for each recipient. Throws Refusal: it has one already. */
function withUnsubscribe(header: RewrittenHeaders, unsubscribe: Unsubscribe | null): RewrittenHeaders {
  const problems: Problem[] = [];
  const issue = "may not be set beside X-Svc-Unsubscribe, which writes this field";
  const names = header.fields.map(({ name }) => name);
  refuseSecond(
    unsubscribe,
    names,
    (field) => void problems.push({ field, code: "validation_failed", issue }),
  );
  refuseProblems([{ problems, extras: {} }]);
  if (unsubscribe === null || unsubscribe === "hosted") return header;
  const fields = listUnsubscribe(unsubscribe).map(([name, value]) => foldField(name, value));
  return { ...header, section: withFieldsAtEnd(header.section, fields.join("")) };
}

/**
 * Readers show Sender as who wrote it for From: of a domain that is not the account's it is taken out, as RFC 6409 §8.1
 * lets a submission server do. It does not refuse the mail: mail servers add one of their own name by themselves.
 */
async function keepsSender({ sender, from }: RewrittenHeaders, context: IncomingContext): Promise<boolean> {
  if (sender === "none") return true;
  if (sender === null) return false;
  return from.some(({ address }) => address.ascii === sender.ascii) || context.maySend(sender);
}

// What a submission server does to the header section of a mail that came by SMTP (RFC 6409 §8):
// Bcc and our own X-Svc-* options are taken out (the envelope decides who gets it, RFC 5322 §3.6.3),
// Return-Path too (RFC 5321 §4.4), a message token that a client has from another mail, and results of authentication
// that claim to be ours (RFC 8601 §5). Date and Message-ID are added where they lack, Received goes on top.
// Everything else keeps its bytes, order and folding, but that lines over 998 octets are folded and white space before
// a colon is taken out. A field that RFC 5322
// §3.6 allows once may stand there once: two From fields show one author to the check and another to the reader. So may
// an option: of two, one would be dropped. More than 100 Received fields are a loop (RFC 5321 §6.3).
import { isUtf8 } from "node:buffer";
import { parseAddressList } from "./address-list.ts";
import type { Address, Mailbox } from "./address.ts";
import { claimsHost } from "./authentication-results.ts";
import { decodeWords } from "./encoded-word.ts";
import { Effort, foldSection } from "./header-convert.ts";
import { readField, tidyField, withoutManyFields, type ReadField } from "./header-tidy.ts";
import {
  maxFields,
  MailSyntaxError,
  parseHeaderSection,
  withoutObsoleteSpace,
  type HeaderField,
} from "./header.ts";
import { messageTokenField } from "./message-token.ts";
import { mailDate } from "./trace.ts";

export interface RewrittenHeaders {
  /** The new header section with its empty line, CRLF line ends. */
  section: Buffer;
  /** The fields that came and stay. */
  fields: HeaderField[];
  /** The authors, one or more. */
  from: Mailbox[];
  /** The address in Sender; null: the field has none, "none": there is no such field. */
  sender: Address | null | "none";
  /** Decoded (RFC 2047); empty where there is none. */
  subject: string;
  /** With its angle brackets: the one that came, else the one that was added. */
  messageId: string;
  /** The mail came with a Date of its own. */
  hasDate: boolean;
  /** Values of the X-Svc-* fields by lower-case name, e.g. `x-svc-tags`. */
  svc: Map<string, string>;
  /** The same with the Sender field taken out (RFC 6409 §8.1). */
  withoutSender(): RewrittenHeaders;
}

/** What is put in. */
export interface AddedHeaders {
  /** Finished fields, Received (trace.ts) and the message token: always, on top. */
  trace: string;
  /** With its angle brackets: where the mail has none. */
  messageId: string;
  /** Milliseconds since 1970-01-01 UTC: where the mail has no Date. */
  date: number;
  /** Our host name: results of authentication under it are taken out. */
  hostname: string;
}

const once = new Set(
  (
    "from sender reply-to to cc message-id in-reply-to references subject date " +
    "mime-version content-type content-transfer-encoding"
  ).split(" "),
);
const removed = new Set(["bcc", "resent-bcc", "return-path", messageTokenField.toLowerCase()]);
/** RFC 8617 §4.1: they stand and fall together. */
const arc = new Set(["arc-seal", "arc-message-signature", "arc-authentication-results"]);
/** RFC 5321 §6.3: servers that count them take at least 100. */
const maxReceived = 100;
/** ASCII: an id that is not has no other form for a receiver without SMTPUTF8, and is replaced. */
const messageIdForm = /^<[!-;=?-~]{1,900}>$/;

/** Throws MailSyntaxError: bad_header, header_too_large, field_repeated, from_missing, from_invalid, line_too_long, too_many_hops. */
export function rewriteHeaders(section: Uint8Array, add: AddedHeaders): RewrittenHeaders {
  const svc = new Map<string, string>();
  const kept: ReadField[] = [];
  const single = new Map<string, HeaderField>();
  let forgedArc = false;
  let received = 0;
  const bytes = withoutManyFields(Buffer.from(section.buffer, section.byteOffset, section.byteLength), false);
  const isTidy = isUtf8(bytes);
  for (const came of parseHeaderSection(bytes, maxFields)) {
    const field = isTidy ? came : readField(came);
    if (field.lower === "received" && ++received > maxReceived)
      throw new MailSyntaxError(
        "too_many_hops",
        `the mail has more than ${maxReceived} Received fields: it is in a loop between mail servers`,
      );
    const own = field.lower.startsWith("x-svc-");
    if (single.has(field.lower))
      throw new MailSyntaxError("field_repeated", `the mail has more than one ${field.name} field`);
    if (own || once.has(field.lower)) single.set(field.lower, field);
    if (own) svc.set(field.lower, decodeWords(field.value));
    const forged = isResult(field) && claimsHost(field.value, add.hostname);
    forgedArc ||= forged && arc.has(field.lower);
    if (!forged && !isRemoved(field)) kept.push(field);
  }
  const staying = forgedArc ? kept.filter((field) => !arc.has(field.lower)) : kept;
  const effort = new Effort();
  const fields = isTidy ? staying : staying.map((field) => tidyField(field, effort));
  const messageId = single.get("message-id")?.value ?? "";
  const hasMessageId = messageIdForm.test(messageId);
  const hasDate = (single.get("date")?.value ?? "") !== "";
  const found = {
    from: authors(single.get("from")),
    sender: senderOf(single.get("sender")),
    subject: decodeWords(single.get("subject")?.value ?? ""),
    messageId: hasMessageId ? messageId : add.messageId,
    hasDate,
    svc,
  };
  const finish = (of: HeaderField[]): RewrittenHeaders => ({
    ...found,
    section: written(of, add, { hasMessageId, hasDate }),
    fields: of,
    withoutSender: () => finish(of.filter(({ lower }) => lower !== "sender")),
  });
  return finish(fields);
}

function written(
  fields: HeaderField[],
  add: AddedHeaders,
  { hasMessageId, hasDate }: { hasMessageId: boolean; hasDate: boolean },
): Buffer {
  const lines = fields
    .filter((field) => (hasMessageId || field.lower !== "message-id") && (hasDate || field.lower !== "date"))
    .map(withoutObsoleteSpace);
  if (!hasMessageId) lines.push(ascii(`Message-ID: ${add.messageId}\r\n`));
  if (!hasDate) lines.push(ascii(`Date: ${mailDate(add.date)}\r\n`));
  return foldSection(Buffer.concat([ascii(add.trace), ...lines, ascii("\r\n")]));
}

function isRemoved({ lower }: HeaderField): boolean {
  return removed.has(lower) || lower.startsWith("x-svc-");
}

function isResult({ lower }: HeaderField): boolean {
  return lower === "authentication-results" || lower === "arc-authentication-results";
}

function senderOf(field: HeaderField | undefined): RewrittenHeaders["sender"] {
  if (field === undefined) return "none";
  const list = parseAddressList(field.value);
  const [only, ...others] = list.ok ? list.value : [];
  return only && others.length === 0 ? only.address : null;
}

function authors(field: HeaderField | undefined): Mailbox[] {
  if (field === undefined) throw new MailSyntaxError("from_missing", "the mail has no From field");
  const list = parseAddressList(field.value);
  if (!list.ok) throw new MailSyntaxError("from_invalid", `the From field ${list.issue}`);
  if (list.value.length === 0) throw new MailSyntaxError("from_invalid", "the From field has no address");
  return list.value;
}

const ascii = (text: string): Buffer => Buffer.from(text, "latin1");

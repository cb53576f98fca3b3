// The rules of each field of a send request. A reader takes a value of the right shape, reports
// every problem through `add`, and returns what is sound. Shapes and the order of problems: request.ts.
import type { z } from "zod";
import type { ErrorCode } from "../errors.ts";
import { canonicalAddress, parseAddress, parseMailbox, type Mailbox } from "../mail/address.ts";
import { readAttachment } from "../mail/attachments.ts";
import { headerFits, type ComposeAttachment } from "../mail/compose.ts";
import type { messageFields, party, RecipientRequest } from "./shape.ts";

export type Add = (field: string, issue: string, code?: ErrorCode) => void;
type Party = z.infer<typeof party>;
type Field<F extends keyof typeof messageFields> = z.infer<(typeof messageFields)[F]>;

const most = {
  recipients: 50,
  subject: 998,
  headers: 50,
  headerBytes: 8192,
  attachments: 50,
  tags: 10,
  tagLength: 128,
  metadata: 20,
  metadataKey: 128,
  metadataValue: 1024,
  filename: 255,
};
const farthestSendAtMs = 72 * 3_600_000;

/** CR, LF, NUL and lone surrogates never become part of a header; they are refused, not repaired. */
// oxlint-disable-next-line no-control-regex
const headerBreaking = /[\r\n\0]/;
function unfit(text: string): string | null {
  if (headerBreaking.test(text)) return "must not contain CR, LF or NUL";
  return text.isWellFormed() ? null : "contains half of a surrogate pair, which is no character";
}

/** Every entry with the path at which the client finds it. */
export function listed(field: string, value: Party | Party[] | undefined): [string, Party][] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value.map((entry, i) => [`${field}[${i}]`, entry]) : [[field, value]];
}

export function mailboxOf(value: Party, field: string, add: Add): Mailbox | null {
  if (typeof value === "string") {
    const parsed = parseMailbox(value);
    if (parsed.ok) return parsed.value;
    add(field, parsed.issue, "invalid_email_address");
    return null;
  }
  const parsed = parseAddress(value.email);
  const name = value.name ?? null;
  const badName = name === null ? null : unfit(name);
  if (badName) add(`${field}.name`, badName);
  if (!parsed.ok) add(`${field}.email`, parsed.issue, "invalid_email_address");
  return parsed.ok && !badName ? { name: name === "" ? null : name, address: parsed.value } : null;
}

/** Duplicates are folded, the first mention counts. */
export function readRecipients(
  lists: Record<RecipientRequest["type"], Party | Party[] | undefined>,
  add: Add,
): RecipientRequest[] {
  const found = new Map<string, RecipientRequest>();
  for (const type of ["to", "cc", "bcc"] as const) {
    const value = lists[type];
    if (type === "to" && Array.isArray(value) && value.length === 0)
      add("to", "is empty: at least one recipient is required");
    if (Array.isArray(value) && value.length > most.recipients * 4) {
      add(type, `names ${value.length} recipients; at most ${most.recipients} over to, cc and bcc`);
      continue;
    }
    for (const [field, entry] of listed(type, value)) {
      const mailbox = mailboxOf(entry, field, add);
      if (!mailbox) continue;
      const canonical = canonicalAddress(mailbox.address);
      if (!found.has(canonical)) found.set(canonical, { type, field, mailbox, canonical });
    }
  }
  if (found.size > most.recipients)
    add("to", `${found.size} recipients over to, cc and bcc; at most ${most.recipients}`);
  return [...found.values()];
}

export function readSubject(subject: string, add: Add): string {
  const issue = unfit(subject);
  if (issue) add("subject", issue);
  if (subject.length > most.subject)
    add("subject", `has ${subject.length} characters; at most ${most.subject}`);
  return subject;
}

/** Line ends are normalised to CRLF. */
export function readBodies(
  html: string | undefined,
  text: string | undefined,
  add: Add,
): { html: string | null; text: string | null } {
  const read = (field: string, value: string | undefined): string | null => {
    if (value === undefined) return null;
    if (!value.isWellFormed()) add(field, "contains half of a surrogate pair, which is no character");
    return value.replace(/\r\n|\r|\n/g, "\r\n");
  };
  return { html: read("html", html), text: read("text", text) };
}

/** Fields that the service writes itself, or that would change who the mail is from or to. */
const refusedHeader =
  /^(?:from|to|cc|bcc|subject|sender|reply-to|date|message-id|return-path|received|mime-version|dkim-signature|authentication-results|(?:content|resent|arc|x-svc)-.*)$/i;
/** ftext of RFC 5322 §3.6.8. */
const headerName = /^[!-9;-~]{1,76}$/;

export function readHeaders(headers: Field<"headers">, add: Add): [string, string][] {
  const entries = Object.entries(headers);
  const size = entries.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 4, 0);
  if (entries.length > most.headers) add("headers", `has ${entries.length} fields; at most ${most.headers}`);
  if (size > most.headerBytes) add("headers", `has ${size} bytes; at most ${most.headerBytes}`);
  for (const [name, value] of entries.slice(0, most.headers * 4)) {
    const field = `headers.${name.slice(0, 76)}`;
    const issue = unfit(value);
    if (!headerName.test(name))
      add(field, "is not a header field name: printable ASCII without a colon, at most 76 characters");
    else if (refusedHeader.test(name))
      add(field, "may not be set: the service writes this field or has an own option for it");
    else if (issue) add(field, issue);
    else if (!headerFits(name, value)) add(field, "cannot be folded to lines of at most 998 characters");
  }
  return entries;
}

export function readAttachments(attachments: Field<"attachments">, add: Add): ComposeAttachment[] {
  if (attachments.length > most.attachments) {
    add("attachments", `has ${attachments.length} entries; at most ${most.attachments}`);
    return [];
  }
  return attachments.flatMap((attachment, i) => {
    const field = `attachments[${i}]`;
    const { filename, content_id: contentId = null } = attachment;
    const badName =
      filename === ""
        ? "must not be empty"
        : filename.length > most.filename
          ? `has more than ${most.filename} characters`
          : unfit(filename);
    if (badName) add(`${field}.filename`, badName);
    // oxlint-disable-next-line no-control-regex
    if (contentId !== null && !/^[\x21-\x3b\x3d\x3f-\x7e]{1,255}$/.test(contentId))
      add(`${field}.content_id`, "must be printable ASCII without spaces and angle brackets");
    const read = readAttachment(attachment);
    if (!read.ok)
      for (const problem of read.problems)
        add(`${field}.${problem.field}`, problem.issue, "invalid_attachment");
    if (badName || !read.ok) return [];
    const disposition = attachment.disposition ?? (contentId === null ? "attachment" : "inline");
    return [
      { filename, contentType: read.value.contentType, contentId, disposition, bytes: read.value.bytes },
    ];
  });
}

export function refuseTracking(wanted: Record<string, boolean | undefined>, add: Add): void {
  for (const [field, value] of Object.entries(wanted)) {
    if (value) add(field, "tracking is not enabled for this domain", "tracking_disabled");
  }
}

export function readTags(tags: string[], add: Add): string[] {
  if (tags.length > most.tags) add("tags", `has ${tags.length} tags; at most ${most.tags}`);
  tags.slice(0, most.tags * 4).forEach((tag, i) => {
    const issue =
      tag === ""
        ? "must not be empty"
        : tag.length > most.tagLength
          ? `has ${tag.length} characters; at most ${most.tagLength}`
          : unfit(tag);
    if (issue) add(`tags[${i}]`, issue);
  });
  return [...new Set(tags)];
}

export function readMetadata(metadata: Field<"metadata">, add: Add): Record<string, string> {
  const entries = Object.entries(metadata);
  if (entries.length > most.metadata)
    add("metadata", `has ${entries.length} entries; at most ${most.metadata}`);
  for (const [key, value] of entries.slice(0, most.metadata * 4)) {
    const field = `metadata.${key.slice(0, most.metadataKey)}`;
    if (key === "" || key.length > most.metadataKey || !key.isWellFormed())
      add(field, `keys have 1 to ${most.metadataKey} characters`);
    if (value.length > most.metadataValue || !value.isWellFormed())
      add(field, `values have at most ${most.metadataValue} characters`);
  }
  return metadata;
}

/** RFC 3339 with an offset; a past time means at once. */
const timestamp = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/i;

export function readSendAt(text: string | undefined, now: number, add: Add): number | null {
  if (text === undefined) return null;
  const [, year, month, day] = timestamp.exec(text)?.map(Number) ?? [];
  // Date.parse takes February 30 for March 2.
  const isDay = new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day ?? 0)).getUTCDate() === day;
  const at = isDay ? Date.parse(text.toUpperCase()) : Number.NaN;
  if (Number.isNaN(at)) {
    add("send_at", "expected a time such as 2026-12-01T08:00:00Z, with Z or an offset");
    return null;
  }
  if (at - now > farthestSendAtMs)
    add("send_at", "is more than 72 hours ahead", "scheduling_window_exceeded");
  return at > now ? at : null;
}

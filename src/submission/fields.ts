// The rules of each field of a send request. A reader takes a value of the right shape, reports
// every problem through `add`, and returns what is sound. Shapes: shape.ts; the order of problems: request.ts.
import { hourMs } from "../clock.ts";
import { canonicalAddress, parseAddress, parseMailbox, type Mailbox } from "../mail/address.ts";
import { readAttachment } from "../mail/attachments.ts";
import { headerFits, reservedHeader, type ComposeAttachment } from "../mail/compose.ts";
import { recipientTypes } from "../model/recipient.ts";
import { shortName, type Add, type Field, type Party, type RecipientRequest } from "./shape.ts";

/** What a message may have at most; docs/accounts.md shows it. */
export const most = {
  recipients: 50,
  replyTo: 50,
  name: 998,
  subject: 998,
  headers: 50,
  headerBytes: 8192,
  attachments: 50,
  filename: 255,
  tags: 10,
  tag: 128,
  metadata: 20,
  metadataKey: 128,
  metadataValue: 1024,
};
export const farthestSendAtMs = 72 * hourMs;

/** In code points, as people count characters. */
function isLonger(text: string, characters: number): boolean {
  return text.length > characters && (text.length > 2 * characters || Array.from(text).length > characters);
}

/** CR, LF, NUL and lone surrogates never become part of a header; they are refused, not repaired. */
function unfit(text: string): string | null {
  // oxlint-disable-next-line no-control-regex
  if (/[\r\n\0]/.test(text)) return "must not contain CR, LF or NUL";
  return halfPair(text);
}

function halfPair(text: string): string | null {
  return text.isWellFormed() ? null : "contains an unpaired surrogate, which is not a character";
}

function unfitOrLonger(text: string, characters: number): string | null {
  return isLonger(text, characters) ? `has more than ${characters} characters` : unfit(text);
}

/** Every entry with the path at which the client finds it. */
function listed(field: string, value: Party | Party[] | undefined): [string, Party][] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value.map((entry, i) => [`${field}[${i}]`, entry]) : [[field, value]];
}

export function readMailbox(field: string, value: Party, add: Add): Mailbox | null {
  if (typeof value === "string") {
    const parsed = parseMailbox(value);
    const issue = parsed.ok ? unfit(value) : parsed.issue;
    if (issue !== null) add(field, issue, "invalid_email_address");
    return parsed.ok && issue === null ? parsed.value : null;
  }
  const parsed = parseAddress(value.email);
  const name = value.name ?? "";
  const badName = unfitOrLonger(name, most.name);
  if (badName) add(`${field}.name`, badName);
  if (!parsed.ok) add(`${field}.email`, parsed.issue, "invalid_email_address");
  return parsed.ok && !badName ? { name: name === "" ? null : name, address: parsed.value } : null;
}

export function readReplyTo(value: Party | Party[] | undefined, add: Add): Mailbox[] {
  const entries = listed("reply_to", value);
  if (entries.length > most.replyTo)
    add("reply_to", `has ${entries.length} addresses; at most ${most.replyTo}`);
  return entries.flatMap(([field, entry]) => readMailbox(field, entry, add) ?? []);
}

/** Duplicates are folded, the first mention counts. */
export function readRecipients(
  lists: Record<RecipientRequest["type"], Party | Party[] | undefined>,
  add: Add,
): RecipientRequest[] {
  const found = new Map<string, RecipientRequest>();
  for (const type of recipientTypes) {
    for (const [field, entry] of listed(type, lists[type])) {
      const mailbox = readMailbox(field, entry, add);
      if (!mailbox) continue;
      const canonical = canonicalAddress(mailbox.address);
      if (!found.has(canonical)) found.set(canonical, { type, field, mailbox, canonical });
    }
  }
  if (Array.isArray(lists.to) && lists.to.length === 0)
    add("to", "is empty: at least one recipient is required");
  if (found.size > most.recipients)
    add("to", `${found.size} recipients over to, cc and bcc; at most ${most.recipients}`);
  return [...found.values()];
}

export function readSubject(subject: string, add: Add): string {
  const issue = unfitOrLonger(subject, most.subject);
  if (issue) add("subject", issue);
  return subject;
}

/** Line ends are normalised to CRLF. */
export function readBody(field: "html" | "text", value: string | undefined, add: Add): string | null {
  if (value === undefined) return null;
  const issue = halfPair(value);
  if (issue) add(field, issue);
  return value.replace(/\r\n|\r|\n/g, "\r\n");
}

/** ftext of RFC 5322 §3.6.8. */
const headerName = /^[!-9;-~]{1,76}$/;

export function readHeaders(headers: Field<"headers">, add: Add): [string, string][] {
  const entries = Object.entries(headers);
  const size = entries.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 4, 0);
  if (entries.length > most.headers) add("headers", `has ${entries.length} fields; at most ${most.headers}`);
  if (size > most.headerBytes) add("headers", `has ${size} bytes; at most ${most.headerBytes}`);
  for (const [name, value] of entries) {
    const field = `headers.${shortName(name)}`;
    const issue = unfit(value);
    if (!headerName.test(name))
      add(field, "is not a header field name: printable ASCII without a colon, at most 76 characters");
    else if (reservedHeader(name))
      add(field, "may not be set: the service writes this field or has an option for it");
    else if (issue) add(field, issue);
    else if (idField.test(name) && /[^\t\x20-\x7e]/.test(value))
      add(field, "has a message id that is not ASCII, which has no other form");
    else if (size <= most.headerBytes && !headerFits(name, value))
      add(field, "cannot be folded to lines of at most 998 characters");
  }
  return entries;
}

/** Of msg-ids, where RFC 2047 §5 allows no encoded-words. */
const idField = /^(?:references|in-reply-to)$/i;

const contentIdForm = /^[\x21-\x3b\x3d\x3f-\x7e]{1,255}$/;

export function readAttachments(attachments: Field<"attachments">, add: Add): ComposeAttachment[] {
  if (attachments.length > most.attachments)
    add("attachments", `has ${attachments.length} entries; at most ${most.attachments}`);
  return attachments.slice(0, most.attachments).flatMap((attachment, i) => {
    const field = `attachments[${i}]`;
    const { filename, content_id: contentId = null } = attachment;
    const badName = filename === "" ? "must not be empty" : unfitOrLonger(filename, most.filename);
    if (badName) add(`${field}.filename`, badName);
    if (contentId !== null && !contentIdForm.test(contentId))
      add(
        `${field}.content_id`,
        "must be 1 to 255 printable ASCII characters without spaces and angle brackets",
      );
    const read = readAttachment(badName ? { ...attachment, filename: "" } : attachment);
    if (!read.ok)
      for (const problem of read.problems)
        add(`${field}.${problem.field}`, problem.issue, "invalid_attachment");
    if (badName || !read.ok) return [];
    const disposition = attachment.disposition ?? (contentId === null ? "attachment" : "inline");
    return [{ filename, contentId, disposition, ...read.value }];
  });
}

/** A tag that is given twice counts once. */
export function readTags(tags: string[], add: Add): string[] {
  if (tags.length > most.tags) add("tags", `has ${tags.length} tags; at most ${most.tags}`);
  tags.forEach((tag, i) => {
    const issue = tag === "" ? "must not be empty" : unfitOrLonger(tag, most.tag);
    if (issue) add(`tags[${i}]`, issue);
  });
  return [...new Set(tags)];
}

export function readMetadata(metadata: Field<"metadata">, add: Add): Record<string, string> {
  const entries = Object.entries(metadata);
  if (entries.length > most.metadata)
    add("metadata", `has ${entries.length} entries; at most ${most.metadata}`);
  for (const [key, value] of entries) {
    const field = `metadata.${shortName(key)}`;
    if (key === "" || isLonger(key, most.metadataKey))
      add(field, `is not a key: keys have 1 to ${most.metadataKey} characters`);
    if (isLonger(value, most.metadataValue)) add(field, `has more than ${most.metadataValue} characters`);
    const issue = halfPair(key) ?? halfPair(value);
    if (issue) add(field, issue);
  }
  return metadata;
}

/** RFC 3339 with an offset. Leap seconds are none that a clock of ours would show. */
const timestamp =
  /^(\d{4})-(\d{2})-(\d{2})T(?:[01]\d|2[0-3]):\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/i;

/** Milliseconds since 1970; null: at once, also for a past time. */
export function readSendAt(text: string | undefined, now: number, add: Add): number | null {
  if (text === undefined) return null;
  const [, year = 0, month = 0, day = 0] = timestamp.exec(text)?.map(Number) ?? [];
  // Date.parse takes February 30 for March 2.
  const isDay = new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
  const at = isDay ? Date.parse(text.toUpperCase()) : Number.NaN;
  if (Number.isNaN(at)) {
    add("send_at", "expected a time such as 2026-12-01T08:00:00Z, with Z or an offset");
    return null;
  }
  if (at - now > farthestSendAtMs)
    add("send_at", "is more than 72 hours ahead", "scheduling_window_exceeded");
  return at > now ? at : null;
}

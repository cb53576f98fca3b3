// Header fields as we write them: folded at white space only (RFC 5322 §2.2.3), at 78 octets where
// that can be and never over 998 (§2.1.1), ASCII by RFC 2047 and RFC 2231. Only a local part that is
// not ASCII makes a field UTF-8 (RFC 6532). Whatever the strings, one call writes one field.
import { buildHeaderParam, quoteString } from "nodemailer/lib/mime-funcs";
import { parseAddressList } from "./address-list.ts";
import { needsSmtpUtf8, rcptTo, type Mailbox } from "./address.ts";
import { encodeWords, isPlainText, maxWordLength } from "./encoded-word.ts";
import { messageTokenField } from "./message-token.ts";

const wishedLength = 78;
const maxLength = 998;
/** RFC 2047 §2: a line with an encoded-word has at most 76 octets. */
const wordLineLength = 76;
const fieldName = /^[!-9;-~]{1,76}$/;
/** Words of a phrase that need no quotes (RFC 5322 §3.2.3). */
const phrase = /^[\w!#$%&'*+\-/=?^`{|}~]+(?: [\w!#$%&'*+\-/=?^`{|}~]+)*$/;

const notPlain = /[^\x20-\x7e\t]/;

/** Names that a message may not bring along: the composer, the relay or the signer write them. */
const reserved = new Set(
  "from to cc bcc subject sender reply-to date message-id return-path received mime-version dkim-signature authentication-results".split(
    " ",
  ),
).add(messageTokenField.toLowerCase());
const reservedPrefix = /^(?:content|resent|arc|x-svc)-/;

/** A custom header of this name is refused (any case): it would repeat or contradict one of ours. */
export function reservedHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return reserved.has(lower) || reservedPrefix.test(lower);
}

/** Whether a custom header can be written: a legal name, no CR, LF or NUL, no line over 998 octets. */
export function headerFits(name: string, value: string): boolean {
  if (!fieldName.test(name) || /[\0\r\n]/.test(value)) return false;
  return linesFit(customField(name, value));
}

function linesFit(field: string): boolean {
  return field.split("\r\n").every((line) => line.length <= maxLength);
}

/** A field of free text, such as Subject: encoded as a whole where it must be, so that no space is lost. */
export function textField(name: string, text: string): string {
  const clean = oneLine(text);
  if (isPlainText(clean)) {
    const folded = fold(name, clean);
    if (linesFit(folded)) return folded;
  }
  return foldWords(name, encodeWords(clean, wordLineLength - name.length - 2));
}

/** A custom field: its ASCII is left alone, for it may have a syntax of its own (RFC 2369 URLs). */
export function customField(name: string, value: string): string {
  const clean = uriFields.test(name) ? asciiUris(oneLine(value)) : oneLine(value);
  if (!notPlain.test(clean)) return fold(name, clean);
  const list = otherAddressFields.has(name.toLowerCase()) ? parseAddressList(clean) : null;
  if (list?.ok) return addressField(name, list.value);
  return fold(name, encodedRun(clean));
}

/** From the first to the last word that is not ASCII as encoded-words: spaces between two would be lost. */
export function encodedRun(text: string): string {
  const first = text.search(notPlain);
  if (first < 0) return text;
  let last = text.length - 1;
  while (!notPlain.test(text.charAt(last))) last--;
  const start = text.lastIndexOf(" ", first) + 1;
  const space = text.indexOf(" ", last);
  const end = space < 0 ? text.length : space;
  const words = encodeWords(text.slice(start, end), maxWordLength).join(" ");
  return text.slice(0, start) + words + text.slice(end);
}

/** Of addresses, beside those of RFC 5322; names are encoded there, and nothing else. */
export const otherAddressFields = new Set(
  "disposition-notification-to errors-to return-receipt-to mail-followup-to mail-reply-to".split(" "),
);

/** RFC 2369 §2: URIs in angle brackets. List-Id is a phrase. */
const uriFields = /^list-(?:unsubscribe|subscribe|help|post|owner|archive)$/i;

/** RFC 2047 §5 allows no encoded-word within them; RFC 3986 §2.1 has octets of UTF-8 percent-encoded. */
function asciiUris(value: string): string {
  return value.replace(/<[^<>]*>/g, (uri) =>
    uri.replace(/\P{ASCII}+/gu, (text) => encodeURIComponent(text.toWellFormed())),
  );
}

/** From, To, Cc, Reply-To (RFC 5322 §3.4). */
export function addressField(name: string, mailboxes: Mailbox[]): string {
  return fold(name, mailboxes.map(mailboxText).join(", "));
}

/** A header with an address of this kind is UTF-8, and the message needs SMTPUTF8. */
export function needsUtf8Header(mailboxes: Mailbox[]): boolean {
  return mailboxes.some((mailbox) => needsSmtpUtf8(mailbox.address));
}

function mailboxText({ name, address }: Mailbox): string {
  const spec = rcptTo(address);
  const clean = name === null ? "" : oneLine(name);
  if (clean === "") return spec;
  if (!isPlainText(clean) || clean.length > 200)
    return `${encodeWords(clean, maxWordLength).join(" ")} <${spec}>`;
  return `${phrase.test(clean) ? clean : quoteString(clean)} <${spec}>`;
}

/** A structured field with one parameter, by RFC 2231 where it is long or not ASCII. */
export function parameterField(name: string, value: string, key: string, text: string): string {
  const params = buildHeaderParam(key, oneLine(text).toWellFormed(), 50).map((part) => {
    const bare = part.key.endsWith("*") || /^[\w!#$%&'+\-.^`{|}~]+$/.test(part.value);
    return `${part.key}=${bare ? part.value : quoteString(part.value)}`;
  });
  return fold(name, [value, ...params].join("; "));
}

/** REST and SMTP refuse line ends; should one come this far, it can end no line. */
function oneLine(text: string): string {
  return text.replace(/[\0\r\n]+/g, " ").replace(/^[ \t]+|[ \t]+$/g, "");
}

/** A field whose text is ready, folded. */
export function foldField(name: string, value: string): string {
  return fold(name, oneLine(value));
}

/** `fields`, finished, behind the last one of a section, before its empty line. */
export function withFieldsAtEnd(section: Buffer, fields: string): Buffer {
  const end = section.length - 2;
  return Buffer.concat([section.subarray(0, end), Buffer.from(`${fields}\r\n`, "latin1")]);
}

/** Breaks before runs of white space, so that unfolding gives the value back and no line is blank. */
function fold(name: string, value: string): string {
  if (value === "") return `${name}:\r\n`;
  if (name.length + 2 + value.length <= wishedLength) return `${name}: ${value}\r\n`;
  let text = `${name}:`;
  let length = text.length;
  // A first token that fits no line of 78 stays beside the name while 998 allow it.
  let limit = maxLength;
  for (const token of ` ${value}`.match(/[ \t]+[^ \t]+/g) ?? []) {
    if (token.length <= wishedLength) limit = wishedLength;
    const breaks = length + token.length > limit;
    text += breaks ? `\r\n${token}` : token;
    length = breaks ? token.length : length + token.length;
    limit = wishedLength;
  }
  return `${text}\r\n`;
}

function foldWords(name: string, words: string[]): string {
  return `${name}: ${words.join("\r\n ")}\r\n`;
}

// Header sections that must become narrower than they came: lines over 998 octets are folded where they have white
// space (RFC 5322 §2.2.3: unfolding gives the same text back), octets above 127 are written in ASCII: by RFC 2231
// in the parameters of MIME fields, as addresses with encoded names, else by RFC 2047. A section that is
// narrow enough is returned as it is, the same Buffer. An address whose local part is not ASCII has no other form.
// Fields of trace and of MIME have no encoded-words (RFC 2047 §5). What this costs a mail is bounded by `Effort`.
import { isAscii, isUtf8 } from "node:buffer";
import { buildHeaderParam } from "nodemailer/lib/mime-funcs";
import { parseAddressList } from "./address-list.ts";
import { needsSmtpUtf8 } from "./address.ts";
import { decodeLatin1, decodeWords } from "./encoded-word.ts";
import {
  addressField,
  customField,
  encodedRun,
  foldField,
  otherAddressFields,
  textField,
} from "./header-write.ts";
import { MailSyntaxError, parsePartSection, type HeaderField } from "./header.ts";
import { readStructured } from "./structured.ts";

/** Fields to be replaced or, where the section has none, added, by their names. */
export type FieldChanges = Record<string, string>;

const maxLineOctets = 998;
const mimeFields = new Set(["content-type", "content-disposition"]);
/** Of msg-ids (RFC 5322 §3.6.4). */
const idFields = new Set(["references", "in-reply-to"]);
/** Of trace, of authentication and of MIME, whose syntax has no place for text (RFC 5322 §3.6.7, RFC 8601 §2.2, RFC 8617, RFC 2045). */
const structuredFields = new Set(
  (
    "received received-spf return-path delivered-to authentication-results arc-authentication-results arc-seal " +
    "arc-message-signature dkim-signature domainkey-signature date resent-date message-id resent-message-id " +
    "mime-version content-transfer-encoding content-id content-language content-location auto-submitted autocrypt"
  ).split(" "),
);
const plainParameter = /^[\x20-\x7e]{0,300}$/;
const addressFields = new Set([
  ..."from sender reply-to to cc resent-from resent-sender resent-to resent-cc resent-reply-to".split(" "),
  ...otherAddressFields,
]);

export function has8Bit(bytes: Buffer): boolean {
  return !isAscii(bytes);
}

/** Throws MailSyntaxError line_too_long for a line without white space to fold at. */
export function foldSection(section: Buffer): Buffer {
  if (!hasLongLine(section)) return section;
  const lines = section.toString("latin1").split("\r\n");
  return Buffer.from(
    lines.map((line) => (line.length > maxLineOctets ? folded(line) : line)).join("\r\n"),
    "latin1",
  );
}

/** Throws MailSyntaxError not_convertible, but not for a part: there, an invalid address becomes text (RFC 6857 §3.1). */
export function asciiSection(
  section: Buffer,
  of: "message" | "part" = "message",
  effort: Effort = new Effort(),
): Buffer {
  if (!has8Bit(section)) return section;
  if (of === "part" && effort.spent)
    return Buffer.from(section.toString().replace(/\P{ASCII}/gu, "?"), "latin1");
  const parts: Buffer[] = [];
  let end = 0;
  // Lines between two fields that are not fields; they have no meaning.
  for (const field of parsePartSection(section)) {
    parts.push(has8Bit(field.raw) ? Buffer.from(narrowField(field, of, effort), "latin1") : field.raw);
    end = field.raw.byteOffset - section.byteOffset + field.raw.length;
  }
  const rest = section.subarray(end);
  return Buffer.concat([...parts, has8Bit(rest) ? Buffer.from("\r\n", "latin1") : rest]);
}

function narrowField(field: HeaderField, of: "message" | "part", effort: Effort): string {
  if (!effort.allows(field)) return marked(field);
  const written = asciiField(field);
  if (written !== null) return written;
  if (of === "part") return customField(field.name, textOf(field));
  throw new MailSyntaxError("not_convertible", `the ${field.name} field has an address that needs SMTPUTF8`);
}

/**
 * What may be spent on a header section, or on those of all parts of a mail. RFC 2047 costs more than the look at a
 * field, and a mail of 25 MB has room for millions: what is beyond is written in a way that costs next to nothing.
 */
export class Effort {
  #left: number;
  readonly #seen = new Set<string>();

  constructor(octets = 16_384) {
    this.#left = octets;
  }

  get spent(): boolean {
    return this.#left === 0;
  }

  allows({ lower, raw }: HeaderField): boolean {
    // What readers show, once: a list of recipients may be long.
    if (shownFields.has(lower) && !this.#seen.has(lower)) {
      this.#seen.add(lower);
      return true;
    }
    this.#left -= Math.min(raw.length + fieldCost, this.#left);
    return this.#left > 0;
  }
}
/** Of some hundred attachments, each with a name in two fields. */
export const partsEffort = 262_144;
/** Of a field of any length, in octets of a long one. */
const fieldCost = 100;
const shownFields = new Set(["from", "sender", "reply-to", "to", "cc", "subject"]);

export function withFields(section: Buffer, changes: FieldChanges): Buffer {
  const names = new Map(Object.keys(changes).map((name) => [name.toLowerCase(), name]));
  const fields = parsePartSection(section);
  const out: Buffer[] = [];
  for (const { lower, raw } of fields) {
    const name = names.get(lower);
    if (name === undefined) out.push(raw);
    else if (!out.some((one) => one.toString("latin1", 0, name.length + 1).toLowerCase() === `${lower}:`))
      out.push(Buffer.from(`${name}: ${changes[name] ?? ""}\r\n`, "latin1"));
  }
  const present = new Set(fields.map(({ lower }) => lower));
  for (const [lower, name] of names)
    if (!present.has(lower)) out.push(Buffer.from(`${name}: ${changes[name] ?? ""}\r\n`, "latin1"));
  return Buffer.concat([...out, Buffer.from("\r\n", "latin1")]);
}

function hasLongLine(section: Buffer): boolean {
  for (let at = 0; at < section.length;) {
    const end = section.indexOf("\r\n", at, "latin1");
    if ((end < 0 ? section.length : end) - at > maxLineOctets) return true;
    if (end < 0) return false;
    at = end + 2;
  }
  return false;
}

/** Breaks before white space that has text on both sides. */
function folded(line: string): string {
  const out: string[] = [];
  let rest = line;
  while (rest.length > maxLineOctets) {
    const at = lastBreak(rest);
    if (at < 0)
      throw new MailSyntaxError(
        "line_too_long",
        "a header line has more than 998 octets and no white space at which it could be folded",
      );
    out.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...out, rest].join("\r\n");
}

function lastBreak(line: string): number {
  const first = line.search(/[^ \t]/);
  const last = line.trimEnd().length;
  for (let at = Math.min(maxLineOctets, last - 1); at > first; at--)
    if (line[at] === " " || line[at] === "\t") return at;
  return -1;
}

/** Null where it has an address that is not ASCII. */
export function asciiField(field: HeaderField): string | null {
  const written = encodedField(field);
  // Percent signs and words take more room than octets.
  return written === null || !hasLongToken(written) ? written : marked(field);
}

function encodedField(field: HeaderField): string | null {
  const { name, lower } = field;
  if (structuredFields.has(lower)) return marked(field);
  const value = textOf(field);
  if (idFields.has(lower)) return idField(name, value);
  if (mimeFields.has(lower)) return mimeField(name, value);
  if (lower === "subject" || lower === "comments") return textField(name, decodeWords(value));
  if (!addressFields.has(lower)) return customField(name, value);
  const list = parseAddressList(value);
  if (!list.ok) return phrasesField(name, value);
  return list.value.some(({ address }) => needsSmtpUtf8(address)) ? null : addressField(name, list.value);
}

/** A value that is not a valid address list: names are encoded as phrases, and ASCII in angle brackets is kept. */
function phrasesField(name: string, value: string): string {
  if (value.length > longestPhrases || /<[^<>]*[^\x20-\x7e<>]/.test(value)) return customField(name, value);
  return foldField(
    name,
    value
      .split(/(<[^<>]*>)/)
      .map((text, i) => (i % 2 === 0 ? encodedRun(text) : text))
      .join(""),
  );
}
const longestPhrases = 4_000;

/** As it came, with `?` for each character that is not ASCII. */
export function marked({ raw }: HeaderField): string {
  return isUtf8(raw)
    ? raw.toString().replace(/\P{ASCII}/gu, "?")
    : raw.toString("latin1").replace(/[\x80-\xff]/g, "?");
}

/** It has a line that no folding makes shorter than 998 octets. */
export function hasLongToken(field: string): boolean {
  if (field.length <= maxLineOctets) return false;
  return field.match(/[^ \t\r\n]+/g)?.some((token) => token.length >= maxLineOctets) ?? false;
}

/** Ids have no other form (RFC 2047 §5 allows no encoded-word there): those that are not ASCII are left out. */
function idField(name: string, value: string): string {
  const ids = value.match(/<[^<>]{0,998}>/g)?.filter((id) => /^[!-~]+$/.test(id)) ?? [];
  return ids.length === 0 ? "" : foldField(name, ids.join(" "));
}

function textOf({ raw, value }: HeaderField): string {
  return isUtf8(raw) ? value : latin1Text(raw);
}

/** The text of a field that is not valid UTF-8, read as most programs read it, so that nothing of it is lost. */
export function latin1Text(raw: Buffer): string {
  const text = decodeLatin1(raw);
  const inner = text.slice(text.indexOf(":") + 1).trim();
  return inner.includes("\n") ? inner.replace(/\r\n(?=[ \t])/g, "") : inner;
}

function mimeField(name: string, value: string): string {
  const { value: head, parameters } = readStructured(value);
  const written = parameters.flatMap(([key, text]) => {
    // A boundary in pieces (RFC 2231 §3) is more than many readers know.
    if (plainParameter.test(text)) return [`${key}=${quoted(text)}`];
    return buildHeaderParam(key, text.toWellFormed(), 50).map((part) =>
      part.key.endsWith("*") ? `${part.key}=${part.value}` : `${part.key}=${quoted(part.value)}`,
    );
  });
  return foldField(name, [head, ...written].join("; "));
}

const quoted = (text: string): string => `"${text.replace(/["\\]/g, "\\$&")}"`;

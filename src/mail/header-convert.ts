// Header sections that must become narrower than they came: lines over 998 octets are folded where they have white
// space (RFC 5322 §2.2.3: unfolding gives the same text back), octets above 127 are written in ASCII: by RFC 2231
// in the parameters of MIME fields, as addresses with encoded names, else by RFC 2047. A section that is
// narrow enough is given back as it is, the same Buffer. An address whose local part is not ASCII has no other form.
import { isAscii, isUtf8 } from "node:buffer";
import { buildHeaderParam } from "nodemailer/lib/mime-funcs";
import { parseAddressList } from "./address-list.ts";
import { needsSmtpUtf8 } from "./address.ts";
import { decodeCharset, decodeWords } from "./encoded-word.ts";
import { addressField, customField, foldField, otherAddressFields, textField } from "./header-write.ts";
import { MailSyntaxError, parsePartSection, withoutObsoleteSpace, type HeaderField } from "./header.ts";
import { readStructured } from "./structured.ts";

/** Fields to be replaced or, where the section has none, added, by their names. */
export type FieldChanges = Record<string, string>;

/** `lines`: none over 998 octets, header sections in UTF-8. `ascii`: that, and none above 127. */
export type Wire = "lines" | "ascii";

/** What a header section belongs to. */
export type SectionKind = "message" | "part" | "signed part";

const maxLineOctets = 998;
const mimeFields = new Set(["content-type", "content-disposition"]);
/** Of msg-ids (RFC 5322 §3.6.4). */
const idFields = new Set(["references", "in-reply-to"]);
const plainParameter = /^[\x20-\x7e]{0,300}$/;
const addressFields = new Set([
  ..."from sender reply-to to cc resent-from resent-sender resent-to resent-cc resent-reply-to".split(" "),
  ...otherAddressFields,
]);

export function has8Bit(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte > 127) return true;
  return false;
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

/** Throws MailSyntaxError not_convertible, but not for a part: there, what is no address becomes text (as RFC 6857 §3.1 has it). */
export function asciiSection(section: Buffer, of: "message" | "part" = "message"): Buffer {
  if (!has8Bit(section)) return section;
  const parts: Buffer[] = [];
  let end = 0;
  // Lines that are no field stand between two fields; they can say nothing.
  for (const field of parsePartSection(section)) {
    parts.push(has8Bit(field.raw) ? Buffer.from(asciiField(field, of), "latin1") : field.raw);
    end = field.raw.byteOffset - section.byteOffset + field.raw.length;
  }
  const rest = section.subarray(end);
  return Buffer.concat([...parts, has8Bit(rest) ? Buffer.from("\r\n", "latin1") : rest]);
}

/** What the header section of a part asks of the mail that holds it. */
export interface PartNeeds {
  /** It has UTF-8: 8BITMIME covers bodies only (RFC 6152 §1), a header section needs SMTPUTF8 (RFC 6532 §3). */
  smtpUtf8: boolean;
  /** It has octets that are no UTF-8, or white space before a colon: `tidySection` takes them out. */
  untidy: boolean;
}

export function partNeeds({ section, fields }: { section: Buffer; fields: HeaderField[] }): PartNeeds {
  const wide = !isAscii(section);
  const utf8 = wide && isUtf8(section);
  return { smtpUtf8: utf8, untidy: wide !== utf8 || fields.some(hasObsoleteSpace) };
}

/** A part's header section without octets that are no UTF-8 (RFC 6532) and without white space before colons (RFC 5322 §4.5). */
export function tidySection(section: Buffer): Buffer {
  const readable = isUtf8(section) ? section : asciiSection(section, "part");
  const fields = parsePartSection(readable);
  if (!fields.some(hasObsoleteSpace)) return readable;
  const parts: Buffer[] = [];
  let end = 0;
  for (const field of fields) {
    const at = field.raw.byteOffset - readable.byteOffset;
    parts.push(readable.subarray(end, at), withoutObsoleteSpace(field));
    end = at + field.raw.length;
  }
  return Buffer.concat([...parts, readable.subarray(end)]);
}

const colon = 58;
function hasObsoleteSpace({ name, raw }: HeaderField): boolean {
  return raw[name.length] !== colon;
}

export function partKind({ signed }: { signed: boolean }): SectionKind {
  return signed ? "signed part" : "part";
}

/** The same Buffer where nothing is to be changed. */
export function sectionFor(section: Buffer, wire: Wire, of: SectionKind): Buffer {
  if (wire === "ascii") return foldSection(asciiSection(section, of === "message" ? "message" : "part"));
  return foldSection(of === "part" ? tidySection(section) : section);
}

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

function asciiField(field: HeaderField, of: "message" | "part" = "message"): string {
  const { name, lower } = field;
  const value = textOf(field);
  if (idFields.has(lower)) return idField(name, value);
  if (mimeFields.has(lower)) return mimeField(name, value);
  if (lower === "subject" || lower === "comments") return textField(name, decodeWords(value));
  if (!addressFields.has(lower)) return customField(name, value);
  const list = parseAddressList(value);
  const inAscii = list.ok && !list.value.some(({ address }) => needsSmtpUtf8(address));
  if (!inAscii && of === "part") return customField(name, value);
  if (!list.ok || !inAscii)
    throw new MailSyntaxError("not_convertible", `the ${name} field has an address that needs SMTPUTF8`);
  return addressField(name, list.value);
}

/** Ids have no other form (RFC 2047 §5 allows no encoded-word there): those that are not ASCII are left out. */
function idField(name: string, value: string): string {
  const ids = value.match(/<[^<>]{0,998}>/g)?.filter((id) => /^[!-~]+$/.test(id)) ?? [];
  return ids.length === 0 ? "" : foldField(name, ids.join(" "));
}

/** A field whose octets are no UTF-8 (RFC 6532 allows no others), in ASCII and with its decoded text. */
export function readable(field: HeaderField): HeaderField {
  if (isUtf8(field.raw)) return field;
  return { ...field, raw: Buffer.from(asciiField(field), "latin1"), value: textOf(field) };
}

/** Octets that are no UTF-8 are read as most programs read them, so that nothing of them is lost. */
function textOf({ raw, value }: HeaderField): string {
  if (isUtf8(raw)) return value;
  const text = decodeCharset("windows-1252", raw).replace(/\r\n(?=[ \t])/g, "");
  return text.slice(text.indexOf(":") + 1).trim();
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

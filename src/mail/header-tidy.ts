// Header sections as they may be stored and sent: without octets that are not UTF-8 (RFC 6532) and, in parts, without
// white space before a colon (RFC 5322 §4.5). A field is written in ASCII where it has such a form, else in UTF-8; no
// mail is refused for it. What a signature covers (multipart/signed) keeps each byte. The forms are header-convert.ts.
import { isAscii, isUtf8 } from "node:buffer";
import { decodeLatin1 } from "./encoded-word.ts";
import {
  asciiField,
  asciiSection,
  Effort,
  foldSection,
  hasLongToken,
  latin1Text,
  marked,
} from "./header-convert.ts";
import { parsePartSection, withoutObsoleteSpace, type HeaderField } from "./header.ts";

/** `lines`: none over 998 octets, header sections in UTF-8. `ascii`: that, and none above 127. */
export type Wire = "lines" | "ascii";

/** What a header section belongs to. */
export type SectionKind = "message" | "part" | "signed part";

/** What the header section of a part requires of its mail. */
export interface PartNeeds {
  /** It has UTF-8: 8BITMIME covers bodies only (RFC 6152 §1), a header section needs SMTPUTF8 (RFC 6532 §3). */
  smtpUtf8: boolean;
  /** It has octets that are not UTF-8, or white space before a colon: `tidySection` removes them. */
  untidy: boolean;
}

export function partNeeds({ section, fields }: { section: Buffer; fields: HeaderField[] }): PartNeeds {
  const wide = !isAscii(section);
  const utf8 = wide && isUtf8(section);
  return { smtpUtf8: utf8, untidy: wide !== utf8 || fields.some(hasObsoleteSpace) };
}

export function partKind({ signed }: { signed: boolean }): SectionKind {
  return signed ? "signed part" : "part";
}

/** The same Buffer where nothing is to be changed; `ofParts` is for all parts of the mail. */
export function sectionFor(section: Buffer, wire: Wire, of: SectionKind, ofParts: Effort): Buffer {
  const effort = of === "message" ? new Effort() : ofParts;
  if (wire === "ascii")
    return foldSection(asciiSection(section, of === "message" ? "message" : "part", effort));
  return foldSection(of === "part" ? tidySection(section, effort) : section);
}

/** A part's header section without octets that are not UTF-8 and without white space before colons. */
export function tidySection(section: Buffer, effort: Effort = new Effort()): Buffer {
  const bytes = withoutManyFields(section, effort.spent);
  if (isUtf8(bytes) && !obsoleteSpace.test(bytes.toString("latin1"))) return bytes;
  const fields = parsePartSection(bytes);
  const parts: Buffer[] = [];
  let end = 0;
  for (const field of fields) {
    const at = field.raw.byteOffset - bytes.byteOffset;
    parts.push(
      readableLines(bytes.subarray(end, at)),
      withoutObsoleteSpace(tidyField(readField(field), effort)),
    );
    end = at + field.raw.length;
  }
  return Buffer.concat([...parts, readableLines(bytes.subarray(end))]);
}

/** A section of so many lines, or behind so many, that a look at each field would be dear, in UTF-8 at once; any other as it is. */
export function withoutManyFields(section: Buffer, spent: boolean): Buffer {
  if ((!spent && section.length < mostLines * shortestLine) || isUtf8(section)) return section;
  const text = section.toString("latin1");
  if (!spent && (text.match(/\n/g)?.length ?? 0) <= mostLines) return section;
  const utf8 = text.replace(/[\x80-\xff]+/g, (run) =>
    utf8Run.test(run)
      ? run
      : run.replace(/[\x80-\xff]/g, (octet) => utf8Of[octet.charCodeAt(0) - 128] ?? "?"),
  );
  return Buffer.from(hasLongToken(utf8) ? text.replace(/[\x80-\xff]/g, "?") : utf8, "latin1");
}
/** No mail that people write has as many. */
const mostLines = 1_000;
/** `X:` and its line end. */
const shortestLine = 4;
/** RFC 3629 §4. */
const utf8Run =
  /^(?:(?:[\xc2-\xdf]|\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]|\xed[\x80-\x9f]|(?:\xf0[\x90-\xbf]|[\xf1-\xf3][\x80-\xbf]|\xf4[\x80-\x8f])[\x80-\xbf])[\x80-\xbf])+$/;
/** The octets of UTF-8 for each octet above 127. */
const utf8Of = Array.from({ length: 128 }, (_, i) =>
  Buffer.from(decodeLatin1(Buffer.from([i + 128]))).toString("latin1"),
);

/** The value of a field that is not valid UTF-8 is its text. */
export interface ReadField extends HeaderField {
  untidy?: true;
}

/** For those who judge values; `tidyField` then makes it fit to be sent. */
export function readField(field: HeaderField): ReadField {
  const { name, lower, raw } = field;
  // Skipped: most fields of a section that has such octets have none themselves.
  if (!field.value.includes("\ufffd") || isUtf8(raw)) return field;
  return { name, lower, raw, value: latin1Text(raw), untidy: true };
}

/** The same where its octets are UTF-8. */
export function tidyField(field: ReadField, effort: Effort): HeaderField {
  if (!field.untidy) return field;
  const written = effort.allows(field) ? asciiField(field) : null;
  const { name, lower, value } = field;
  return { name, lower, value, raw: written === null ? inUtf8(field) : Buffer.from(written, "latin1") };
}

/** `foldSection` folds it. */
function inUtf8(field: HeaderField): Buffer {
  const written = Buffer.from(`${field.name}: ${field.value}\r\n`);
  // UTF-8 takes up to three times the room.
  return written.length > 998 && hasLongToken(written.toString("latin1"))
    ? Buffer.from(marked(field), "latin1")
    : written;
}

/** Lines that are not fields. */
function readableLines(lines: Buffer): Buffer {
  return isUtf8(lines) ? lines : Buffer.from(lines.toString("latin1").replace(/[\x80-\xff]/g, "?"), "latin1");
}

/** As `hasObsoleteSpace` finds it, without a look at each field. */
const obsoleteSpace = /(?:^|\n)[!-9;-~]+[ \t]+:/;
const colon = 58;
function hasObsoleteSpace({ name, raw }: HeaderField): boolean {
  return raw[name.length] !== colon;
}

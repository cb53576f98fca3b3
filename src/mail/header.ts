// The header section as fields (RFC 5322 §2.2): raw bytes and order are kept, because DKIM signs
// bytes and a relay changes nothing that it need not (RFC 6409 §8). The space of `From :`
// (RFC 5322 §4.5.2) is not part of the name, so that it cannot hide a field.
import { isAscii } from "node:buffer";

export interface HeaderField {
  /** As written, without white space before the colon. */
  name: string;
  lower: string;
  /** With folding and final CRLF. */
  raw: Buffer;
  /** Unfolded and trimmed; octets that are not UTF-8 are U+FFFD. */
  value: string;
}

export type MailSyntaxCode =
  | "bare_line_end"
  | "nul"
  | "line_too_long"
  | "header_too_large"
  | "too_deep"
  | "not_convertible"
  | "bad_header"
  | "from_missing"
  | "from_invalid"
  | "field_repeated"
  | "too_many_hops";

/** The mail is not what RFC 5322 calls a message; `code` says in which way. */
export class MailSyntaxError extends Error {
  readonly code: MailSyntaxCode;
  constructor(code: MailSyntaxCode, detail: string) {
    super(detail);
    this.name = "MailSyntaxError";
    this.code = code;
  }
}

/** RFC 5322 §2.2: printable ASCII but the colon; §4.5: white space before it was once allowed. */
const nameAndColon = /([!-9;-~]+)[ \t]*:/y;
const longestFieldName = 998;
/** Fields of one header section: what they cost grows with their number, and no mail that people or programs write has as many. */
export const maxFields = 2_000;

/**
 * Splits a header section (CRLF line ends; its empty line may be there or not) into its fields.
 * Throws MailSyntaxError `bad_header` for a line that is neither a field nor the folding of one, `header_too_large` for
 * more than `most` fields.
 */
export function parseHeaderSection(section: Uint8Array, most = Infinity): HeaderField[] {
  const noField = (): void => {
    throw new MailSyntaxError("bad_header", "a header line is neither a field nor the continuation of one");
  };
  return readFields(Buffer.from(section.buffer, section.byteOffset, section.byteLength), most, noField);
}

/** The fields of a part's header section; lines that are not fields are skipped, as mail readers do. */
export function parsePartSection(section: Buffer, most = Infinity): HeaderField[] {
  return readFields(section, most, () => undefined);
}

/** Reads from one string of the whole section: a string for each field would cost most of the time. */
function readFields(section: Buffer, most: number, noField: () => void): HeaderField[] {
  const text = section.toString("latin1");
  const plain = isAscii(section);
  const fields: HeaderField[] = [];
  for (let start = 0, end = 0; start < text.length; start = end) {
    end = endOfField(text, start);
    if (end - start === 2 && text.charCodeAt(start) === 13) break;
    nameAndColon.lastIndex = start;
    const [head, name] = nameAndColon.exec(text) ?? [];
    if (head === undefined || name === undefined || head.length > longestFieldName) {
      noField();
      continue;
    }
    if (fields.length >= most)
      throw new MailSyntaxError(
        "header_too_large",
        `a header section has more than ${most.toLocaleString("en")} fields`,
      );
    const raw = section.subarray(start, end);
    const value = plain ? text.slice(start + head.length, end) : raw.toString("utf8", head.length);
    fields.push({ name, lower: name.toLowerCase(), raw, value: unfolded(value) });
  }
  return fields;
}

function unfolded(value: string): string {
  const inner = value.trim();
  return inner.includes("\n") ? inner.replace(/\r\n(?=[ \t])/g, "") : inner;
}

/** Index behind the CRLF that ends the field: the first one that no white space follows. */
function endOfField(text: string, start: number): number {
  for (let lf = text.indexOf("\n", start); lf >= 0; lf = text.indexOf("\n", lf + 1)) {
    const next = text.charCodeAt(lf + 1);
    const empty = lf === start + 1;
    if (empty || (next !== 32 && next !== 9)) return lf + 1;
  }
  return text.length;
}

/** Without white space before the colon, which must not be generated (RFC 5322 §4.5) and ends the header for some readers. */
export function withoutObsoleteSpace({ name, raw }: HeaderField): Buffer {
  if (raw[name.length] === colon) return raw;
  return Buffer.concat([raw.subarray(0, name.length), raw.subarray(raw.indexOf(colon, name.length))]);
}
const colon = 58;

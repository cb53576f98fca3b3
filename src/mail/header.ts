// The header section as fields (RFC 5322 §2.2): raw bytes and order are kept, because DKIM signs
// bytes and a relay changes nothing that it need not (RFC 6409 §8). The space of `From :`
// (RFC 5322 §4.5.2) is no part of the name, so that no field hides behind it.

export interface HeaderField {
  /** As written, without white space before the colon. */
  name: string;
  lower: string;
  /** With folding and final CRLF. */
  raw: Buffer;
  /** Unfolded and trimmed; octets that are no UTF-8 are U+FFFD. */
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
const nameAndColon = /^([!-9;-~]+)[ \t]*:/;
const longestFieldName = 998;

/**
 * Splits a header section (CRLF line ends; its empty line may be there or not) into its fields.
 * Throws MailSyntaxError `bad_header` for a line that is neither a field nor the folding of one.
 */
export function parseHeaderSection(section: Uint8Array): HeaderField[] {
  const bytes = Buffer.from(section.buffer, section.byteOffset, section.byteLength);
  const fields: HeaderField[] = [];
  let start = 0;
  while (start < bytes.length) {
    const end = endOfField(bytes, start);
    if (end - start === 2 && bytes[start] === 13) break;
    fields.push(readField(bytes.subarray(start, end)));
    start = end;
  }
  return fields;
}

/** The fields of a part's header section: lines that are no field are passed over, as readers of mail do. */
export function parsePartSection(section: Buffer): HeaderField[] {
  const fields: HeaderField[] = [];
  for (let start = 0; start < section.length;) {
    const end = endOfField(section, start);
    if (end - start === 2 && section[start] === 13) break;
    const raw = section.subarray(start, end);
    if (nameAndColon.test(raw.toString("latin1", 0, longestFieldName))) fields.push(readField(raw));
    start = end;
  }
  return fields;
}

/** Index behind the CRLF that ends the field: the first one that no white space follows. */
function endOfField(bytes: Buffer, start: number): number {
  for (let lf = bytes.indexOf(10, start); lf >= 0; lf = bytes.indexOf(10, lf + 1)) {
    const next = bytes[lf + 1];
    const empty = lf === start + 1;
    if (empty || (next !== 32 && next !== 9)) return lf + 1;
  }
  return bytes.length;
}

/** Without white space before the colon, which must not be generated (RFC 5322 §4.5) and ends the header for some readers. */
export function withoutObsoleteSpace({ name, raw }: HeaderField): Buffer {
  if (raw[name.length] === colon) return raw;
  return Buffer.concat([raw.subarray(0, name.length), raw.subarray(raw.indexOf(colon, name.length))]);
}
const colon = 58;

function readField(raw: Buffer): HeaderField {
  const match = nameAndColon.exec(raw.toString("latin1", 0, longestFieldName));
  if (match?.[1] === undefined) {
    throw new MailSyntaxError("bad_header", "a header line is neither a field nor the continuation of one");
  }
  const value = raw.toString("utf8", match[0].length).replace(/\r\n(?=[ \t])/g, "");
  return { name: match[1], lower: match[1].toLowerCase(), raw, value: value.trim() };
}

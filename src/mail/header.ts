// The header section as fields (RFC 5322 §2.2).
export interface HeaderField {
  /** As written. */
  name: string;
  lower: string;
  /** With folding and final CRLF. */
  raw: Buffer;
  /** Unfolded, trimmed. */
  value: string;
}
export type MailSyntaxCode =
  | "bare_line_end"
  | "nul"
  | "line_too_long"
  | "header_too_large"
  | "bad_header"
  | "from_missing"
  | "from_repeated"
  | "from_invalid"
  | "field_repeated";
/** The mail is not what RFC 5322 calls a message; `code` says in which way. */
export class MailSyntaxError extends Error {
  readonly code: MailSyntaxCode;
  constructor(code: MailSyntaxCode, detail: string) {
    super(detail);
    this.name = "MailSyntaxError";
    this.code = code;
  }
}
export function parseHeaderSection(section: Uint8Array): HeaderField[] {
  throw new Error(String(section.length));
}

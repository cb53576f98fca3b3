// What a submission server does to the header section of a mail that came by SMTP (RFC 6409 §8).
import type { Mailbox } from "./address.ts";
export interface RewrittenHeaders {
  /** The new header section with its empty line. */
  section: Buffer;
  from: Mailbox[];
  /** Decoded (RFC 2047). */
  subject: string;
  /** With its angle brackets; the one that came, else the one that was added. */
  messageId: string;
  /** The mail came with a Date of its own. */
  hasDate: boolean;
  /** Values of the X-Svc-* fields by lower-case name, e.g. `x-svc-tags`. */
  svc: Map<string, string>;
}
/** Throws MailSyntaxError. `add`: what is put in where the mail lacks it; `received` always goes on top. */
export function rewriteHeaders(
  section: Uint8Array,
  add: { received: string; messageId: string; date: number },
): RewrittenHeaders {
  throw new Error(String(section.length) + add.messageId);
}

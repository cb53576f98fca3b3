// Composes the finished message.
import type { Mailbox } from "./address.ts";
export interface ComposeAttachment {
  filename: string;
  contentType: string;
  /** Without angle brackets; makes the part inline. */
  contentId: string | null;
  disposition: "attachment" | "inline";
  bytes: Buffer;
}
export interface ComposeInput {
  from: Mailbox;
  replyTo: Mailbox[];
  to: Mailbox[];
  cc: Mailbox[];
  subject: string;
  text: string | null;
  html: string | null;
  headers: [string, string][];
  attachments: ComposeAttachment[];
  /** With its angle brackets. */
  messageId: string;
  /** Milliseconds since 1970. */
  date: number;
  boundarySeed: string;
}
export interface Composed {
  chunks: Buffer[];
  headerLength: number;
  sizeBytes: number;
  bodyHash: Buffer;
  smtpUtf8: boolean;
}
export function composeMessage(input: ComposeInput): Composed {
  throw new Error(input.subject);
}
export function textFromHtml(html: string): string {
  throw new Error(html);
}
/** Whether a custom header can be written without a line over 998 octets (RFC 5322 §2.1.1). */
export function headerFits(name: string, value: string): boolean {
  throw new Error(name + value);
}

// The queued unit: one recipient of one message, leased to this process, with all that an attempt needs to know
// (RFC 5321 §3.3: the envelope decides, never the headers).
import type { ContentRef } from "./content.ts";
import type { MessageTracking } from "./tracking.ts";

/** All that an attempt needs to know of the message; read once, at acceptance or claim. */
export interface QueuedMessage {
  /** Row id in the store. */
  key: number;
  /** `msg_…` */
  id: string;
  accountKey: number;
  test: boolean;
  /** Sender address as shown in events, e.g. `info@shop.example`. */
  from: string;
  /** From domain (A-label) whose DKIM keys sign; null: goes out unsigned (notices of an unverified host). */
  signingDomain: string | null;
  /** Domain of the VERP return path. */
  returnPathDomain: string;
  subject: string;
  /** JSON text of an array of strings, stored as accepted, so that an event needs no parsing. */
  tagsJson: string;
  /** JSON text of an object string → string. */
  metadataJson: string;
  messageIdHeader: string;
  ipPool: string;
  content: ContentRef;
  /** Bytes of the header section, its empty line included; the body begins there. */
  headerLength: number;
  /** SHA-256 of the relaxed body (RFC 6376 §3.4.4), 32 bytes. */
  bodyHash: Uint8Array;
  /** The content has octets above 127: the receiver must offer 8BITMIME (RFC 6152). */
  eightBit: boolean;
  /** A header or an address is not ASCII: the receiver must offer SMTPUTF8 (RFC 6531). */
  smtpUtf8: boolean;
  /** Null: all recipients get the same octets. */
  tracking: MessageTracking | null;
  /** When it was accepted or, if later, its send_at, the held time added: retries and expiry count from here. */
  queuedAt: number;
}

/** What a signature is made of, beside the header section. */
export type Unsigned = Pick<QueuedMessage, "id" | "accountKey" | "signingDomain" | "bodyHash" | "tracking">;

/** One recipient, leased to this process. */
export interface Job {
  /** Row id of the recipient in the store. */
  key: number;
  message: QueuedMessage;
  /** The recipient's address as it goes into RCPT TO, domain in A-label form. */
  rcptTo: string;
  /** As the suppression list compares it: whole address in lower case, domain in A-label form. */
  canonical: string;
  /** The address as the sender wrote it, for events. */
  to: string;
  /** Recipient domain, A-label, lower case. */
  domain: string;
  queueName: string;
  /** 1 for the first try. */
  attempt: number;
  /** occurred_at of the recipient's last event, 0 if none: the next is never earlier. */
  lastEventAt: number;
}

// Addresses that name one recipient of one message, and that only this service can create: the signed return path (VERP),
// to which a bounce comes back, and the address to which a recipient writes to unsubscribe (RFC 2369 §3.2). The two store
// keys in compact form and 80 bits of HMAC-SHA256 over them, base32 in lower case (RFC 4648 §6): it survives servers
// that change the case of a local part, and fits its 64 octets (RFC 5321 §4.5.3.1.1) for any pair of keys.
import { timingSafeEqual } from "node:crypto";
import { base32, fromBase32 } from "./base32.ts";
import { createMac, type Mac } from "./mac.ts";
import { readVarint, writeVarint } from "./varint.ts";

/** What an address is for: one is never taken for another. */
interface Purpose {
  /** With a plus: greylists take what follows it for an extension, so that a sender they know is known by every token. */
  prefix: string;
  mac: string;
}
const returnPath: Purpose = { prefix: "b+", mac: "return-path\0" };
const unsubscribe: Purpose = { prefix: "u+", mac: "unsubscribe\0" };

const macBytes = 10;

export interface RecipientKeys {
  messageKey: number;
  recipientKey: number;
}

/**
 * Local part of the return path of one recipient of one message. Keys: safe integers, 0 and up. A Mac that was
 * made of the secret costs 3 µs, its bytes twice as much.
 */
export function returnPathLocal(secret: Uint8Array | Mac, messageKey: number, recipientKey: number): string {
  return localOf(returnPath, secret, messageKey, recipientKey);
}

/** The keys that a return path names; null for one that we did not make. */
export function readReturnPathLocal(secret: Uint8Array | Mac, local: string): RecipientKeys | null {
  return keysOf(returnPath, secret, local);
}

/** Local part of the address to which this recipient writes to unsubscribe. */
export function unsubscribeLocal(secret: Uint8Array | Mac, messageKey: number, recipientKey: number): string {
  return localOf(unsubscribe, secret, messageKey, recipientKey);
}

/** The keys that it names; null for one that we did not make. */
export function readUnsubscribeLocal(secret: Uint8Array | Mac, local: string): RecipientKeys | null {
  return keysOf(unsubscribe, secret, local);
}

function localOf(
  { prefix, mac: purpose }: Purpose,
  secret: Uint8Array | Mac,
  messageKey: number,
  recipientKey: number,
): string {
  const keys: number[] = [];
  writeVarint(keys, messageKey);
  writeVarint(keys, recipientKey);
  const payload = Uint8Array.from(keys);
  const macOf = typeof secret === "function" ? secret : createMac(secret);
  const mac = macOf(purpose, payload);
  return prefix + base32(Buffer.concat([payload, mac.subarray(0, macBytes)]));
}

function keysOf(purpose: Purpose, secret: Uint8Array | Mac, local: string): RecipientKeys | null {
  if (local.length > 64) return null;
  const given = local.toLowerCase();
  const bytes = given.startsWith(purpose.prefix) ? fromBase32(given.slice(purpose.prefix.length)) : null;
  if (bytes === null || bytes.length < macBytes + 2) return null;
  const message = readVarint(bytes, 0);
  const recipient = message && readVarint(bytes, message.next);
  if (!recipient || recipient.next !== bytes.length - macBytes) return null;
  // One spelling per pair: the whole address is generated again and compared, so no other encoding passes.
  const made = Buffer.from(localOf(purpose, secret, message.value, recipient.value));
  const seen = Buffer.from(given);
  if (made.length !== seen.length || !timingSafeEqual(made, seen)) return null;
  return { messageKey: message.value, recipientKey: recipient.value };
}

// Addresses: the Mailbox of RFC 5321 §4.1.2 with SMTPUTF8 (RFC 6531) and IDN (RFC 5890).
export type Parsed<T> = { ok: true; value: T } | { ok: false; issue: string };
export interface Address {
  local: string;
  /** As written. */
  domain: string;
  /** A-label, lower case. */
  ascii: string;
  /** local@domain, as written. */
  email: string;
}
export interface Mailbox {
  name: string | null;
  address: Address;
}
export function parseAddress(text: string): Parsed<Address> {
  throw new Error(text);
}
export function parseMailbox(text: string): Parsed<Mailbox> {
  throw new Error(text);
}
export function parseDomain(text: string): Parsed<string> {
  throw new Error(text);
}
export function canonicalAddress(address: Address): string {
  return `${address.local.toLowerCase()}@${address.ascii}`;
}
export function rcptTo(address: Address): string {
  return `${address.local}@${address.ascii}`;
}
export function needsSmtpUtf8(address: Address): boolean {
  return /[^\x00-\x7f]/.test(address.local);
}

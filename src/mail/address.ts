// Addresses: the Mailbox of RFC 5321 §4.1.2 with the local parts of RFC 6531 and the domains of
// RFC 5890. A command line or a header is built from what passes here, so nothing passes that could
// end either: no control, no invisible character, no bracket outside a quoted string.
// Narrower than the RFC by policy: no address literal, no single label, no empty quoted string: a
// public MTA delivers to none of them. A Mailbox has no comments and no source route.
// One pass over the text; lists and comments of header fields are address-list.ts.
import { domainToASCII, domainToUnicode } from "node:url";

export type Parsed<T> = { ok: true; value: T } | { ok: false; issue: string };

export interface Address {
  local: string;
  /** As written. */
  domain: string;
  /** A-labels, lower case. */
  ascii: string;
  /** local@domain, as written. */
  email: string;
}

export interface Mailbox {
  /** Display name, without quotes and not encoded; null where there is none. */
  name: string | null;
  address: Address;
}

const fail = (issue: string): { ok: false; issue: string } => ({ ok: false, issue });

/** Longer texts are refused unread: an address has 254 octets and a display name fits one header line. */
const maxTextLength = 1_300;
/** RFC 5321 §4.5.3.1.1. */
const maxLocalOctets = 64;
/** RFC 5321 §4.5.3.1.3: 256 octets of path, two of them the brackets. */
const maxAddressOctets = 254;
/** RFC 1035 §2.3.4: 255 octets on the wire are 253 in text. */
const maxDomainLength = 253;

/** Controls, format characters, lone surrogates, unassigned code points, invisible fillers, and every space but U+0020. */
const invisible = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|[^\x20\P{Zs}]/u;
/** Dot-string of RFC 5321 §4.1.2, with UTF8-non-ascii of RFC 6531 §3.3. */
const dotString = /^[\w!#$%&'*+\-/=?^`{|}~\u0080-\uffff]+(?:\.[\w!#$%&'*+\-/=?^`{|}~\u0080-\uffff]+)*$/;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const plainDomain = /^[A-Za-z0-9.-]+$/;
/** What nearly every local part and domain is, told by one look each; all else takes the way that names what is wrong. */
const asciiDotString = /^[\w!#$%&'*+\-/=?^`{|}~]+(?:\.[\w!#$%&'*+\-/=?^`{|}~]+)*$/;
const hostName = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Reads one addr-spec; the issue of a refusal is a phrase such as `has no domain`. */
export function parseAddress(text: string): Parsed<Address> {
  return ordinaryAddress(text) ?? anyAddress(text);
}

function ordinaryAddress(text: string): Parsed<Address> | null {
  const at = text.indexOf("@");
  if (at < 1 || at > maxLocalOctets || text.length > maxAddressOctets) return null;
  const local = text.slice(0, at);
  const domain = text.slice(at + 1);
  const ascii = ordinaryDomain(domain);
  if (ascii === null || !asciiDotString.test(local)) return null;
  return { ok: true, value: { local, domain, ascii, email: text } };
}

function anyAddress(text: string): Parsed<Address> {
  if (text === "") return fail("is empty");
  if (text.length > maxTextLength) return fail("is too long");
  if (/^[ \t]|[ \t]$/.test(text)) return fail("has a space or tab before or behind it");
  if (invisible.test(text)) return fail("contains a control or invisible character");
  const quoted = text.startsWith('"');
  const at = quoted ? endOfQuoted(text) : text.indexOf("@");
  if (quoted && at < 0) return fail("has an unclosed quoted string");
  if (at < 0 || text[at] !== "@") return fail("is not of the form local@domain");
  const local = text.slice(0, at);
  if (local === "" || local === '""') return fail("has no local part");
  if (!quoted && !dotString.test(local)) return fail("has a local part that is not a dot-separated atom");
  if (Buffer.byteLength(local) > maxLocalOctets) return fail("has a local part of more than 64 octets");
  const domain = text.slice(at + 1);
  const ascii = parseDomain(domain);
  if (!ascii.ok) return fail(`has a domain that ${ascii.issue}`);
  if (Buffer.byteLength(local) + 1 + ascii.value.length > maxAddressOctets)
    return fail("has more than 254 octets");
  return { ok: true, value: { local, domain, ascii: ascii.value, email: text } };
}

/** Index behind the closing quote of a quoted string that begins at 0; -1 if it never closes. */
function endOfQuoted(text: string): number {
  for (let i = 1; i < text.length; i++) {
    if (text[i] === '"') return i + 1;
    if (text[i] === "\\") {
      // quoted-pairSMTP: a backslash and one printable ASCII character.
      const next = text.charCodeAt(++i);
      if (!(next >= 32 && next <= 126)) return -1;
    }
  }
  return -1;
}

/** Reads a domain name of two labels or more, A-label or U-label, into lower-case A-labels. */
export function parseDomain(text: string): Parsed<string> {
  const ascii = ordinaryDomain(text);
  return ascii === null ? anyDomain(text) : { ok: true, value: ascii };
}

/** In lower case; null for a name that is not letters, digits and hyphens alone, or has an A-label. */
function ordinaryDomain(text: string): string | null {
  if (text.length > maxDomainLength || !hostName.test(text)) return null;
  const ascii = text.toLowerCase();
  return ascii.includes("xn--") ? null : ascii;
}

function anyDomain(text: string): Parsed<string> {
  if (text === "") return fail("is empty");
  if (text.startsWith("[")) return fail("is an address literal, to which this server does not deliver");
  if (text.length > maxDomainLength) return fail("is longer than 253 characters");
  if (invisible.test(text)) return fail("contains a control or invisible character");
  let ascii = text.toLowerCase();
  if (!plainDomain.test(text)) {
    // What is ASCII in a domain is letter, digit, hyphen or dot before any mapping: "a%2e.b" is none.
    if (/[^A-Za-z0-9.\u0080-\u{10ffff}-]/u.test(text))
      return fail("has a character that host names do not have");
    ascii = domainToASCII(text.normalize("NFC"));
    if (!plainDomain.test(ascii)) return fail("is not a valid internationalized name");
    if (ascii.length > maxDomainLength) return fail("is longer than 253 characters");
  }
  const labels = ascii.split(".");
  const issue = labelsIssue(labels);
  if (issue !== null) return fail(issue);
  if (labels.length < 2) return fail("is a single label, which has no mail on the public Internet");
  return { ok: true, value: ascii };
}

function labelsIssue(labels: string[]): string | null {
  for (const one of labels) {
    if (one === "") return "has an empty label";
    if (one.length > 63) return "has a label of more than 63 characters";
    if (!label.test(one)) return "has a label that begins or ends with a hyphen";
    if (one.startsWith("xn--") && !isALabel(one)) return "has an invalid punycode label";
  }
  // RFC 3696 §2: a top-level name is never all digits; four numbers are an IP address.
  return /^\d+$/.test(labels.at(-1) ?? "") ? "ends in a number" : null;
}

/** domainToASCII lets ASCII through unread; a true A-label decodes, and encodes back to itself. */
function isALabel(one: string): boolean {
  const unicode = domainToUnicode(one);
  return unicode !== one && domainToASCII(unicode) === one;
}

/**
 * Reads `a@x`, `<a@x>`, `Name <a@x>` or `"Na, me" <a@x>`: exactly one mailbox. White space may stand around the name and
 * the brackets, which templates with an empty name leave (` <a@x>`), but not around the address itself.
 */
export function parseMailbox(text: string): Parsed<Mailbox> {
  if (text.length > maxTextLength) return fail("is too long");
  if (/[\0\r\n]/.test(text)) return fail("contains CR, LF or NUL");
  // SP and TAB alone: a no-break space at the end belongs to a broken address.
  const trimmed = text.replace(/^[ \t]+|[ \t]+$/g, "");
  const open = trimmed.endsWith(">") ? openingBracket(trimmed) : -1;
  const address = parseAddress(open < 0 ? text : trimmed.slice(open + 1, -1));
  if (!address.ok) return address;
  const name = open < 0 ? "" : displayName(trimmed.slice(0, open).trim());
  return { ok: true, value: { name: name === "" ? null : name, address: address.value } };
}

/** The first `<` behind a leading quoted string: brackets inside the quotes are text. */
function openingBracket(text: string): number {
  const from = text.startsWith('"') ? endOfQuoted(text) : 0;
  return text.indexOf("<", Math.max(0, from));
}

function displayName(phrase: string): string {
  if (phrase.length < 2 || !phrase.startsWith('"') || endOfQuoted(phrase) !== phrase.length) return phrase;
  return unquote(phrase).trim();
}

/** The content of a quoted string, its quoted pairs resolved (RFC 5321 §4.1.2). */
function unquote(quoted: string): string {
  return quoted.slice(1, -1).replace(/\\(.)/gu, "$1");
}

/**
 * The key under which an address is compared: lower case, NFC, A-label domain. Quoting alone makes
 * no other mailbox (RFC 5321 §4.1.2), so `"abc"@x` and `abc@x` are one.
 */
export function canonicalAddress(address: Address): string {
  let local = address.local;
  if (local.startsWith('"')) {
    const bare = unquote(local);
    local = dotString.test(bare) ? bare : `"${bare.replace(/["\\]/g, "\\$&")}"`;
  }
  return `${local.normalize("NFC").toLowerCase()}@${address.ascii}`;
}

/** The address as it stands in `RCPT TO:<…>`: local part as written, domain as A-labels. */
export function rcptTo(address: Address): string {
  return `${address.local}@${address.ascii}`;
}

/** The local part is not ASCII: the receiver must offer SMTPUTF8 (RFC 6531). */
export function needsSmtpUtf8(address: Address): boolean {
  return Buffer.byteLength(address.local) !== address.local.length;
}

// Encoded-words (RFC 2047): text that is not ASCII in a header. Written words contain whole characters and at most 75 octets
// (§2). Read ones are decoded in any charset that the platform knows, also where a character was cut in two, and what is
// not a valid encoded-word stays as it is.
import { encodeWord } from "nodemailer/lib/mime-funcs";

export const maxWordLength = 75;
/** `=?UTF-8?B?` and `?=`. */
const frame = 12;
/** The most UTF-16 units that nodemailer encodes: 100 KB would cost five times what `longWords` takes. */
const longText = 1_000;

/** Printable ASCII that no decoder takes for an encoded-word. */
export function isPlainText(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text) && !text.includes("=?");
}

/**
 * The text as encoded-words of at most `length` octets (30 to 75), to be joined by folding white space, which decoders
 * drop. Lone surrogates become U+FFFD.
 */
export function encodeWords(text: string, length: number): string[] {
  const wellFormed = text.toWellFormed();
  if (wellFormed.length > longText) return longWords(wellFormed, length);
  return encodeWord(wellFormed, preferQ(wellFormed) ? "Q" : "B", length).split(" ");
}

/** In B, cut as octets: text of 100 KB costs no more than its length. */
function longWords(text: string, length: number): string[] {
  const bytes = Buffer.from(text);
  const room = Math.floor((length - frame) / 4) * 3;
  const words: string[] = [];
  for (let at = 0; at < bytes.length;) {
    let end = at + room;
    while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
    words.push(`=?UTF-8?B?${bytes.toString("base64", at, end)}?=`);
    at = end;
  }
  return words;
}

/** Q is readable, and hardly longer than B while at most a fifth of the octets is escaped (RFC 2047 §5 (3)). */
function preferQ(text: string): boolean {
  const escaped = Buffer.byteLength(text.replace(/[A-Za-z0-9!*+\-/ ]+/g, ""));
  return escaped * 5 <= Buffer.byteLength(text);
}

/** charset, language (RFC 2231 §5), encoding, encoded text. No part can contain a `?`: no backtracking. */
const encodedWord = /=\?([^\s?*]{1,60})(?:\*[^\s?]{0,60})?\?([BbQq])\?([^\s?]*)\?=/g;

/** Decodes a header value; white space between two encoded-words is removed (RFC 2047 §6.2). */
export function decodeWords(value: string): string {
  if (!value.includes("=?")) return value;
  let text = "";
  let end = 0;
  let held: { charset: string; bytes: Buffer[] } | null = null;
  const release = (): void => {
    if (held !== null) text += decodeCharset(held.charset, Buffer.concat(held.bytes));
    held = null;
  };
  for (const match of value.matchAll(encodedWord)) {
    const [whole, charset = "", encoding = "", encoded = ""] = match;
    const between = value.slice(end, match.index);
    const adjacent = held !== null && /^[ \t]*$/.test(between);
    const current: { charset: string; bytes: Buffer[] } | null = held;
    // Some senders cut characters in two: words of one charset are put together before decoding.
    if (!adjacent || current === null || lower(current) !== charset.toLowerCase()) release();
    if (!adjacent) text += between;
    held ??= { charset, bytes: [] };
    held.bytes.push(encoding.toUpperCase() === "B" ? Buffer.from(encoded, "base64") : decodeQ(encoded));
    end = match.index + whole.length;
  }
  release();
  return text + value.slice(end);
}

const lower = (held: { charset: string }): string => held.charset.toLowerCase();

function decodeQ(encoded: string): Buffer {
  const octets = encoded
    .replace(/_/g, " ")
    .replace(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(octets, "latin1");
}

const latin1 = new TextDecoder("windows-1252");

/** Octets without a declared charset, as most programs read them. */
export function decodeLatin1(bytes: Buffer): string {
  const text = bytes.toString("latin1");
  return /[\x80-\x9f]/.test(text) ? latin1.decode(bytes) : text;
}

/** Text of any charset that the platform knows; of another, what is ASCII of it. */
export function decodeCharset(charset: string, bytes: Buffer): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    // An unknown charset: its ASCII can still be read.
    return bytes.toString("latin1").replace(/[^\x20-\x7e]/g, "\ufffd");
  }
}

// Encoded-words (RFC 2047): text that is not ASCII in a header. Written words contain whole characters
// (with their marks where they fit) and at most 75 octets (§2), at a cost of one pass over the text; read ones are decoded in any charset that
// the platform knows, and anything that is not a valid encoded-word stays as it is.
import { encodeWord } from "nodemailer/lib/mime-funcs";

/** `=?UTF-8?Q?` and `?=`. */
const frame = 12;
export const maxWordLength = 75;
/** What Q writes as it is inside a phrase (RFC 2047 §5 (3)). */
const bareInQ = Array.from({ length: 128 }, (_, code) =>
  /[A-Za-z0-9!*+\-/ ]/.test(String.fromCharCode(code)),
);
/** A character with what belongs to it: marks, tones of skin, what is joined to it; a flag. Intl.Segmenter takes twenty times as long. */
const clusters = /\p{RI}{2}|.(?:[\p{M}\u{1f3fb}-\u{1f3ff}]|\u200d.?)*/gsu;
/** Of more UTF-16 units, words are cut between any two characters. */
const longText = 1_000;

/** Printable ASCII that no decoder takes for an encoded-word. */
export function isPlainText(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text) && !text.includes("=?");
}

/**
 * The text as encoded-words, to be joined by folding white space, which decoders drop. The first has
 * at most `firstLength` octets (30 or more), the others at most 75. Lone surrogates become U+FFFD.
 */
export function encodeWords(text: string, firstLength: number): string[] {
  const wellFormed = text.toWellFormed();
  if (wellFormed.length > longText) return longWords(wellFormed, firstLength);
  const encoding = preferQ(wellFormed) ? "Q" : "B";
  const room = (length: number): number =>
    // Q: two octets less, for a space at the end takes three; B: whole groups of three octets.
    encoding === "Q" ? length - frame - 2 : Math.floor((length - frame) / 4) * 3;
  const words: string[] = [];
  let limit = room(Math.min(firstLength, maxWordLength));
  let held = "";
  let size = 0;
  for (const piece of pieces(wellFormed, encoding, limit)) {
    const cost = sizeOf(piece, encoding);
    if (held !== "" && size + cost > limit) {
      words.push(encodeWord(held, encoding));
      limit = room(maxWordLength);
      held = "";
      size = 0;
    }
    held += piece;
    size += cost;
  }
  return held === "" ? words : [...words, encodeWord(held, encoding)];
}

/** In B, cut as octets: text of 100 KB costs no more than its length. */
function longWords(text: string, firstLength: number): string[] {
  const bytes = Buffer.from(text);
  const room = (length: number): number => Math.floor((length - frame) / 4) * 3;
  const words: string[] = [];
  let limit = room(Math.min(firstLength, maxWordLength));
  for (let at = 0; at < bytes.length; limit = room(maxWordLength)) {
    let end = at + limit;
    while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
    words.push(`=?UTF-8?B?${bytes.toString("base64", at, end)}?=`);
    at = end;
  }
  return words;
}

type Encoding = "Q" | "B";

/** Q is readable and shorter while at most a third of the octets must be escaped. */
function preferQ(text: string): boolean {
  return sizeOf(text, "Q") <= sizeOf(text, "B") * 1.4;
}

function sizeOf(piece: string, encoding: Encoding): number {
  let size = 0;
  for (let i = 0; i < piece.length; i++) {
    const code = piece.charCodeAt(i);
    const bare = code < 128 && (encoding === "B" || bareInQ[code] === true);
    size += bare ? 1 : octetsOf(code) * (encoding === "Q" ? 3 : 1);
  }
  return size;
}

/** Of a UTF-16 unit in UTF-8; two surrogates have four together. */
function octetsOf(code: number): number {
  if (code < 0x80) return 1;
  return code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 2 : 3;
}

/** What is not to be divided: characters with their marks, or the code points of one that is too long for a word. */
function* pieces(text: string, encoding: Encoding, limit: number): Generator<string> {
  if (sizeOf(text, encoding) <= limit) {
    yield text;
    return;
  }
  for (const [cluster] of text.matchAll(clusters)) {
    if (sizeOf(cluster, encoding) <= limit) yield cluster;
    else yield* cluster;
  }
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

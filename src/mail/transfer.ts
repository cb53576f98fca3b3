// Content transfer encodings (RFC 2045 §6): what leaves is always 7bit. Text goes as it is where it
// is ASCII in lines of 78, as quoted-printable where most of it can still be read, else as base64;
// so no server on the way re-encodes it or cuts a line, and the DKIM body hash stays true.
import { QuotedPrintable } from "./quoted-printable.ts";

export interface EncodedText {
  encoding: "7bit" | "quoted-printable" | "base64";
  bytes: Buffer[];
}

const wishedLength = 78;
/** 57 octets are 76 characters of base64 (RFC 2045 §6.8). */
const base64LineOctets = 57;
const sliceOctets = 65_536;

/** Any string, with CR, LF and CRLF as line ends, in lines that end in CRLF. Lone surrogates become U+FFFD. */
export function encodeText(text: string): EncodedText {
  const plain = plainLines(text);
  if (plain !== null) return { encoding: "7bit", bytes: [plain] };
  const bytes = Buffer.from(text.replace(/\r\n?|\n/g, "\r\n"), "utf8");
  let high = 0;
  for (const byte of bytes) if (byte > 127) high++;
  // A high octet takes three in quoted-printable; from a sixth of the text on, base64 is shorter.
  if (high * 6 > bytes.length) return { encoding: "base64", bytes: [base64Lines(bytes)] };
  return { encoding: "quoted-printable", bytes: quotedPrintable(bytes) };
}

/** The text with CRLF line ends if it is printable ASCII in lines of at most 78; else null. */
function plainLines(text: string): Buffer | null {
  if (/[^\t\n\r -~]/.test(text)) return null;
  const lines = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  let start = 0;
  while (start <= lines.length) {
    const end = lines.indexOf("\n", start);
    if ((end < 0 ? lines.length : end) - start > wishedLength) return null;
    if (end < 0) break;
    start = end + 1;
  }
  return Buffer.from(lines.replaceAll("\n", "\r\n"), "latin1");
}

/** Of text with CRLF line ends. In slices, so that a long text is not in memory three times. */
function quotedPrintable(bytes: Buffer): Buffer[] {
  const encoder = new QuotedPrintable();
  const chunks: Buffer[] = [];
  for (let start = 0; start < bytes.length; start += sliceOctets)
    chunks.push(encoder.push(bytes.subarray(start, start + sliceOctets)));
  chunks.push(encoder.end());
  return chunks;
}

function isLineEnd(bytes: Buffer, i: number): boolean {
  const byte = bytes[i];
  return byte === 13 ? bytes[i + 1] === 10 : byte === 10 && bytes[i - 1] === 13;
}

/** Base64 in lines of 76, CRLF between them and none at the end; made in place, line by line. */
export function base64Lines(bytes: Buffer): Buffer {
  const lines = Math.max(1, Math.ceil(bytes.length / base64LineOctets));
  const out = Buffer.allocUnsafe(Math.ceil(bytes.length / 3) * 4 + (lines - 1) * 2);
  const slice = base64LineOctets * 1_024;
  let at = 0;
  for (let start = 0; start < bytes.length; start += slice) {
    const text = bytes.toString("base64", start, Math.min(start + slice, bytes.length));
    for (let i = 0; i < text.length; i += 76) {
      if (at > 0) at += out.write("\r\n", at, "latin1");
      at += out.write(text.slice(i, i + 76), at, "latin1");
    }
  }
  return out;
}

/** Bytes that may go as 7bit: ASCII without NUL, CRLF line ends, no line over 998 (RFC 2045 §2.7). */
export function isSevenBit(bytes: Buffer): boolean {
  let column = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    if (isLineEnd(bytes, i)) column = 0;
    else if (byte > 127 || byte === 0 || byte === 13 || byte === 10 || ++column > 998) return false;
  }
  return true;
}

// Undoes the content transfer encodings (RFC 2045 §6) of a body that comes in pieces of any size. It never throws and
// reads each octet at most a few times: invalid base64 and invalid escapes are handled as mail readers do
// (§6.7, §6.8). The text of the result, its charset and its line ends are content-text.ts's.

export interface BodyDecoder {
  /** The decoded octets of this piece; may be a view of it. */
  push(bytes: Buffer): Buffer;
  /** What was held back for octets that did not come. */
  end(): Buffer;
}

const nothing: Buffer = Buffer.alloc(0);
const [tab, lf, cr, space, equals] = [9, 10, 13, 32, 61];

/** `encoding` in lower case; one that is not known leaves the octets as they are. */
export function bodyDecoder(encoding: string): BodyDecoder {
  if (encoding === "base64") return new Base64Decoder();
  if (encoding === "quoted-printable") return new QuotedPrintableDecoder();
  return { push: (bytes) => bytes, end: () => nothing };
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const notBase64 = 255;
const sextets = new Uint8Array(256).fill(notBase64);
for (let i = 0; i < alphabet.length; i++) sextets[alphabet.charCodeAt(i)] = i;

/** Octets outside of the alphabet mean nothing (RFC 2045 §6.8); a pad ends a group, and another may follow. */
class Base64Decoder implements BodyDecoder {
  #bits = 0;
  #count = 0;

  push(bytes: Buffer): Buffer {
    const out = Buffer.allocUnsafe(Math.ceil((bytes.length + 3) * 0.75));
    let at = 0;
    let bits = this.#bits;
    let count = this.#count;
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i] as number;
      const sextet = sextets[byte] as number;
      if (sextet === notBase64) {
        if (byte !== equals) continue;
        if (count === 3) out[at++] = (bits >> 10) & 255;
        if (count >= 2) out[at++] = (count === 3 ? bits >> 2 : bits >> 4) & 255;
        bits = count = 0;
        continue;
      }
      bits = (bits << 6) | sextet;
      if (++count < 4) continue;
      out[at++] = (bits >> 16) & 255;
      out[at++] = (bits >> 8) & 255;
      out[at++] = bits & 255;
      bits = count = 0;
    }
    this.#bits = bits;
    this.#count = count;
    return out.subarray(0, at);
  }

  end(): Buffer {
    return this.push(Buffer.from("="));
  }
}

/** More white space than this at the end of a line stays, so that a run of it is not buffered without end. */
const longestHeld = 1024;

/** RFC 2045 §6.7: white space at the end of a line is removed (3), a soft line break vanishes (5). */
class QuotedPrintableDecoder implements BodyDecoder {
  #held: Buffer = nothing;

  push(bytes: Buffer): Buffer {
    return this.#decode(this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]), false);
  }

  end(): Buffer {
    return this.#decode(this.#held, true);
  }

  #decode(bytes: Buffer, last: boolean): Buffer {
    const out = Buffer.allocUnsafe(bytes.length);
    this.#held = nothing;
    let at = 0;
    let i = 0;
    while (i < bytes.length) {
      const byte = bytes[i] as number;
      if (byte !== equals && byte !== space && byte !== tab) {
        out[at++] = byte;
        i++;
        continue;
      }
      const escaped = byte === equals ? hexPair(bytes, i + 1) : -1;
      if (escaped >= 0) {
        out[at++] = escaped;
        i += 3;
        continue;
      }
      const end = endOfSpace(bytes, byte === equals ? i + 1 : i);
      const undecided = end === bytes.length || (end + 1 === bytes.length && bytes[end] !== lf);
      if (!last && undecided && bytes.length - i <= longestHeld) {
        this.#held = Buffer.from(bytes.subarray(i)); // a copy: the caller may use its buffer again
        break;
      }
      const lineEnd = lengthOfLineEnd(bytes, end);
      const ends = lineEnd > 0 || (last && end === bytes.length);
      if (byte === equals) {
        if (ends) i = end + lineEnd;
        else {
          out[at++] = equals; // no escape: as it stands
          i++;
        }
        continue;
      }
      if (!ends) at += bytes.copy(out, at, i, end);
      i = end;
    }
    return out.subarray(0, at);
  }
}

function endOfSpace(bytes: Buffer, from: number): number {
  let end = from;
  while (bytes[end] === space || bytes[end] === tab) end++;
  return end;
}

function lengthOfLineEnd(bytes: Buffer, at: number): number {
  if (bytes[at] === lf) return 1;
  return bytes[at] === cr && bytes[at + 1] === lf ? 2 : 0;
}

/** The octet of two hexadecimal digits, in either case; -1 where there are none. */
function hexPair(bytes: Buffer, at: number): number {
  const high = hexDigit(bytes[at]);
  const low = hexDigit(bytes[at + 1]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 48 && byte <= 57) return byte - 48;
  const upper = byte & 0xdf;
  return upper >= 65 && upper <= 70 ? upper - 55 : -1;
}

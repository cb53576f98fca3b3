// Quoted-printable (RFC 2045 §6.7) in a stream: pieces of any size in, lines of at most 76 octets out. White
// space at the end of a line is encoded; CRLF stays a line end. `encoded` input is quoted-printable already
// and only gets shorter lines: its escapes are kept, octets above 127 are escaped.

/** RFC 2045 §6.7 (5); the last place is kept for the `=` of a soft line break. */
const room = 75;
const hex = Buffer.from("0123456789ABCDEF", "latin1");
const nothing: Buffer = Buffer.alloc(0);
const [tab, lf, cr, space, dash, equals] = [9, 10, 13, 32, 45, 61];

export class QuotedPrintable {
  readonly #encoded: boolean;
  #column = 0;
  /** The last octets: what follows decides how they are written. */
  #held: Buffer = nothing;

  constructor(encoded = false) {
    this.#encoded = encoded;
  }

  push(chunk: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    return this.#write(bytes, Math.max(0, bytes.length - 2));
  }

  end(): Buffer {
    return this.#write(this.#held, this.#held.length);
  }

  /** Writes the octets before `end`, and the LF of a CR that is the last of them. */
  #write(bytes: Buffer, end: number): Buffer {
    // Three octets each, and a soft line break (three more) at most every 25 of those.
    const out = Buffer.allocUnsafe(Math.ceil(end * 3.2) + 8);
    let at = 0;
    let column = this.#column;
    let i = 0;
    for (; i < end; i++) {
      const byte = bytes[i] ?? 0;
      if (byte === cr && bytes[i + 1] === lf) {
        out[at++] = cr;
        out[at++] = lf;
        column = 0;
        i++;
        continue;
      }
      let literal = this.#isLiteral(byte, bytes, i);
      // An escape is not divided.
      const width = literal && byte !== equals ? 1 : 3;
      if (column + width > room) {
        // No line begins as a delimiter does that did not (RFC 2046 §5.1.1).
        if (byte === dash) literal = false;
        out[at++] = equals;
        out[at++] = cr;
        out[at++] = lf;
        column = 0;
      }
      if (literal) out[at++] = byte;
      else {
        out[at++] = equals;
        out[at++] = hex[byte >> 4] ?? 0;
        out[at++] = hex[byte & 15] ?? 0;
      }
      column += literal ? 1 : 3;
    }
    this.#column = column;
    // A copy: the caller may use its buffer again.
    this.#held = i < bytes.length ? Buffer.from(bytes.subarray(i)) : nothing;
    return out.subarray(0, at);
  }

  #isLiteral(byte: number, bytes: Buffer, i: number): boolean {
    if (byte === space || byte === tab) return this.#encoded || !endsLine(bytes, i + 1);
    return byte > space && byte < 127 && (byte !== equals || this.#encoded);
  }
}

/** White space at the end of a line or of the text must be encoded (RFC 2045 §6.7 (3)). */
function endsLine(bytes: Buffer, i: number): boolean {
  return i >= bytes.length || (bytes[i] === cr && bytes[i + 1] === lf);
}

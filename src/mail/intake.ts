// The streaming check of mail that is submitted by SMTP: one pass over the bytes, no copy of the body.
// A bare CR or LF is refused (RFC 5321 §2.3.8): SMTP smuggling is based on it. So are NUL, a header section
// over 100 KB and a mail over 26,214,400 bytes. Lines over 998 octets (RFC 5322 §2.1.1) are only reported.
// Feed it with push() and close it with end(); the header section comes out in the step that
// completes it, the body as it goes by. What the header says is submit-headers.ts.
import { isAscii } from "node:buffer";
import { BodyHasher } from "./body-hash.ts";
import { MailSyntaxError } from "./header.ts";

/** 25 MB. */
export const maxMessageBytes = 26_214_400;
const maxHeaderBytes = 102_400;
/** Without the CRLF. */
const maxLineOctets = 998;

/** The mail is larger than 26,214,400 bytes. */
export class MailTooLarge extends Error {
  constructor() {
    super("the message is larger than 26,214,400 bytes");
    this.name = "MailTooLarge";
  }
}

const wordBytes = Int32Array.BYTES_PER_ELEMENT;

/** The octets four at a time, from the first place that such a view may begin at. */
function wordsOf({ buffer, byteOffset, length }: Buffer): Int32Array {
  const from = Math.min(length, -byteOffset & (wordBytes - 1));
  return length - from < wordBytes
    ? noWords
    : new Int32Array(buffer, byteOffset + from, (length - from) >> 2);
}
const noWords = new Int32Array(0);

/** One of the four octets is below 14: subtracting borrows into its highest bit, which was not set. */
function hasControl(word: number): boolean {
  return ((word - 0x0e0e0e0e) & ~word & 0x80808080) !== 0;
}

export interface IntakeSummary {
  /** Header section as it came, its empty line, and body. */
  sizeBytes: number;
  bodyBytes: number;
  /** There are octets above 127, in header or body. */
  eightBit: boolean;
  /** The body has a line of more than 998 octets. */
  longLine: boolean;
  /** SHA-256 of the relaxed body, 32 bytes. */
  bodyHash: Buffer;
}

export interface IntakeStep {
  /** The header section with its empty line: once, in the step that completes it; else null. */
  section: Buffer | null;
  /** The body bytes of this step, often none. A view of the chunk that was pushed. */
  body: Buffer;
}

const cr = 13;
const lf = 10;

function bareLineEnd(): MailSyntaxError {
  return new MailSyntaxError("bare_line_end", "the mail has a CR or LF that stands alone");
}

const nothing: Buffer = Buffer.alloc(0);
const crlf = Buffer.from("\r\n", "latin1");

/** One mail; after an error it is of no more use. Any split of the same bytes gives the same result. */
export class MailIntake {
  readonly #hasher = new BodyHasher();
  #header: Buffer[] = [];
  #headerBytes = 0;
  #bodyBytes = 0;
  #inBody = false;
  #eightBit = false;
  #longLine = false;
  /** The last octet was a CR. */
  #cr = false;
  /** Octets of the line so far, without its CR. */
  #column = 0;

  /** Takes the next bytes of DATA, dots unstuffed. Throws MailSyntaxError or MailTooLarge. */
  push(chunk: Buffer): IntakeStep {
    if (this.#headerBytes + this.#bodyBytes + chunk.length > maxMessageBytes) throw new MailTooLarge();
    if (this.#inBody) {
      this.#scan(chunk);
      return { section: null, body: this.#takeBody(chunk) };
    }
    const bodyStart = this.#scan(chunk);
    if (!this.#inBody) {
      this.#keepHeader(Buffer.from(chunk));
      return { section: null, body: nothing };
    }
    this.#keepHeader(chunk.subarray(0, bodyStart));
    const body = chunk.subarray(bodyStart);
    this.#scan(body);
    return { section: this.#section(), body: this.#takeBody(body) };
  }

  /** Ends the mail. A last line without CRLF gets one; a mail without an empty line is all header. */
  end(): IntakeStep & { summary: IntakeSummary } {
    if (this.#cr) throw new MailSyntaxError("bare_line_end", "the mail ends in a bare CR");
    const open = this.#column > 0;
    let section: Buffer | null = null;
    let body: Buffer = nothing;
    if (this.#inBody) body = open ? this.#takeBody(crlf) : nothing;
    else {
      this.#inBody = true;
      this.#keepHeader(open ? Buffer.concat([crlf, crlf]) : crlf);
      section = this.#section();
    }
    const summary: IntakeSummary = {
      sizeBytes: this.#headerBytes + this.#bodyBytes,
      bodyBytes: this.#bodyBytes,
      eightBit: this.#eightBit,
      longLine: this.#longLine,
      bodyHash: this.#hasher.digest(),
    };
    return { section, body, summary };
  }

  /**
   * Looks at each octet, where it can at four in one go; most are above 13 and need no more than that look. In the
   * header it stops behind the empty line, says that the body has begun and returns where; else it returns 0.
   */
  #scan(bytes: Buffer): number {
    const { length } = bytes;
    if (length === 0) return 0;
    let i = 0;
    if (this.#cr) {
      if (bytes[0] !== lf) throw bareLineEnd();
      this.#cr = false;
      i = 1;
      if (this.#endsHeader(this.#column)) return this.#bodyAt(bytes, 1);
      this.#column = 0;
    }
    let lineStart = i - this.#column;
    const words = wordsOf(bytes);
    const first = words.byteOffset - bytes.byteOffset;
    for (; i < length; i++) {
      if (((i - first) & 3) === 0 && i >= first) {
        let word = (i - first) >> 2;
        while (word < words.length && !hasControl(words[word] as number)) word++;
        i = first + (word << 2);
        if (i === length) break;
      }
      const byte = bytes[i] as number;
      if (byte > cr) continue;
      if (byte === 0) throw new MailSyntaxError("nul", "the mail has a NUL octet");
      if (byte === lf) throw bareLineEnd();
      if (byte !== cr) continue;
      if (i - lineStart > maxLineOctets) this.#longLine ||= this.#inBody;
      if (i + 1 === length) break;
      if (bytes[i + 1] !== lf) throw bareLineEnd();
      if (this.#endsHeader(i - lineStart)) return this.#bodyAt(bytes, i + 2);
      i++;
      lineStart = i + 1;
    }
    this.#cr = i < length;
    this.#column = i - lineStart;
    if (this.#column > maxLineOctets) this.#longLine ||= this.#inBody;
    this.#eightBit ||= !isAscii(bytes);
    return 0;
  }

  #endsHeader(lineLength: number): boolean {
    return lineLength === 0 && !this.#inBody;
  }

  #bodyAt(bytes: Buffer, start: number): number {
    this.#inBody = true;
    this.#column = 0;
    this.#eightBit ||= !isAscii(bytes.subarray(0, start));
    return start;
  }

  #keepHeader(bytes: Buffer): void {
    this.#headerBytes += bytes.length;
    if (this.#headerBytes > maxHeaderBytes) {
      throw new MailSyntaxError("header_too_large", "the header section has more than 100 KB");
    }
    this.#header.push(bytes);
  }

  #section(): Buffer {
    const section = Buffer.concat(this.#header);
    this.#header = [];
    return section;
  }

  #takeBody(bytes: Buffer): Buffer {
    this.#bodyBytes += bytes.length;
    this.#hasher.update(bytes);
    return bytes;
  }
}

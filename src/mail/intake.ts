// The streaming look at mail that comes in by SMTP: one pass over the bytes, no copy of the body.
// A bare CR or LF is refused (RFC 5321 §2.3.8): it is what smuggling is made of. So are NUL, lines
// over 998 octets (RFC 5322 §2.1.1), a header section over 100 KB and a mail over 26,214,400 bytes.
// Feed it with push() and close it with end(); the header section comes out in the step that
// completes it, the body as it goes by. What the header says is submit-headers.ts.
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

export interface IntakeSummary {
  /** Header section as it came, its empty line, and body. */
  sizeBytes: number;
  bodyBytes: number;
  /** There are octets above 127, in header or body. */
  eightBit: boolean;
  /** There are octets above 127 in the header section. */
  eightBitHeader: boolean;
  /** SHA-256 of the relaxed body, 32 bytes. */
  bodyHash: Buffer;
}

export interface IntakeStep {
  /** The header section with its empty line: once, in the step that completes it; else null. */
  section: Buffer | null;
  /** The body bytes of this step, often none. A view of the chunk that was pushed. */
  body: Buffer;
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
  #eightBitHeader = false;
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
    this.#eightBitHeader = this.#eightBit;
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
      this.#eightBitHeader = this.#eightBit;
      this.#keepHeader(open ? Buffer.concat([crlf, crlf]) : crlf);
      section = this.#section();
    }
    const summary: IntakeSummary = {
      sizeBytes: this.#headerBytes + this.#bodyBytes,
      bodyBytes: this.#bodyBytes,
      eightBit: this.#eightBit,
      eightBitHeader: this.#eightBitHeader,
      bodyHash: this.#hasher.digest(),
    };
    return { section, body, summary };
  }

  /**
   * Looks at each octet. In the header it stops behind the empty line, says that the body has begun
   * and returns where; else it returns 0.
   */
  #scan(bytes: Buffer): number {
    let wasCr = this.#cr;
    let column = this.#column;
    let high = 0;
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i] ?? 0;
      if (byte === 10 || wasCr) {
        if (byte !== 10 || !wasCr)
          throw new MailSyntaxError("bare_line_end", "the mail has a CR or LF that stands alone");
        wasCr = false;
        const empty = column === 0;
        column = 0;
        if (!empty || this.#inBody) continue;
        this.#inBody = true;
        this.#keepState(false, 0, high);
        return i + 1;
      }
      if (byte === 13) wasCr = true;
      else if (byte === 0) throw new MailSyntaxError("nul", "the mail has a NUL octet");
      else if (++column > maxLineOctets)
        throw new MailSyntaxError("line_too_long", "the mail has a line of more than 998 octets");
      high |= byte;
    }
    this.#keepState(wasCr, column, high);
    return 0;
  }

  #keepState(cr: boolean, column: number, high: number): void {
    this.#cr = cr;
    this.#column = column;
    this.#eightBit ||= high > 127;
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

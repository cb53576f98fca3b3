// A mail from SMTP for a wire that can take less than it is: lines of at most 998 octets (RFC 5322 §2.1.1) before it
// is stored, ASCII for a receiver without 8BITMIME or SMTPUTF8 (RFC 6152 §3, RFC 6409 §8.7). Only what cannot
// pass is changed: such leaves become quoted-printable or base64, such fields are folded or written by RFC 2047 and
// RFC 2231; all else keeps its bytes. Two passes over the mail: the first plans, the second writes. What a
// signature covers (multipart/signed) and what has an encoding we do not know is never changed: not_convertible.
import { Base64, Base64Rewrap } from "./base64-stream.ts";
import { BodyOutput } from "./body-output.ts";
import { Effort, has8Bit, partsEffort, withFields, type FieldChanges } from "./header-convert.ts";
import { partKind, sectionFor, type SectionKind, type Wire } from "./header-tidy.ts";
import { MailSyntaxError, parseHeaderSection } from "./header.ts";
import { identityEncodings, MimeWalk, type MimeVisitor, type Part } from "./mime-walk.ts";
import { piecesOf } from "./pieces.ts";
import { QuotedPrintable } from "./quoted-printable.ts";

/** A mail that can be read twice. */
export interface Source {
  /** With its empty line. */
  section: Buffer;
  body(): AsyncIterable<Buffer>;
}

export type { Wire };

type Encoding = "quoted-printable" | "base64";
interface Change {
  /** What its octets go through; null: they stay. */
  encoder: (() => Encoder) | null;
  fields: FieldChanges;
}
interface Encoder {
  push(chunk: Buffer): Buffer;
  end(): Buffer;
}

export interface ConversionPlan {
  wire: Wire;
  /** By the number of the part, the message itself being 0. */
  changes: Map<number, Change>;
  /** Any leaf or field is changed. */
  changed: boolean;
}

const maxLineOctets = 998;
/** From one octet in six above 127 on, base64 is shorter than quoted-printable. */
const base64From = 6;

/** Throws MailSyntaxError (not_convertible, line_too_long, too_deep) where the mail cannot be made to pass. */
export async function planConversion(mail: Source, wire: Wire): Promise<ConversionPlan> {
  const planner = new Planner(wire);
  const fields = parseHeaderSection(mail.section);
  planner.section(mail.section, "message");
  const walk = new MimeWalk(fields, planner);
  for await (const chunk of piecesOf(mail.body())) walk.push(chunk);
  walk.end();
  return planner.plan();
}

/** The mail as the plan has it: its header section first, then its body in chunks. */
export async function* convert(mail: Source, plan: ConversionPlan): AsyncGenerator<Buffer> {
  const writer = new Writer(plan, mail.section);
  const walk = new MimeWalk(parseHeaderSection(mail.section), writer);
  yield writer.take();
  for await (const chunk of piecesOf(mail.body())) {
    walk.push(chunk);
    const written = writer.take();
    if (written.length > 0) yield written;
  }
  walk.end();
  writer.end();
  yield writer.take();
}

/** Counts over the octets of one leaf. */
class OctetScan {
  bytes = 0;
  high = 0;
  longLine = false;
  #column = 0;

  add(bytes: Buffer): void {
    let column = this.#column;
    let high = 0;
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i] ?? 0;
      if (byte === 10) column = 0;
      else if (byte !== 13 && ++column > maxLineOctets) this.longLine = true;
      high += byte >> 7;
    }
    this.#column = column;
    this.high += high;
    this.bytes += bytes.length;
  }
}

class Planner implements MimeVisitor {
  readonly #wire: Wire;
  readonly #changes = new Map<number, Change>();
  #index = -1;
  #part: Part | null = null;
  #scan = new OctetScan();
  #utf8: InstanceType<typeof TextDecoder> | null = null;
  #isUtf8 = true;
  #changed = false;
  readonly #frames = new OctetScan();
  readonly #effort = new Effort(partsEffort);

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  part(part: Part): void {
    this.#close();
    if (this.#wire === "ascii" && part.composite && hasWideBoundary(part))
      throw unconvertible("a multipart's boundary");
    this.#index++;
    this.#part = part;
    this.#scan = new OctetScan();
    this.#utf8 = this.#lacksType(part) ? new TextDecoder("utf-8", { fatal: true }) : null;
    this.section(part.section, partKind(part));
  }

  content(bytes: Buffer): void {
    this.#scan.add(bytes);
    if (!this.#utf8) return;
    try {
      this.#utf8.decode(bytes, { stream: true });
    } catch {
      this.#isUtf8 = false;
      this.#utf8 = null;
    }
  }

  /** What no reader shows: it may be changed where nothing signs it. */
  frame(bytes: Buffer, signed: boolean): void {
    if (!signed) return;
    if (this.#wire === "ascii" && has8Bit(bytes)) throw unconvertible("a signed part");
    this.#frames.add(bytes);
    if (this.#frames.longLine) throw unconvertible("a signed part");
  }

  section(section: Buffer, of: SectionKind): void {
    const written = sectionFor(section, this.#wire, of, this.#effort);
    if (written === section) return;
    if (of === "signed part") throw unconvertible("a signed part");
    this.#changed = true;
  }

  plan(): ConversionPlan {
    this.#close();
    return { wire: this.#wire, changes: this.#changes, changed: this.#changed || this.#changes.size > 0 };
  }

  #close(): void {
    const part = this.#part;
    const change = part && this.#changeOf(part);
    if (!change) return;
    // A label alone may stay: content in ASCII passes whatever it is called.
    if (part.signed && !change.encoder) return;
    if (part.signed) throw unconvertible("a signed part");
    this.#changes.set(this.#index, change);
    if (this.#index > 0 || !change.encoder) return;
    // A leaf that is the whole mail and had no MIME fields.
    if (!this.#has(part, "mime-version")) change.fields["MIME-Version"] = "1.0";
    if (this.#lacksType(part)) change.fields["Content-Type"] = `text/plain; charset=${this.#charset()}`;
  }

  #changeOf(part: Part): Change | null {
    const { encoding, composite } = part;
    const identity = identityEncodings.has(encoding);
    const { longLine, high } = this.#scan;
    const unfit = longLine || (this.#wire === "ascii" && high > 0);
    // Nothing above 127 is left behind it: the label says so.
    const label = this.#wire === "ascii" && identity && encoding !== "7bit";
    if (!unfit || composite)
      return label ? { encoder: null, fields: { "Content-Transfer-Encoding": "7bit" } } : null;
    if (encoding === "base64") return { encoder: () => new Base64Rewrap(), fields: {} };
    if (encoding === "quoted-printable") return { encoder: () => new QuotedPrintable(true), fields: {} };
    if (!identity) throw unconvertible(`a part in the encoding ${encoding.slice(0, 40)}`);
    const to: Encoding = high * base64From > this.#scan.bytes ? "base64" : "quoted-printable";
    return {
      encoder: () => (to === "base64" ? new Base64() : new QuotedPrintable()),
      fields: { "Content-Transfer-Encoding": to },
    };
  }

  #lacksType(part: Part): boolean {
    return this.#index === 0 && !this.#has(part, "content-type");
  }

  #has(part: Part, name: string): boolean {
    return part.fields.some((field) => field.lower === name);
  }

  /** RFC 1428 §3, for text of unknown charset. */
  #charset(): string {
    if (this.#scan.high === 0) return "us-ascii";
    return this.#isUtf8 ? "utf-8" : "unknown-8bit";
  }
}

class Writer implements MimeVisitor {
  readonly #plan: ConversionPlan;
  readonly #top: Buffer;
  /** Spent as the planner spent its own: both meet the same sections in the same order. */
  readonly #effort = new Effort(partsEffort);
  #index = -1;
  #encoder: Encoder | null = null;
  readonly #out = new BodyOutput();
  #column = 0;

  constructor(plan: ConversionPlan, section: Buffer) {
    this.#plan = plan;
    this.#top = section;
  }

  part(part: Part): void {
    this.#finish();
    this.#index++;
    const top = this.#index === 0;
    const section = top ? this.#top : part.section;
    const change = this.#plan.changes.get(this.#index);
    const fit = sectionFor(section, this.#plan.wire, top ? "message" : partKind(part), this.#effort);
    this.#out.put(change ? withFields(fit, change.fields) : fit);
    this.#encoder = change?.encoder?.() ?? null;
  }

  content(bytes: Buffer): void {
    this.#out.put(this.#encoder ? this.#encoder.push(bytes) : bytes);
  }

  frame(bytes: Buffer): void {
    this.#finish();
    this.#out.put(this.#fitFrame(bytes));
  }

  end(): void {
    this.#finish();
    this.#out.end();
  }

  take(): Buffer {
    return this.#out.take();
  }

  #finish(): void {
    if (this.#encoder) this.#out.put(this.#encoder.end());
    this.#encoder = null;
  }

  /** Text that readers ignore: octets above 127 become `?`, long lines are folded, so that no new delimiter begins. */
  #fitFrame(bytes: Buffer): Buffer {
    const ascii = this.#plan.wire === "ascii" && has8Bit(bytes);
    const out: number[] = [];
    let column = this.#column;
    let changed = ascii;
    for (const byte of bytes) {
      if (byte === 10 || byte === 13) column = byte === 10 ? 0 : column;
      else if (++column > maxLineOctets) {
        out.push(13, 10, 32);
        column = 2;
        changed = true;
      }
      out.push(ascii && byte > 127 ? 63 : byte);
    }
    this.#column = column;
    return changed ? Buffer.from(out) : bytes;
  }
}

/** Its delimiter lines cannot be written in ASCII. */
function hasWideBoundary({ contentType }: Part): boolean {
  return contentType.parameters.some(([name, text]) => name === "boundary" && has8Bit(Buffer.from(text)));
}

function unconvertible(what: string): MailSyntaxError {
  return new MailSyntaxError(
    "not_convertible",
    `${what} has octets above 127 or lines of more than 998 octets, and may not be changed; encode it as quoted-printable or base64`,
  );
}

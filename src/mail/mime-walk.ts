// The parts of a mail as they stream by (RFC 2046 §5.1): nothing of a body is kept but what may be the beginning
// of a delimiter line. Attached messages are walked into; what says it is multipart and has no boundary, or
// is a message in base64, is a leaf. A delimiter of an outer multipart ends all inner ones, closed or not.
// Depth and header sections are bounded; the number of parts is not, for none is remembered.
import { maxFields, MailSyntaxError, parsePartSection, type HeaderField } from "./header.ts";
import { readStructured, type Structured } from "./structured.ts";

/** One part: the message itself is the first. */
export interface Part {
  fields: HeaderField[];
  /** Its header section as it came, with its empty line where it has one; empty for the message itself. */
  section: Buffer;
  contentType: Structured;
  /** Lower case; `7bit` where there is none. */
  encoding: string;
  /** It contains parts or a message, not content. */
  composite: boolean;
  /** It stands within a multipart/signed, whose signature covers each of its bytes. */
  signed: boolean;
}

/** Called with views of the bytes that were pushed: keep copies. */
export interface MimeVisitor {
  part(part: Part): void;
  /** Content of the leaf that `part` was called for last. */
  content(bytes: Buffer): void;
  /** Delimiters, preambles and epilogues; `signed` as of a part there. */
  frame(bytes: Buffer, signed: boolean): void;
}

const maxDepth = 100;
const maxSectionBytes = 102_400;
/** RFC 2046 §5.1.1 has 70; what programs write is longer at times. */
const maxBoundaryLength = 990;
const lf = 10;
const dash = 45;
const nothing: Buffer = Buffer.alloc(0);
const lineStart = Buffer.from("\r\n--", "latin1");
const lineEnd = Buffer.from("\r\n", "latin1");
/** Encodings that leave the bytes as they are (RFC 2045 §6.2). */
export const identityEncodings: ReadonlySet<string> = new Set(["7bit", "8bit", "binary"]);

interface Level {
  /** Null: an attached message, which only ends with what it stands in. */
  boundary: string | null;
  signed: boolean;
}

type State = "header" | "content" | "frame";

/** Feed it the body of a mail whose header fields are known. Throws MailSyntaxError: too_deep, header_too_large, bad_header. */
export class MimeWalk {
  readonly #visitor: MimeVisitor;
  readonly #levels: Level[] = [];
  /** Where in `levels` a boundary stands, the innermost last. */
  readonly #depths = new Map<string, number[]>();
  #state: State = "content";
  /** At the beginning of a line, in content or frame. */
  #fresh = true;
  #section: Buffer[] = [];
  #sectionBytes = 0;
  #held: Buffer = nothing;

  constructor(fields: HeaderField[], visitor: MimeVisitor) {
    this.#visitor = visitor;
    this.#open(fields, nothing);
  }

  /** How many multiparts and attached messages enclose the visited part. */
  get depth(): number {
    return this.#levels.length;
  }

  push(chunk: Buffer): void {
    let bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = nothing;
    while (bytes.length > 0) {
      const rest: Buffer = this.#state === "header" ? this.#readHeader(bytes) : this.#readLines(bytes);
      if (rest === bytes) {
        this.#held = Buffer.from(rest);
        return;
      }
      bytes = rest;
    }
  }

  /** The body has ended. */
  end(): void {
    if (this.#state === "header") {
      this.#section.push(Buffer.from(this.#held));
      this.#closeHeader();
    } else this.#emit(this.#held);
    this.#held = nothing;
  }

  /** Takes one line of a header section, or nothing where it is not whole. */
  #readHeader(bytes: Buffer): Buffer {
    const end = bytes.indexOf(lf) + 1;
    if (this.#sectionBytes + (end === 0 ? bytes.length : end) > maxSectionBytes)
      throw new MailSyntaxError(
        "header_too_large",
        "a part of the mail has a header section of more than 100 KB",
      );
    if (end === 0) return bytes;
    const line = bytes.subarray(0, end);
    const delimiter = this.#delimiter(line);
    if (delimiter) {
      // The part had no empty line, so it has no content.
      this.#closeHeader();
      this.#cross(delimiter, line);
    } else {
      this.#section.push(Buffer.from(line));
      this.#sectionBytes += end;
      if (end === 2) this.#closeHeader();
    }
    return bytes.subarray(end);
  }

  /** Takes content up to the next delimiter line and that line; what may become one is returned. */
  #readLines(bytes: Buffer): Buffer {
    if (this.#depths.size === 0) {
      this.#emit(bytes);
      return nothing;
    }
    let from = 0;
    for (;;) {
      const atStart = from === 0 && this.#fresh && startsLikeDelimiter(bytes);
      const found = atStart ? 0 : bytes.indexOf(lineStart, from);
      if (found < 0) return this.#keepTail(bytes);
      const start = atStart ? 0 : found + 2;
      const end = bytes.indexOf(lineEnd, start);
      if (end < 0 && bytes.length - start <= maxBoundaryLength + 4) return this.#keepFrom(bytes, found);
      const line = end < 0 ? nothing : bytes.subarray(start, end + 2);
      const delimiter = this.#delimiter(line);
      if (delimiter) {
        this.#emit(bytes.subarray(0, found));
        this.#cross(delimiter, bytes.subarray(found, end + 2));
        return bytes.subarray(end + 2);
      }
      from = Math.max(start, 1);
    }
  }

  /** All but what could be the first octets of a delimiter. */
  #keepTail(bytes: Buffer): Buffer {
    for (let length = Math.min(3, bytes.length); length > 0; length--)
      if (bytes.subarray(-length).equals(lineStart.subarray(0, length)))
        return this.#keepFrom(bytes, bytes.length - length);
    if (this.#fresh && bytes.length === 1 && bytes[0] === dash) return bytes;
    return this.#keepFrom(bytes, bytes.length);
  }

  #keepFrom(bytes: Buffer, at: number): Buffer {
    if (at === 0) return bytes;
    this.#emit(bytes.subarray(0, at));
    this.#held = nothing;
    return this.#rest(bytes, at);
  }

  /** A view that is not `bytes`, so that push() goes on with it. */
  #rest(bytes: Buffer, at: number): Buffer {
    this.#fresh = false;
    return bytes.subarray(at);
  }

  #emit(bytes: Buffer): void {
    if (bytes.length === 0) return;
    if (this.#state === "content") this.#visitor.content(bytes);
    else this.#visitor.frame(bytes, this.#signed);
  }

  /** The level that a line with its CRLF ends or goes on with. */
  #delimiter(line: Buffer): { level: number; closes: boolean } | null {
    if (!startsLikeDelimiter(line) || line.length > maxBoundaryLength + 8) return null;
    const text = line.toString("latin1", 2).trimEnd();
    const open = this.#depths.get(text)?.at(-1);
    if (open !== undefined) return { level: open, closes: false };
    const closed = text.endsWith("--") ? this.#depths.get(text.slice(0, -2))?.at(-1) : undefined;
    return closed === undefined ? null : { level: closed, closes: true };
  }

  /** Leaves the parts that a delimiter ends. */
  #cross({ level, closes }: { level: number; closes: boolean }, bytes: Buffer): void {
    this.#leave(level + 1);
    this.#visitor.frame(bytes, this.#signed);
    if (closes) this.#leave(level);
    this.#state = closes ? "frame" : "header";
    this.#fresh = true;
  }

  #leave(depth: number): void {
    while (this.#levels.length > depth) {
      const boundary = this.#levels.pop()?.boundary ?? null;
      if (boundary === null) continue;
      const depths = this.#depths.get(boundary) ?? [];
      depths.pop();
      if (depths.length === 0) this.#depths.delete(boundary);
    }
  }

  #closeHeader(): void {
    const section = Buffer.concat(this.#section);
    this.#section = [];
    this.#sectionBytes = 0;
    this.#open(parsePartSection(section, maxFields), section);
  }

  #open(fields: HeaderField[], section: Buffer): void {
    const contentType = readStructured(valueOf(fields, "content-type") ?? "text/plain");
    const encoding = readStructured(valueOf(fields, "content-transfer-encoding") ?? "").value || "7bit";
    const boundary = contentType.value.startsWith("multipart/") ? boundaryOf(contentType) : null;
    const attached = attachedMessage.test(contentType.value) && identityEncodings.has(encoding);
    const composite = boundary !== null || attached;
    this.#visitor.part({ fields, section, contentType, encoding, composite, signed: this.#signed });
    this.#fresh = true;
    this.#state = attached ? "header" : composite ? "frame" : "content";
    if (composite) this.#enter(boundary, contentType.value === "multipart/signed");
  }

  #enter(boundary: string | null, signed: boolean): void {
    if (this.#levels.length >= maxDepth)
      throw new MailSyntaxError("too_deep", `the mail has parts within parts, more than ${maxDepth} deep`);
    this.#levels.push({ boundary, signed: signed || this.#signed });
    if (boundary === null) return;
    const depths = this.#depths.get(boundary) ?? [];
    depths.push(this.#levels.length - 1);
    this.#depths.set(boundary, depths);
  }

  get #signed(): boolean {
    return this.#levels.at(-1)?.signed ?? false;
  }
}

const attachedMessage = /^message\/(?:rfc822|global|news)$/;

function startsLikeDelimiter(bytes: Buffer): boolean {
  return bytes[0] === dash && bytes[1] === dash;
}

function valueOf(fields: HeaderField[], lower: string): string | null {
  return fields.find((field) => field.lower === lower)?.value ?? null;
}

/** Throws MailSyntaxError bad_header where readers would not agree on it: its parts would hide from one of them. */
function boundaryOf(contentType: Structured): string | null {
  const given = new Set(
    contentType.parameters.filter(([name]) => name === "boundary").map(([, text]) => text),
  );
  const [boundary = ""] = given;
  if (given.size > 1 || boundary.includes("\ufffd"))
    throw new MailSyntaxError("bad_header", "a multipart has two boundaries, or one that is not valid text");
  // As the octets of a line would read.
  const octets = Buffer.from(boundary, "utf8").toString("latin1").trimEnd();
  return octets === "" || octets.length > maxBoundaryLength ? null : octets;
}

// What a mail shows, found in one pass over its bytes: its header fields, where its text and html stand, and its
// attachments. Nothing of a body is kept: text is decoded later, from the places found here (content-text.ts). The
// work is linear and what is kept is bounded; a mail beyond a limit is refused with the limit's name. A part is
// text where it is text/plain or text/html and not marked as an attachment (RFC 2183 §2.1, §2.2); an attached message
// is one attachment, whatever it contains.
import { bodyDecoder, type BodyDecoder } from "./body-decoder.ts";
import { decodeWords } from "./encoded-word.ts";
import { MailSyntaxError, maxFields, parsePartSection } from "./header.ts";
import { MimeWalk, type Part } from "./mime-walk.ts";
import { parameterOf, readStructured } from "./structured.ts";

/** Text of the mail: octets from `start` up to `end`. */
export interface TextPlace {
  start: number;
  end: number;
  /** Content-Transfer-Encoding, lower case. */
  encoding: string;
  charset: string;
}

export interface ShownAttachment {
  filename: string | null;
  contentType: string;
  /** Decoded. */
  sizeBytes: number;
}

export interface ContentPlan {
  headers: { name: string; value: string }[];
  text: TextPlace[];
  html: TextPlace[];
  attachments: ShownAttachment[];
}

/** The mail has more of something than is shown in parts; the message says what and how much is shown. */
export class ContentLimit extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = "ContentLimit";
  }
}

/** `fields`: of a mail that was taken, and those that were added to it since. */
export const contentLimits = { headerBytes: 102_400, fields: maxFields + 100, parts: 10_000 };
/** Of a file name and of a media type: what a file system takes. */
const longestName = 255;
/** What of an encoded name is decoded for that. */
const longestEncoded = 4_096;
const nothing: Buffer = Buffer.alloc(0);
const emptyLine = Buffer.from("\r\n\r\n", "latin1");

type Leaf = { kind: "text" | "html"; place: TextPlace } | { kind: "file"; attachment: ShownAttachment };

/** Feed it the bytes of a mail with CRLF line ends, then ask for the plan. Throws ContentLimit. */
export class ContentReader {
  readonly #plan: ContentPlan = { headers: [], text: [], html: [], attachments: [] };
  #head: Buffer = nothing;
  #walk: MimeWalk | null = null;
  /** Octets of the mail that the walk has passed. */
  #position = 0;
  #parts = 0;
  #leaf: Leaf | null = null;
  #decoder: BodyDecoder | null = null;
  /** How many levels the attached message stands in that is being passed over. */
  #message: number | null = null;

  push(chunk: Buffer): void {
    const walk = this.#walk;
    if (walk) return byName(() => walk.push(chunk));
    this.#head = Buffer.concat([this.#head, chunk]);
    const end = endOfHeader(this.#head);
    if ((end ?? this.#head.length) > contentLimits.headerBytes)
      throw new ContentLimit("a header section of more than 100 KB");
    if (end !== null) this.#openBody(end);
  }

  end(): ContentPlan {
    const walk = this.#walk ?? this.#openBody(this.#head.length);
    byName(() => walk.end());
    this.#closeLeaf();
    return this.#plan;
  }

  #openBody(end: number): MimeWalk {
    const fields = parsePartSection(this.#head.subarray(0, end));
    const body = this.#head.subarray(end);
    if (fields.length > contentLimits.fields)
      throw new ContentLimit(`more than ${contentLimits.fields.toLocaleString("en")} header fields`);
    this.#plan.headers = fields.map(({ name, value }) => ({ name, value }));
    this.#head = nothing;
    this.#position = end;
    return byName(() => {
      const walk = new MimeWalk(fields, {
        part: (part) => this.#onPart(part),
        content: (bytes) => this.#onContent(bytes),
        frame: (bytes) => this.#onFrame(bytes),
      });
      this.#walk = walk;
      walk.push(body);
      return walk;
    });
  }

  get #depth(): number {
    return this.#walk?.depth ?? 0;
  }

  #onPart(part: Part): void {
    this.#position += part.section.length;
    if (++this.#parts > contentLimits.parts)
      throw new ContentLimit(`more than ${contentLimits.parts.toLocaleString("en")} parts`);
    if (this.#message !== null && this.#depth > this.#message) return this.#count(part.section.length);
    this.#closeLeaf();
    if (part.composite && part.contentType.value.startsWith("multipart/")) return;
    if (part.composite) this.#message = this.#depth;
    this.#leaf = leafOf(part, this.#position);
    if (this.#leaf.kind === "file" && !part.composite) this.#decoder = bodyDecoder(part.encoding);
  }

  #onContent(bytes: Buffer): void {
    this.#position += bytes.length;
    if (this.#leaf?.kind !== "file") {
      if (this.#leaf) this.#leaf.place.end = this.#position;
    } else this.#count(this.#decoder ? this.#decoder.push(bytes).length : bytes.length);
  }

  #onFrame(bytes: Buffer): void {
    this.#position += bytes.length;
    if (this.#message !== null && this.#depth > this.#message) this.#count(bytes.length);
  }

  #count(octets: number): void {
    if (this.#leaf?.kind === "file") this.#leaf.attachment.sizeBytes += octets;
  }

  #closeLeaf(): void {
    if (this.#decoder) this.#count(this.#decoder.end().length);
    const leaf = this.#leaf;
    this.#decoder = null;
    this.#leaf = null;
    this.#message = null;
    if (leaf?.kind === "file") this.#plan.attachments.push(leaf.attachment);
    else if (leaf && leaf.place.end > leaf.place.start) this.#plan[leaf.kind].push(leaf.place);
  }
}

/** What the walk refuses is a limit too. */
function byName<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof MailSyntaxError) throw new ContentLimit(error.message);
    throw error;
  }
}

/** Index behind the empty line; null while it has not come. */
function endOfHeader(bytes: Buffer): number | null {
  if (bytes[0] === 13 && bytes[1] === 10) return 2;
  const at = bytes.indexOf(emptyLine);
  return at < 0 ? null : at + emptyLine.length;
}

function leafOf(part: Part, start: number): Leaf {
  const type = part.contentType.value;
  const disposition = readStructured(
    part.fields.find(({ lower }) => lower === "content-disposition")?.value ?? "",
  );
  if ((type === "text/plain" || type === "text/html") && disposition.value !== "attachment") {
    const charset = parameterOf(part.contentType, "charset") ?? "";
    return {
      kind: type === "text/html" ? "html" : "text",
      place: { start, end: start, encoding: kept(part.encoding), charset: kept(charset) },
    };
  }
  const name = parameterOf(disposition, "filename") ?? parameterOf(part.contentType, "name");
  return {
    kind: "file",
    attachment: {
      filename: name === null ? null : kept(decodeWords(name.slice(0, longestEncoded))),
      contentType: kept(type),
      sizeBytes: 0,
    },
  };
}

/** A copy: a slice would keep the whole header section in memory. */
function kept(text: string): string {
  return Buffer.from(text.slice(0, longestName)).toString();
}

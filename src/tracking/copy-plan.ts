// What differs between the copies of a tracked message: which parts are HTML that a recipient reads, which links of theirs
// are tracked, and where the pixel stands. Read once a message. Left alone are attachments, attached messages, what is
// signed or encrypted (RFC 1847), encodings and charsets whose markup cannot be read, and what is beyond a limit: such
// a part goes out as it was sent.
import { setImmediate as turn } from "node:timers/promises";
import { bodyDecoder, type BodyDecoder } from "../mail/body-decoder.ts";
import type { Source } from "../mail/conversion.ts";
import { parseHeaderSection, type HeaderField } from "../mail/header.ts";
import { htmlCharset } from "../mail/html-charset.ts";
import { htmlPlaces, type HtmlPlaces } from "../mail/html-places.ts";
import { unsubscribeTargets } from "../mail/list-unsubscribe.ts";
import { identityEncodings, MimeWalk, type MimeVisitor, type Part } from "../mail/mime-walk.ts";
import { piecesOf } from "../mail/pieces.ts";
import { readStructured } from "../mail/structured.ts";

/** Links and octets of their targets: of all parts of a message. */
export const copyLimits = { htmlBytes: 8 * 1024 * 1024, links: 2_000, targetOctets: 256 * 1024 };

/** Octets of a part whose search may be hard work. */
const measuredFrom = 65_536;

/** Octets of the decoded part that are replaced. */
export interface Hole {
  start: number;
  end: number;
  /** The index of its target; -1: the pixel. */
  link: number;
  /** The line that it stands in, where lines are sent as they are: where it begins, and how long it is. */
  line: { start: number; length: number } | null;
}

export interface CopyPlan {
  /** What is written into each part, by the part's number, the message itself being 0. */
  parts: ReadonlyMap<number, { encoding: string; holes: readonly Hole[] }>;
  /** Where links lead, each once. */
  targets: readonly string[];
  /** Parts that are left alone though they are HTML, wholly or from some place on, and why. */
  untouched: readonly string[];
  /**
   * Processor time that the search took, milliseconds, and half of what the tokens of a copy take; of small parts it is not
   * measured, but for their number.
   */
  tookMs: number;
  /** What the message's own header section says of its body. */
  top: readonly HeaderField[];
}

export interface Wanted {
  opens: boolean;
  clicks: boolean;
}

/** Throws MailSyntaxError (too_deep, header_too_large, bad_header). */
export async function planCopy(mail: Source, wanted: Wanted): Promise<CopyPlan> {
  const fields = parseHeaderSection(mail.section);
  const planner = new Planner(wanted, unsubscribeTargets(fields));
  const walk = new MimeWalk(fields, planner);
  planner.depth = () => walk.depth;
  for await (const piece of piecesOf(mail.body())) {
    walk.push(piece);
    await planner.read();
  }
  walk.end();
  planner.end();
  await planner.read();
  return { ...planner.found(), top: fields.filter(({ lower }) => lower.startsWith("content-")) };
}

/** An HTML part on its way. */
interface Leaf {
  index: number;
  encoding: string;
  charset: string;
  decoder: BodyDecoder;
  chunks: Buffer[];
  bytes: number;
}

/** What it takes to walk over a part, of which an empty one has few octets. */
const partMs = 0.01;
/** Half of what the token of a link takes. */
const linkMs = 0.003;

class Planner implements MimeVisitor {
  depth: () => number = () => 0;
  readonly #wanted: Wanted;
  /** Targets that are left alone: the pages to unsubscribe that the message has by itself. */
  readonly #except: ReadonlySet<string>;
  readonly #parts = new Map<number, { encoding: string; holes: Hole[] }>();
  /** Each once, however often it is linked: its links have one token. */
  readonly #targets = new Map<string, number>();
  #links = 0;
  readonly #untouched: string[] = [];
  #octets = 0;
  #tookMs = 0;
  #hasPixel = false;
  #index = -1;
  /** How many levels the attached or encrypted message stands in that is being passed over. */
  #closedBelow: number | null = null;
  #leaf: Leaf | null = null;
  #read: Leaf[] = [];

  constructor(wanted: Wanted, except: ReadonlySet<string>) {
    this.#wanted = wanted;
    this.#except = except;
  }

  part(part: Part): void {
    this.end();
    this.#index++;
    const depth = this.depth();
    if (this.#closedBelow !== null && depth > this.#closedBelow) return;
    this.#closedBelow = isClosed(part) ? depth : null;
    if (this.#closedBelow !== null || !isShownHtml(part)) return;
    const { encoding, contentType } = part;
    const charsets = contentType.parameters.filter(([name]) => name === "charset").map(([, text]) => text);
    const readable =
      encoding === "base64" || encoding === "quoted-printable" || identityEncodings.has(encoding);
    if (!readable) return this.#leave(this.#index, "its transfer encoding is not known");
    if (new Set(charsets).size > 1) return this.#leave(this.#index, "it has two charsets");
    this.#leaf = {
      index: this.#index,
      encoding,
      charset: (charsets[0] ?? "").slice(0, 100),
      decoder: bodyDecoder(encoding),
      chunks: [],
      bytes: 0,
    };
  }

  content(bytes: Buffer): void {
    const leaf = this.#leaf;
    if (leaf) this.#add(leaf, leaf.decoder.push(bytes));
  }

  frame(): void {
    this.end();
  }

  /** The part is over. */
  end(): void {
    const leaf = this.#leaf;
    if (!leaf) return;
    this.#add(leaf, leaf.decoder.end());
    if (this.#leaf) this.#read.push(leaf);
    this.#leaf = null;
  }

  /** Finds the places of the parts that are over. */
  async read(): Promise<void> {
    for (const leaf of this.#read.splice(0)) {
      const { opens, clicks } = this.#wanted;
      const mostLinks = clicks ? copyLimits.links - this.#links : 0;
      if (mostLinks === 0 && (!opens || this.#hasPixel)) return;
      const charset = htmlCharset(leaf.charset);
      if (!charset) {
        this.#leave(leaf.index, `its charset is ${JSON.stringify(leaf.charset)}`);
        continue;
      }
      const html = leaf.chunks.length === 1 && leaf.chunks[0] ? leaf.chunks[0] : Buffer.concat(leaf.chunks);
      const mostOctets = copyLimits.targetOctets - this.#octets;
      const scan = htmlPlaces(html, charset, {
        links: mostLinks > 0,
        except: this.#except,
        mostLinks,
        mostOctets,
      });
      let step = this.#step(scan, html.length);
      for (; !step.done; step = this.#step(scan, html.length)) await turn();
      this.#note(leaf, html, step.value);
    }
  }

  #step(scan: ReturnType<typeof htmlPlaces>, length: number): ReturnType<typeof scan.next> {
    if (length < measuredFrom) return scan.next();
    const began = process.threadCpuUsage();
    const step = scan.next();
    const { user, system } = process.threadCpuUsage(began);
    this.#tookMs += (user + system) / 1000;
    return step;
  }

  found(): Omit<CopyPlan, "top"> {
    return {
      parts: this.#parts,
      targets: [...this.#targets.keys()],
      untouched: this.#untouched,
      tookMs: this.#tookMs + (this.#index + 1) * partMs + this.#targets.size * linkMs,
    };
  }

  #add(leaf: Leaf, bytes: Buffer): void {
    leaf.bytes += bytes.length;
    if (leaf.bytes > copyLimits.htmlBytes) {
      this.#leaf = null;
      return this.#leave(leaf.index, "it has more than 8 MB");
    }
    // A copy: what the visitor is given is a view.
    if (bytes.length > 0) leaf.chunks.push(Buffer.from(bytes));
  }

  #indexOf(target: string): number {
    this.#links++;
    this.#octets += target.length;
    const known = this.#targets.get(target);
    if (known !== undefined) return known;
    const index = this.#targets.size;
    this.#targets.set(target, index);
    return index;
  }

  #leave(index: number, why: string): void {
    if (this.#untouched.length < 10) this.#untouched.push(`part ${index}: ${why}`);
  }

  #note({ index, encoding }: Leaf, html: Buffer, { links, pixel }: HtmlPlaces): void {
    if (pixel === null)
      this.#leave(
        index,
        "it breaks off, or cannot be read to its end: it has no pixel, and no tracked links behind that",
      );
    const lines = identityEncodings.has(encoding);
    const holes = links.map(({ start, end, target }): Hole => {
      return { start, end, link: this.#indexOf(target), line: lines ? lineOf(html, start, end) : null };
    });
    if (this.#wanted.opens && !this.#hasPixel && pixel !== null) {
      this.#hasPixel = true;
      const at = holes.findIndex(({ start }) => start >= pixel);
      const hole = { start: pixel, end: pixel, link: -1, line: lines ? lineOf(html, pixel, pixel) : null };
      holes.splice(at < 0 ? holes.length : at, 0, hole);
    }
    if (holes.length > 0) this.#parts.set(index, { encoding, holes });
  }
}

/** No line of a stored mail has more than 998 octets, so that both ends are near. */
function lineOf(html: Buffer, start: number, end: number): Hole["line"] {
  const lineStart = start === 0 ? 0 : html.lastIndexOf(10, start - 1) + 1;
  const lineEnd = html.indexOf(10, end);
  return { start: lineStart, length: (lineEnd < 0 ? html.length : lineEnd) - lineStart };
}

/** What stands within it is not this message's text, or covered by its encryption. */
function isClosed({ composite, contentType }: Part): boolean {
  const { value } = contentType;
  return composite && (value.startsWith("message/") || value === "multipart/encrypted");
}

function isShownHtml({ composite, signed, contentType, fields }: Part): boolean {
  if (composite || signed || contentType.value !== "text/html") return false;
  const disposition = fields.find(({ lower }) => lower === "content-disposition")?.value ?? "";
  return readStructured(disposition).value !== "attachment";
}

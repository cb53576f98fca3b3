// A recipient's copy of a tracked message: the stored message with the links and the pixel of the plan filled in. Octets
// of other parts stay; the parts that have them are encoded again, in the encoding that they had. Only where a line of
// 7bit or 8bit text would become longer than 998 octets (RFC 5322 §2.1.1) the part becomes quoted-printable.
import { Base64 } from "../mail/base64-stream.ts";
import { bodyDecoder } from "../mail/body-decoder.ts";
import { BodyOutput } from "../mail/body-output.ts";
import type { Source } from "../mail/conversion.ts";
import { withFields } from "../mail/header-convert.ts";
import { parseHeaderSection } from "../mail/header.ts";
import { MimeWalk, type MimeVisitor, type Part } from "../mail/mime-walk.ts";
import { piecesOf } from "../mail/pieces.ts";
import { QuotedPrintable } from "../mail/quoted-printable.ts";
import type { CopyPlan, Hole } from "./copy-plan.ts";

/** Printable ASCII without quotes, `<`, `>`, `&` and white space, so that a link fits into any attribute. */
export interface Fills {
  /** In the order of the plan's targets. */
  links: readonly string[];
  /** Empty where there is none. */
  pixel: string;
}

const longestLine = 998;
const nothing: Buffer = Buffer.alloc(0);
const quotedPrintable = { "Content-Transfer-Encoding": "quoted-printable" };

/** The markup that loads the pixel. */
export function pixelMarkup(url: string): string {
  return `<img src="${url}" width="1" height="1" alt="">`;
}

/** The message's own header section, which says how its body is encoded where that is HTML. */
export function copySection(section: Buffer, plan: CopyPlan, fills: Fills): Buffer {
  const part = plan.parts.get(0);
  if (!part || !isRequoted(part, fills)) return section;
  const hasVersion = parseHeaderSection(section).some(({ lower }) => lower === "mime-version");
  // Without it a reader may take no notice of an encoding (RFC 2045 §4).
  return withFields(section, hasVersion ? quotedPrintable : { "MIME-Version": "1.0", ...quotedPrintable });
}

/** The body of the copy, in chunks. The same plan and fills give the same octets each time. */
export async function* copyBody(
  mail: Pick<Source, "body">,
  plan: CopyPlan,
  fills: Fills,
): AsyncGenerator<Buffer> {
  const writer = new CopyWriter(plan, fills);
  const walk = new MimeWalk([...plan.top], writer);
  for await (const piece of piecesOf(mail.body())) {
    walk.push(piece);
    const written = writer.take();
    if (written.length > 0) yield written;
  }
  walk.end();
  writer.end();
  yield writer.take();
}

interface Coder {
  push(bytes: Buffer): Buffer;
  end(): Buffer;
}

class CopyWriter implements MimeVisitor {
  readonly #plan: CopyPlan;
  readonly #fills: Fills;
  #index = -1;
  /** What the part's octets go through, in this order; none: they stay. */
  #coders: Coder[] = [];
  readonly #out = new BodyOutput();

  constructor(plan: CopyPlan, fills: Fills) {
    this.#plan = plan;
    this.#fills = fills;
  }

  part({ section }: Part): void {
    this.#finish();
    this.#index++;
    const part = this.#plan.parts.get(this.#index);
    const requoted = part !== undefined && isRequoted(part, this.#fills);
    // The section of the message itself is empty here: copySection() writes that.
    this.#out.put(requoted && this.#index > 0 ? withFields(section, quotedPrintable) : section);
    if (!part) return;
    const encoder = requoted ? new QuotedPrintable() : encoderOf(part.encoding);
    this.#coders = [
      bodyDecoder(part.encoding),
      new Filler(part.holes, this.#fills),
      ...(encoder ? [encoder] : []),
    ];
  }

  content(bytes: Buffer): void {
    this.#out.put(this.#coders.reduce((some, coder) => coder.push(some), bytes));
  }

  frame(bytes: Buffer): void {
    this.#finish();
    this.#out.put(bytes);
  }

  end(): void {
    this.#finish();
    this.#out.end();
  }

  take(): Buffer {
    return this.#out.take();
  }

  #finish(): void {
    const coders = this.#coders;
    this.#coders = [];
    coders.forEach((coder, at) => {
      this.#out.put(coders.slice(at + 1).reduce((some, next) => next.push(some), coder.end()));
    });
  }
}

/** Puts the fills into the holes of a decoded part. */
class Filler implements Coder {
  readonly #holes: readonly Hole[];
  readonly #fills: Fills;
  #next = 0;
  /** Octets of the part that went by. */
  #at = 0;

  constructor(holes: readonly Hole[], fills: Fills) {
    this.#holes = holes;
    this.#fills = fills;
  }

  push(bytes: Buffer): Buffer {
    const from = this.#at;
    const end = from + bytes.length;
    this.#at = end;
    const out: Buffer[] = [];
    let kept = from;
    for (let hole = this.#holes[this.#next]; hole && hole.start < end; hole = this.#holes[this.#next]) {
      if (hole.start >= from) {
        out.push(bytes.subarray(kept - from, hole.start - from), this.#fill(hole));
      }
      kept = Math.min(end, hole.end);
      if (hole.end > end) break;
      this.#next++;
    }
    if (out.length === 0 && kept === from) return bytes;
    return Buffer.concat([...out, bytes.subarray(kept - from)]);
  }

  /** The pixel may stand at the very end. */
  end(): Buffer {
    const hole = this.#holes[this.#next];
    this.#next = this.#holes.length;
    return hole && hole.start >= this.#at ? this.#fill(hole) : nothing;
  }

  #fill(hole: Hole): Buffer {
    return Buffer.from(fillOf(hole, this.#fills), "latin1");
  }
}

function fillOf({ link }: Hole, { links, pixel }: Fills): string {
  return link < 0 ? pixel : (links[link] ?? "");
}

function encoderOf(encoding: string): Coder | null {
  if (encoding === "base64") return new Base64();
  return encoding === "quoted-printable" ? new QuotedPrintable() : null;
}

/** Whether a line that is sent as it is would become too long. A link that was written over a line end joins two lines. */
function isRequoted({ holes }: { holes: readonly Hole[] }, fills: Fills): boolean {
  let end = -1;
  let length = 0;
  for (const hole of holes) {
    if (hole.line === null) return false;
    const lineEnd = hole.line.start + hole.line.length;
    length = hole.line.start <= end ? length + lineEnd - end : hole.line.length;
    end = lineEnd;
    length += fillOf(hole, fills).length - (hole.end - hole.start);
    if (length > longestLine) return true;
  }
  return false;
}

// The text of a mail as the inside of a JSON string, in pieces: transfer encoding and charset undone, CRLF as \n, one
// part after the other with \n between them. Octets that are invalid in their charset are U+FFFD. What is buffered
// between two pieces is a character at most.
import { bodyDecoder, type BodyDecoder } from "./body-decoder.ts";
import type { TextPlace } from "./content-reader.ts";

const nothing: Buffer = Buffer.alloc(0);

/** Feed it the mail's octets from the first place's start to the last one's end; what lies between is passed over. */
export class ContentText {
  readonly #places: readonly TextPlace[];
  #index = 0;
  #part: PartText | null = null;
  #begun = false;

  constructor(places: readonly TextPlace[]) {
    this.#places = places;
  }

  /** `offset`: where in the mail the piece begins. Pieces come in order. */
  push(bytes: Buffer, offset: number): Buffer {
    const end = offset + bytes.length;
    let text = "";
    for (let place = this.#places[this.#index]; place && place.start < end;) {
      if (!this.#part) {
        if (this.#begun) text += "\n";
        this.#begun = true;
        this.#part = new PartText(place);
      }
      const piece = bytes.subarray(
        Math.max(0, place.start - offset),
        Math.min(bytes.length, place.end - offset),
      );
      text += this.#part.push(piece);
      if (place.end > end) break;
      text += this.#part.end();
      this.#part = null;
      place = this.#places[++this.#index];
    }
    return text === "" ? nothing : Buffer.from(JSON.stringify(text).slice(1, -1));
  }
}

/** One part of it. */
class PartText {
  readonly #body: BodyDecoder;
  readonly #charset: (bytes: Buffer, last: boolean) => string;
  /** A CR, or the first half of a character, whose rest has not come. */
  #held = "";

  constructor({ encoding, charset }: TextPlace) {
    this.#body = bodyDecoder(encoding);
    this.#charset = charsetDecoder(charset);
  }

  push(bytes: Buffer): string {
    return this.#text(this.#charset(this.#body.push(bytes), false), false);
  }

  end(): string {
    return this.#text(this.#charset(this.#body.end(), true), true);
  }

  #text(decoded: string, last: boolean): string {
    const text = this.#held + decoded;
    const keep = last || !endsOpen(text) ? text.length : text.length - 1;
    this.#held = text.slice(keep);
    return text.slice(0, keep).replaceAll("\r\n", "\n");
  }
}

function endsOpen(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last === 13 || (last >= 0xd800 && last <= 0xdbff);
}

/** UTF-8 where there is no charset; of one that is not known, what is ASCII. */
function charsetDecoder(charset: string): (bytes: Buffer, last: boolean) => string {
  try {
    const decoder = new TextDecoder(charset === "" ? "utf-8" : charset);
    return (bytes, last) => decoder.decode(bytes, { stream: !last });
  } catch {
    return (bytes) => bytes.toString("latin1").replace(/[^\t\r\n\x20-\x7e]/g, "\ufffd");
  }
}

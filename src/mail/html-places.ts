// Where an HTML document has links, and where a pixel may stand, as offsets of its own octets, so that nothing else of it
// is touched. It reads as the tokenizer of a browser does (WHATWG HTML §13.2.5), with what the tree decides about it: raw
// text of script, style, title and textarea, CDATA in SVG and MathML. A link is the href of an `a` or `area`. One pass;
// what it costs is linear in the octets, whatever they are. A mail is not a document of ours: where it is
// broken, less is found, never something that a browser would read otherwise.
import { decodeHTMLAttribute } from "entities/decode";
import { linkTarget, longestTarget } from "./link-target.ts";
import { structureOf, type Charset } from "./html-charset.ts";
import { OpenForeign } from "./html-foreign.ts";

export interface LinkPlace {
  /** Octets of the attribute's value, its quotes left out. */
  start: number;
  end: number;
  /** What a click leads to: printable ASCII. */
  target: string;
}

export interface HtmlPlaces {
  /** In the order of the document. */
  links: LinkPlace[];
  /**
   * Before `</body>`, else at the end; null: the document ends within a tag, an image or a formula, or in text that is not
   * shown, or is not read to its end.
   */
  pixel: number | null;
}

export interface WantedPlaces {
  links: boolean;
  /** Targets that are left alone. */
  except: ReadonlySet<string>;
  /** At most as many links, and as many octets of their targets. */
  mostLinks: number;
  mostOctets: number;
}

/** Octets that are read between two turns. */
const sliceOctets = 16_384;
/** More of them in one tag, or more marks in one script, and the rest of the document is not read. */
const mostAttributes = 1_000;
/** As many octets, but for quoted values that nothing is looked for in: an image may stand there as a `data:` URI. */
const mostTagOctets = 256 * 1024;
const mostMarks = 5_000;
/** A reference such as `&#x0068;` may be written for each character. */
const longestWritten = longestTarget * 8;

/** Elements whose text is raw, and what ends it. */
const rawText = new Map(
  ["title", "textarea", "style", "xmp", "iframe", "noembed", "noframes"].map((name) => [
    name,
    new RegExp(`</${name}(?=[\\t\\n\\f\\r />])`, "gi"),
  ]),
);
const upTo = `{0,${mostTagOctets}}`;
const tagName = new RegExp(`[^\\t\\n\\f\\r />]${upTo}`, "y");
const betweenAttributes = new RegExp(`[\\t\\n\\f\\r /]${upTo}`, "y");
const attributeName = new RegExp(`=?[^\\t\\n\\f\\r />=]${upTo}`, "y");
const equalsSign = new RegExp(`[\\t\\n\\f\\r ]${upTo}=[\\t\\n\\f\\r ]${upTo}`, "y");
const unquoted = new RegExp(`[^\\t\\n\\f\\r >]${upTo}`, "y");
const letter = /[a-z]/i;
const commentEnd = /--!?>/g;
/** `]]>`. V8 searches for a plain text otherwise, which takes 80 ms in 8 MB of brackets; this takes half. */
const cdataEnd = /\](?=\]>)/g;
const scriptMark = /<!--|-->|<\/?script(?=[\t\n\f\r />])/gi;

interface Span {
  start: number;
  end: number;
}

/** Yields between slices; the caller gives the loop a turn. */
export function* htmlPlaces(
  html: Buffer,
  charset: Charset,
  wanted: WantedPlaces,
): Generator<undefined, HtmlPlaces> {
  const text = yield* structureOf(html, charset);
  if (text === null) return { links: [], pixel: null };
  const scan = new HtmlScan(html, text, charset, wanted);
  for (let next = sliceOctets; scan.step();)
    if (scan.at >= next) {
      yield undefined;
      next = scan.at + sliceOctets;
    }
  return scan.places();
}

class HtmlScan {
  at = 0;
  readonly #html: Buffer;
  readonly #text: string;
  readonly #charset: Charset;
  readonly #wanted: WantedPlaces;
  readonly #foreign = new OpenForeign();
  readonly #links: LinkPlace[] = [];
  #octets = 0;
  #bodyEnd: number | null = null;
  /** The document ended where text is shown. */
  #ended = true;

  constructor(html: Buffer, text: string, charset: Charset, wanted: WantedPlaces) {
    this.#html = html;
    this.#text = text;
    this.#charset = charset;
    this.#wanted = wanted;
  }

  places(): HtmlPlaces {
    return {
      links: this.#links,
      pixel: this.#bodyEnd ?? (this.#ended && !this.#foreign.inside ? this.#lastText() : null),
    };
  }

  /** Behind the last octet that is not a line end. */
  #lastText(): number {
    let end = this.#html.length;
    while (end > 0 && (this.#html[end - 1] === 10 || this.#html[end - 1] === 13)) end--;
    return end;
  }

  /** Passes over text up to the next markup, and over that; false at the end. */
  step(): boolean {
    const open = this.#text.indexOf("<", this.at);
    if (open < 0) return false;
    const second = this.#text.charAt(open + 1);
    if (letter.test(second)) return this.#tag(open, open + 1, false);
    if (second === "/" && letter.test(this.#text.charAt(open + 2))) return this.#tag(open, open + 2, true);
    if (second === "!") return this.#declaration(open);
    // A bogus comment; any other `<` is text.
    if (second === "/" || second === "?") return this.#pass(this.#text.indexOf(">", open + 2), 1);
    this.at = open + 1;
    return true;
  }

  /** Goes on behind what was found; -1: the rest of the document is part of it. */
  #pass(found: number, length: number): boolean {
    if (found < 0) return this.#end();
    this.at = found + length;
    return true;
  }

  #end(): false {
    this.at = this.#text.length;
    this.#ended = false;
    return false;
  }

  #declaration(open: number): boolean {
    if (this.#text.startsWith("<!--", open)) return this.#comment(open);
    if (this.#text.startsWith("<![CDATA[", open)) {
      if (this.#foreign.atPoint) return this.#end();
      if (this.#foreign.inside) {
        cdataEnd.lastIndex = open + 9;
        return this.#pass(cdataEnd.exec(this.#text)?.index ?? -1, 3);
      }
    }
    return this.#pass(this.#text.indexOf(">", open + 2), 1);
  }

  /** `<!-->` and `<!--->` are whole; `--!>` ends one as `-->` does, but not with the dashes that began it. */
  #comment(open: number): boolean {
    commentEnd.lastIndex = open + 2;
    for (let end = commentEnd.exec(this.#text); end; end = commentEnd.exec(this.#text)) {
      if (end[0] === "-->" || end.index >= open + 4) return this.#pass(end.index, end[0].length);
      commentEnd.lastIndex = end.index + 1;
    }
    return this.#end();
  }

  /** Where what the pattern takes from there on ends. */
  #behind(pattern: RegExp, from: number): number {
    pattern.lastIndex = from;
    return pattern.test(this.#text) ? pattern.lastIndex : from;
  }

  #tag(open: number, from: number, closing: boolean): boolean {
    this.at = this.#behind(tagName, from);
    const name = this.at - from > 32 ? "" : this.#text.slice(from, this.at).toLowerCase();
    const link = (name === "a" || name === "area") && !closing;
    let href: Span | null = null;
    let track: Span | null = null;
    let selfClosing = false;
    // `font` is looked at as it is written.
    const passesQuoted = !link && name !== "font";
    let passed = 0;
    for (let attributes = 0; ; attributes++) {
      const behind = this.at;
      this.at = this.#behind(betweenAttributes, behind);
      const tooMuch = attributes > mostAttributes || this.at - open - passed > mostTagOctets;
      if (this.at >= this.#text.length || tooMuch) return this.#end();
      if (this.#text[this.at] === ">") {
        selfClosing = this.at > behind && this.#text[this.at - 1] === "/";
        break;
      }
      const start = this.at;
      const end = (this.at = this.#behind(attributeName, start));
      const value = this.#value();
      if (value === null) return this.#end();
      if (passesQuoted && this.at > value.end) passed += value.end - value.start;
      if (!link || end - start > 14) continue;
      const lower = this.#text.slice(start, end).toLowerCase();
      // Of an attribute that is given twice the first counts.
      if (lower === "href") href ??= value;
      else if (lower === "data-svc-track") track ??= value;
    }
    this.at += 1;
    if (link && href && !this.#isOff(track)) this.#link(href);
    if (closing && name === "body" && !this.#foreign.inside) this.#bodyEnd = open;
    if (closing) {
      this.#foreign.end(name);
      return true;
    }
    if (this.#foreign.start(name, () => this.#text.slice(open, this.at), selfClosing))
      return this.#foreign.known || this.#end();
    if (name === "script") return this.#script();
    if (name === "plaintext") return this.#end();
    const rawEnd = rawText.get(name);
    return rawEnd ? this.#raw(rawEnd) : true;
  }

  /** The attribute's value, empty where it has none; null: the document ends in it. */
  #value(): Span | null {
    const name = this.at;
    this.at = this.#behind(equalsSign, name);
    if (this.at === name) return { start: name, end: name };
    const quote = this.#text.charAt(this.at);
    const quoted = quote === '"' || quote === "'";
    const start = quoted ? this.at + 1 : this.at;
    const end = quoted ? this.#text.indexOf(quote, start) : this.#behind(unquoted, start);
    if (end < 0) return null;
    this.at = quoted ? end + 1 : end;
    return { start, end };
  }

  #isOff(track: Span | null): boolean {
    return track !== null && this.#text.slice(track.start, track.end).trim().toLowerCase() === "off";
  }

  #link({ start, end }: Span): void {
    const { links, except, mostLinks, mostOctets } = this.#wanted;
    if (!links || this.#links.length >= mostLinks || end - start > longestWritten) return;
    const written = this.#charset.decode(this.#html.subarray(start, end));
    const target = linkTarget(written.includes("&") ? decodeHTMLAttribute(written) : written);
    if (target === null || except.has(target) || this.#octets + target.length > mostOctets) return;
    this.#octets += target.length;
    this.#links.push({ start, end, target });
  }

  /** Text up to the element's own end tag. */
  #raw(end: RegExp): boolean {
    end.lastIndex = this.at;
    const found = end.exec(this.#text);
    return found ? this.#tag(found.index, found.index + 2, true) : this.#end();
  }

  /** A comment in a script may have a script of its own, whose end tag is not this one's (§13.2.5.15 to 32). */
  #script(): boolean {
    let depth: "script" | "escaped" | "double" = "script";
    scriptMark.lastIndex = this.at;
    for (let marks = 0; marks < mostMarks; marks++) {
      const mark = scriptMark.exec(this.#text);
      if (!mark) break;
      const [what] = mark;
      if (what === "<!--") {
        if (depth === "script") depth = "escaped";
        scriptMark.lastIndex = mark.index + 2; // its dashes may be those of `-->`
      } else if (what === "-->") depth = "script";
      else if (what.startsWith("</")) {
        if (depth !== "double") return this.#tag(mark.index, mark.index + 2, true);
        depth = "escaped";
      } else if (depth === "escaped") depth = "double";
    }
    return this.#end();
  }
}

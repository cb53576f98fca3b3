// The text part that is made from html when the sender gave none (decisions of the API: auto_text).
// One pass of a tokenizer over any string, however broken: tags end lines or vanish, references are
// decoded (entities: all of the HTML standard), links keep their address, `<pre>` keeps its white space. It need not be
// a browser; it must be readable and linear.
import { decodeHTML, decodeHTMLAttribute } from "entities/decode";

const skipped = new Set(["script", "style", "head", "title", "template", "noscript"]);
const paragraph = new Set("p h1 h2 h3 h4 h5 h6 ul ol table blockquote pre hr dl".split(" "));
const line = new Set(
  "div tr li br dt dd section article header footer address form fieldset center tbody thead".split(" "),
);

/** A reference with what may follow its name: in an attribute `&copy=` is none (HTML §13.2.5.73). */
const reference = /&(?:#(?:\d{1,10}|[xX][0-9a-fA-F]{1,8})|[a-zA-Z][a-zA-Z0-9]{1,32})[;=]?/g;
/** Longer than any reference: the longest name has 31 letters. */
const longestReference = 36;
/** What mails hide their padding with; no character of the text. */
const unseen = new Set(["&shy;", "&shy", "&zwnj;", "&zwj;"]);

/** Characters after which the written pieces are joined, and the longest text that is processed at once. */
const stepLength = 16_384;

/** Readable text of an html document, `\n` line ends, outside of `<pre>` no more than one empty line in a row. */
export function textFromHtml(html: string): string {
  const out = createWriter();
  /** How many `<pre>` are open; the line end just behind the tag is none of its text (HTML §13.1.2.5). */
  let pre = 0;
  let preBegins = false;
  let href = "";
  let linkStart = 0;
  let next = stepLength;
  for (const token of tokens(html)) {
    if (token.end > next) {
      next = token.end + stepLength;
      linkStart = out.compact(linkStart);
    }
    if (token.kind === "skipped") continue;
    if (token.kind === "text") {
      if (pre > 0) out.lines(decodeReferences(preBegins ? token.text.replace(/^\r?\n/, "") : token.text));
      else out.text(decodeReferences(token.text));
      preBegins = false;
      continue;
    }
    const { name, closing } = token;
    if (name === "pre") pre = Math.max(0, pre + (closing ? -1 : 1));
    preBegins = name === "pre" && !closing;
    if (name === "br" && pre > 0) {
      out.lines("\n");
      continue;
    }
    if (paragraph.has(name)) out.breaks(2);
    else if (line.has(name)) out.breaks(1, name === "br");
    else if (name === "td" || name === "th") out.text(" ");
    if (name === "hr") {
      out.text("---");
      out.breaks(2);
    }
    if (name === "li" && !closing) out.text("- ");
    if (name === "img" && !closing) out.text(attribute(token.attributes, altAttribute));
    if (name !== "a") continue;
    if (closing) {
      const target = href;
      href = "";
      if (target !== "" && !out.since(linkStart).includes(target)) out.text(` (${target})`);
    } else {
      const target = attribute(token.attributes, hrefAttribute).trim();
      href = /^(?:https?:|mailto:)/i.test(target) ? target.replace(/^mailto:/i, "") : "";
      linkStart = out.length();
    }
  }
  return out.done();
}

/** `end`: the index behind it. `skipped`: nothing to read, but as long to pass over as what is read. */
type Token = { end: number } & (
  | { kind: "text"; text: string }
  | { kind: "tag"; name: string; closing: boolean; attributes: string }
  | { kind: "skipped" }
);

/** Text and tags in order; comments, and elements without readable content, are skipped. */
function* tokens(html: string): Generator<Token> {
  const markup = /<[a-zA-Z/!?]/g;
  let at = 0;
  while (at < html.length) {
    markup.lastIndex = at;
    const open = markup.exec(html)?.index ?? html.length;
    while (open > at) {
      const end = endOfPiece(html, at, open);
      yield { kind: "text", text: html.slice(at, end), end };
      at = end;
    }
    if (open === html.length) return;
    if (html.startsWith("<!--", open)) {
      at = behind(html, "-->", open + 4);
      yield { kind: "skipped", end: at };
      continue;
    }
    const end = behind(html, ">", open);
    const match = /^<(\/?)([a-zA-Z][a-zA-Z0-9]{0,20})/.exec(html.slice(open, open + 24));
    at = end;
    if (match === null) {
      yield { kind: "skipped", end: at };
      continue;
    }
    const name = (match[2] ?? "").toLowerCase();
    const closing = match[1] === "/";
    if (skipped.has(name) && !closing) at = yield* behindElement(html, name, end);
    else yield { kind: "tag", name, closing, attributes: html.slice(open + match[0].length, end - 1), end };
  }
}

/** No reference is divided, since it is shorter than what is looked back for its `&`, and no CRLF. */
function endOfPiece(html: string, at: number, open: number): number {
  const end = at + stepLength;
  if (end >= open) return open;
  const from = end - longestReference;
  const ampersand = html.slice(from, end).lastIndexOf("&");
  if (ampersand >= 0) return from + ampersand;
  return html[end - 1] === "\r" ? end - 1 : end;
}

/** Index behind `mark`; the end of the text where it never comes (so no second search for it follows). */
function behind(html: string, mark: string, from: number): number {
  const found = html.indexOf(mark, from);
  return found < 0 ? html.length : found + mark.length;
}

/** Index of the closing tag of an element whose content is not shown. */
function* behindElement(html: string, name: string, from: number): Generator<Token, number> {
  let end = html.length;
  for (let at = html.indexOf("</", from); at >= 0; at = html.indexOf("</", at + 2)) {
    if (html.slice(at + 2, at + 2 + name.length).toLowerCase() === name) {
      end = behind(html, ">", at);
      break;
    }
    yield { kind: "skipped", end: at };
  }
  yield { kind: "skipped", end };
  return end;
}

const hrefAttribute = /(?:^|\s)href\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i;
const altAttribute = /(?:^|\s)alt\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i;

function attribute(attributes: string, pattern: RegExp): string {
  const match = pattern.exec(attributes.slice(0, 4_096));
  return decodeReferences(match?.[1] ?? match?.[2] ?? match?.[3] ?? "", decodeHTMLAttribute);
}

/** Controls other than tab and line end, and noncharacters, become a space. */
function decodeReferences(text: string, decode: (reference: string) => string = decodeHTML): string {
  if (!text.includes("&")) return text;
  return text.replace(reference, (whole) => {
    if (unseen.has(whole)) return "";
    const decoded = decode(whole);
    return /^(?![\t\n])[\p{Cc}\ufffd]/u.test(decoded) ? ` ${decoded.slice(1)}` : decoded;
  });
}

/** Collects words: white space is one space, breaks are line ends, at most one empty line; lines keep all of theirs. */
function createWriter() {
  const pieces: string[] = [];
  /** How many of them compact() has made. */
  let compacted = 0;
  let breaks = 0;
  let space = false;
  const put = (piece: string): void => {
    if (pieces.length > 0 && breaks > 0) pieces.push("\n".repeat(breaks));
    else if (pieces.length > 0 && space) pieces.push(" ");
    breaks = 0;
    space = false;
    pieces.push(piece);
  };
  return {
    text(text: string): void {
      const words = text.replace(/[ \t\r\n\f\u00a0]+/g, " ");
      const bare = words.trim();
      if (words.startsWith(" ")) space = true;
      if (bare === "") return;
      put(bare);
      space = words.endsWith(" ");
    },
    /** Preformatted text. Line ends at its end are kept back: where it is over, the break that follows has them. */
    lines(text: string): void {
      const kept = text.replace(/\r\n?/g, "\n").replaceAll("\u00a0", " ");
      let end = kept.length;
      while (end > 0 && kept[end - 1] === "\n") end--;
      if (end > 0) put(kept.slice(0, end));
      breaks += kept.length - end;
    },
    /** Asks for line ends; `more` adds to those asked for, else the greater number counts. */
    breaks(count: number, more = false): void {
      breaks = Math.min(2, more ? breaks + count : Math.max(breaks, count));
    },
    length: (): number => pieces.length,
    /** Puts what came since the last time together, so that millions of words are few pieces; answers where `mark` is now. */
    compact(mark: number): number {
      const late = pieces.splice(Math.max(mark, compacted));
      const early = pieces.splice(compacted);
      if (early.length > 0) pieces.push(early.join(""));
      const moved = Math.min(mark, pieces.length);
      if (late.length > 0) pieces.push(late.join(""));
      compacted = pieces.length;
      return moved;
    },
    since: (from: number): string => pieces.slice(from).join(""),
    done: (): string => (pieces.length === 0 ? "" : `${pieces.join("")}\n`),
  };
}

// The text part that is made from html when the sender gave none (decisions of the API: auto_text).
// One pass of a tokenizer over any string, however broken: tags end lines or vanish, references are
// decoded, links keep their address. It need not be a browser; it must be readable and linear.

/** The named references that mails have, each followed by its character. */
const names = (
  "amp & lt < gt > quot \" apos ' copy © reg ® trade ™ euro € pound £ yen ¥ cent ¢ sect § deg ° middot · bull • " +
  "hellip … ndash – mdash — lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ laquo « raquo » times × divide ÷ " +
  "plusmn ± frac12 ½ frac14 ¼ auml ä ouml ö uuml ü Auml Ä Ouml Ö Uuml Ü szlig ß agrave à aacute á acirc â " +
  "atilde ã aring å aelig æ ccedil ç egrave è eacute é ecirc ê euml ë igrave ì iacute í icirc î iuml ï ntilde ñ " +
  "ograve ò oacute ó ocirc ô otilde õ oslash ø ugrave ù uacute ú ucirc û Agrave À Aring Å Ccedil Ç Egrave È Eacute É"
).split(" ");
const entities = new Map<string, string>([
  ["nbsp", " "],
  ["shy", ""],
  ["zwnj", ""],
  ["zwj", ""],
]);
for (let i = 0; i < names.length; i += 2) entities.set(names[i] ?? "", names[i + 1] ?? "");

const skipped = new Set(["script", "style", "head", "title", "template", "noscript"]);
const paragraph = new Set("p h1 h2 h3 h4 h5 h6 ul ol table blockquote pre hr dl".split(" "));
const line = new Set(
  "div tr li br dt dd section article header footer address form fieldset center tbody thead".split(" "),
);

/** Characters after which what was written is put together, and of the longest text that is looked at as one. */
const stepLength = 16_384;

/** Readable text of an html document, `\n` line ends, no more than one empty line in a row. */
export function textFromHtml(html: string): string {
  const out = createWriter();
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
      out.text(decodeReferences(token.text));
      continue;
    }
    const { name, closing } = token;
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

/** No reference is divided: it is shorter than what is looked back for its `&`. */
function endOfPiece(html: string, at: number, open: number): number {
  const end = at + stepLength;
  if (end >= open) return open;
  const reference = html.slice(end - 12, end).lastIndexOf("&");
  return reference < 0 ? end : end - 12 + reference;
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
  return decodeReferences(match?.[1] ?? match?.[2] ?? match?.[3] ?? "");
}

function decodeReferences(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]{1,8}));/g,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return entities.get(String(name)) ?? whole;
      const code = decimal === undefined ? parseInt(String(hex), 16) : Number(decimal);
      const isCharacter = code >= 32 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
      return isCharacter ? String.fromCodePoint(code) : " ";
    },
  );
}

/** Collects words: white space is one space, breaks are line ends, at most one empty line. */
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
    /** Asks for line ends; `more` adds to those asked for, else the greater number holds. */
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

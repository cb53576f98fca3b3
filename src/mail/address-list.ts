// Address lists of header fields (RFC 5322 §3.4): what the senders of mail programs write, with
// comments, groups, quoted and encoded names. One pass; address.ts parses each addr-spec.
import { parseAddress, type Mailbox, type Parsed } from "./address.ts";
import { decodeWords } from "./encoded-word.ts";

const maxMailboxes = 1_000;
const maxCommentDepth = 20;

/** The mailboxes of a From, To, Cc or Reply-To value, unfolded; a group gives its members. */
export function parseAddressList(value: string): Parsed<Mailbox[]> {
  const mailboxes: Mailbox[] = [];
  for (const item of splitList(value)) {
    if (item === null) return { ok: false, issue: "has an unclosed quote, comment or bracket" };
    if (item.words === "" && item.spec === null) continue;
    if (mailboxes.length >= maxMailboxes) return { ok: false, issue: "has more than 1,000 addresses" };
    const address = parseAddress(item.spec ?? item.words);
    if (!address.ok) return { ok: false, issue: `has an address that ${address.issue}` };
    const name = item.spec === null ? "" : decodeWords(nameText(item.words));
    mailboxes.push({ name: name === "" ? null : name, address: address.value });
  }
  return { ok: true, value: mailboxes };
}

/** What stands between two commas: the words, comments left out, and the content of `<…>`. */
interface Item {
  words: string;
  spec: string | null;
}

/** Yields the items of the list, and null (once, last) where something never closes. */
function* splitList(value: string): Generator<Item | null> {
  let words = "";
  let spec: string | null = null;
  for (let i = 0; i < value.length; i++) {
    const char = value.charAt(i);
    const end = char === '"' ? endOfQuote(value, i) : char === "(" ? endOfComment(value, i) : i;
    if (end < 0) return yield null;
    if (char === '"') words += value.slice(i, end + 1);
    else if (char === "(") words += " ";
    else if (char === "<") {
      const close = endOfAngle(value, i);
      // A second `<…>` in one item would hide the first.
      if (close < 0 || spec !== null) return yield null;
      spec = value.slice(i + 1, close).trim();
      i = close;
      continue;
    } else if (char === "," || char === ";") {
      yield { words: words.trim(), spec };
      words = "";
      spec = null;
    } else if (char === ":") words = "";
    else words += char;
    i = end;
  }
  yield { words: words.trim(), spec };
}

function endOfQuote(value: string, start: number): number {
  for (let i = start + 1; i < value.length; i++) {
    if (value[i] === "\\") i++;
    else if (value[i] === '"') return i;
  }
  return -1;
}

function endOfComment(value: string, start: number): number {
  let depth = 0;
  for (let i = start; i < value.length; i++) {
    if (value[i] === "\\") i++;
    else if (value[i] === "(" && ++depth > maxCommentDepth) return -1;
    else if (value[i] === ")" && --depth === 0) return i;
  }
  return -1;
}

/** The closing bracket; one inside a quoted local part is text. */
function endOfAngle(value: string, start: number): number {
  for (let i = start + 1; i < value.length; i++) {
    if (value[i] === '"') {
      i = endOfQuote(value, i);
      if (i < 0) return -1;
    } else if (value[i] === ">") return i;
  }
  return -1;
}

/** The words of a phrase without their quotes (RFC 5322 §3.2.4, §3.2.5). */
function nameText(words: string): string {
  return words
    .replace(/"((?:[^"\\]|\\.)*)"/gs, (_, inner: string) => inner.replace(/\\(.)/gs, "$1"))
    .replace(/[ \t]+/g, " ")
    .trim();
}

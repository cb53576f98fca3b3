// Structured fields of MIME: a value and its parameters (RFC 2045 §5.1), with the continuations and charsets
// of RFC 2231. Read as liberally as mail programs do, because what they would find is what counts; every
// parameter is reported, also one that is given twice. One pass, no backtracking.
import { decodeCharset } from "./encoded-word.ts";

export interface Structured {
  /** Lower case, without white space and comments: `text/plain`, `attachment`, `base64`. */
  value: string;
  /** Names in lower case; the pieces of RFC 2231 put together and decoded. */
  parameters: [name: string, value: string][];
}

export function readStructured(text: string): Structured {
  const [head = "", ...rest] = splitParts(text);
  const plain: [string, string][] = [];
  const pieces = new Map<string, Piece[]>();
  for (const part of rest) {
    const equals = part.indexOf("=");
    if (equals < 0) continue;
    const name = part.slice(0, equals).trim().toLowerCase();
    const value = unquoted(part.slice(equals + 1).trim());
    const star = name.indexOf("*");
    if (star < 0) plain.push([name, value]);
    else {
      const base = name.slice(0, star);
      const list = pieces.get(base) ?? [];
      list.push(pieceOf(name.slice(star + 1), value));
      pieces.set(base, list);
    }
  }
  for (const [name, list] of pieces) plain.push([name, joined(list)]);
  return { value: head.replace(/\s+/g, "").toLowerCase(), parameters: plain };
}

/** The first parameter of that name. */
export function parameterOf(field: Structured, name: string): string | null {
  return field.parameters.find(([key]) => key === name)?.[1] ?? null;
}

/** At the semicolons that stand in no quoted string and no comment; comments are left out. */
function splitParts(text: string): string[] {
  const parts: string[] = [];
  let part = "";
  let quoted = false;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text.charAt(i);
    if (char === "\\" && (quoted || depth > 0)) {
      if (depth === 0) part += char + text.charAt(i + 1);
      i++;
    } else if (depth > 0) depth += char === "(" ? 1 : char === ")" ? -1 : 0;
    else if (char === '"') {
      quoted = !quoted;
      part += char;
    } else if (quoted) part += char;
    else if (char === "(") depth = 1;
    else if (char === ";") {
      parts.push(part);
      part = "";
    } else part += char;
  }
  parts.push(part);
  return parts;
}

function unquoted(value: string): string {
  return value.includes('"') ? value.replace(/\\(.)|"/gs, "$1") : value;
}

interface Piece {
  index: number;
  /** The value has %XX; the first piece also its charset. */
  encoded: boolean;
  value: string;
}

/** `0*`, `1`, or empty for `filename*=`. */
function pieceOf(suffix: string, value: string): Piece {
  const encoded = suffix === "" || suffix.endsWith("*");
  const index = Number.parseInt(suffix, 10);
  return { index: Number.isNaN(index) ? 0 : index, encoded, value };
}

/** RFC 2231 §3, §4.1. */
function joined(pieces: Piece[]): string {
  const sorted = pieces.toSorted((a, b) => a.index - b.index);
  const [first] = sorted;
  const [, charset = "utf-8", start] = (first?.encoded && /^([^']*)'[^']*'(.*)$/s.exec(first.value)) || [];
  const bytes = sorted.map(({ encoded, value }, i) => {
    const text = i === 0 && start !== undefined ? start : value;
    return encoded ? percentDecoded(text) : Buffer.from(text, "utf8");
  });
  return decodeCharset(charset === "" ? "utf-8" : charset, Buffer.concat(bytes));
}

function percentDecoded(text: string): Buffer {
  const utf8 = Buffer.from(text, "utf8").toString("latin1");
  return Buffer.from(
    utf8.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  );
}

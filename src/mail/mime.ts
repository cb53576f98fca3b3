// A mail as a tree of parts (RFC 2045, RFC 2046), read by a walk that never throws and whose work is bounded: it
// reads mail of unknown origin, which may be malformed on purpose. Line ends may be CRLF, LF or CR; a line that is not a
// field does not end the header; an unclosed boundary extends to the end. dsn.ts and arf.ts interpret the parts.
import { decodeWords } from "./encoded-word.ts";

export interface MimeField {
  lower: string;
  /** Unfolded and trimmed, octets as Latin-1. */
  value: string;
}

export interface MimePart {
  /** Lower case, without parameters; `text/plain` where none is given. */
  type: string;
  parameters: ReadonlyMap<string, string>;
  fields: MimeField[];
  /** Transfer encoding undone, octets as Latin-1, line ends LF; empty for a multipart. */
  body: string;
  parts: MimePart[];
}

const maxBytes = 2 * 1024 * 1024;
const maxDepth = 8;
const maxParts = 100;
const maxFields = 1_000;
const maxFieldLength = 20_000;
const maxHeaderLength = 200_000;

/** The tree of a mail. At most 2 MB, 100 parts and 8 levels, and 200 KB of each header are read. */
export function readMime(bytes: Uint8Array): MimePart {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, maxBytes));
  const text = source.toString("latin1").replace(/\r\n?/g, "\n");
  // An mbox line that some gateways leave on top (RFC 4155).
  return readPart(text.replace(/^(?:>?From [^\n]*\n)+/, "").replace(/^\n+/, ""), 0, { left: maxParts });
}

/** Splits a header section off: up to the first empty line, or to the end. */
export function readFields(text: string): { fields: MimeField[]; rest: string } {
  const end = text.startsWith("\n") ? 0 : text.indexOf("\n\n") + 1;
  const head = end > 0 || text.startsWith("\n") ? text.slice(0, end) : text;
  const fields: MimeField[] = [];
  /** Of the last field; joined once it is whole: a value that grew by each folded line would be copied for each. */
  let pieces: string[] = [];
  let length = 0;
  const add = (piece: string): void => {
    length += piece.length + (pieces.length > 0 ? 1 : 0);
    pieces.push(piece);
  };
  const close = (): void => {
    const last = fields.at(-1);
    if (last) last.value = pieces.join(" ");
  };
  for (const line of head.slice(0, maxHeaderLength).split("\n")) {
    if (line.startsWith(" ") || line.startsWith("\t")) {
      const piece = fields.length > 0 && length < maxFieldLength ? line.trim() : "";
      if (piece !== "") add(piece);
      continue;
    }
    // A parameter on a line of its own that was not folded.
    if (pieces.at(-1)?.endsWith(";") && /^[a-z-]+=/i.test(line)) {
      add(line.trimEnd());
      continue;
    }
    const colon = line.indexOf(":");
    if (colon < 1 || fields.length >= maxFields) continue;
    const lower = line.slice(0, colon).trimEnd().toLowerCase();
    if (!/^[!-9;-~]+$/.test(lower)) continue;
    close();
    fields.push({ lower, value: "" });
    pieces = [];
    length = 0;
    const value = line.slice(colon + 1, colon + maxFieldLength).trim();
    if (value !== "") add(value);
  }
  close();
  return { fields, rest: head === text ? "" : text.slice(end + 1) };
}

/** Value of the first field of that name (lower case), as it stands; empty where there is none. */
export function fieldOf(fields: readonly MimeField[], name: string): string {
  return fields.find(({ lower }) => lower === name)?.value ?? "";
}

/** The same as text: UTF-8 and encoded words (RFC 2047) read. */
export function fieldText(fields: readonly MimeField[], name: string): string {
  return decodeWords(utf8(fieldOf(fields, name)));
}

/** The part's body as Unicode text, by its charset; UTF-8 or Latin-1 where that is unknown. */
export function textOf(part: MimePart): string {
  const charset = part.parameters.get("charset")?.toLowerCase() ?? "";
  if (charset !== "" && charset !== "us-ascii" && charset !== "utf-8") {
    try {
      return new TextDecoder(charset).decode(Buffer.from(part.body, "latin1"));
    } catch {
      // an unknown name
    }
  }
  return utf8(part.body);
}

/** Every part, the root first, depth first; what is inside a returned message is not entered. */
export function allParts(root: MimePart): MimePart[] {
  return [root, ...root.parts.flatMap(allParts)];
}

function utf8(latin1: string): string {
  const bytes = Buffer.from(latin1, "latin1");
  const text = bytes.toString("utf8");
  return text.includes("\ufffd") ? latin1 : text;
}

function readPart(text: string, depth: number, budget: { left: number }): MimePart {
  budget.left -= 1;
  const { fields, rest } = readFields(text);
  const { type, parameters } = readContentType(fieldOf(fields, "content-type"));
  const part: MimePart = { type, parameters, fields, body: "", parts: [] };
  const boundary = parameters.get("boundary");
  if (type.startsWith("multipart/") && boundary !== undefined && boundary !== "" && depth < maxDepth) {
    part.parts = splitParts(rest, boundary, budget.left).map((piece) => readPart(piece, depth + 1, budget));
    if (part.parts.length > 0) return part;
  }
  part.body = decodeBody(rest, fieldOf(fields, "content-transfer-encoding").toLowerCase());
  return part;
}

/** RFC 2046 §5.1.1: what stands between the delimiter lines; preamble and epilogue are left out. */
function splitParts(text: string, boundary: string, limit: number): string[] {
  const pieces: string[] = [];
  const delimiter = `--${boundary}`;
  let start = -1;
  for (let at = text.startsWith(delimiter) ? 0 : text.indexOf(`\n${delimiter}`) + 1; ;) {
    const found = at === 0 ? text.startsWith(delimiter) : at > 0;
    if (!found || pieces.length >= limit) break;
    const lineEnd = text.indexOf("\n", at);
    const line = text.slice(at + delimiter.length, lineEnd < 0 ? undefined : lineEnd).trim();
    if (line === "" || line === "--") {
      if (start >= 0) pieces.push(text.slice(start, Math.max(start, at - 1)));
      start = line === "--" ? -2 : lineEnd + 1;
      if (start === -2 || lineEnd < 0) break;
    }
    at = text.indexOf(`\n${delimiter}`, at) + 1;
    if (at === 0) break;
  }
  if (start >= 0 && pieces.length < limit) pieces.push(text.slice(start));
  return pieces;
}

function decodeBody(text: string, encoding: string): string {
  if (encoding === "base64") {
    const decoded = Buffer.from(text, "base64").toString("latin1");
    return decoded.replace(/\r\n?/g, "\n");
  }
  if (encoding !== "quoted-printable") return text;
  const bytes = Buffer.from(text, "latin1");
  return unquoted(withoutSoftBreaks(bytes)).toString("latin1").replace(/\r\n?/g, "\n");
}

/**
 * RFC 2045 §6.7 (3), (5): white space at the end of a line does not count, and `=` there is no line end. In place: a string
 * that grew by each of two million empty lines would take a hundred megabytes.
 */
function withoutSoftBreaks(bytes: Buffer): Buffer {
  let to = 0;
  let lineStart = 0;
  for (let at = 0; at <= bytes.length; at++) {
    const byte = bytes[at];
    if (byte !== undefined && byte !== lineFeed) {
      bytes[to++] = byte;
      continue;
    }
    while (to > lineStart && (bytes[to - 1] === space || bytes[to - 1] === tab)) to--;
    if (byte === lineFeed && to > lineStart && bytes[to - 1] === equals) to--;
    else if (byte === lineFeed) bytes[to++] = byte;
    lineStart = to;
  }
  return bytes.subarray(0, to);
}

/** In place, octet by octet: a call for each of a hundred thousand escapes takes ten milliseconds. */
function unquoted(bytes: Buffer): Buffer {
  let to = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    const high = byte === equals ? hexValue(bytes[at + 1]) : -1;
    const low = high < 0 ? -1 : hexValue(bytes[at + 2]);
    if (low >= 0) at += 2;
    bytes[to++] = low >= 0 ? high * 16 + low : byte;
  }
  return bytes.subarray(0, to);
}

const tab = 0x09;
const lineFeed = 0x0a;
const space = 0x20;
const equals = 0x3d;

/** Of a digit 0–9, A–F, a–f; else -1. */
function hexValue(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

const parameter = /;\s*([a-z0-9_*-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))/gi;

function readContentType(value: string): { type: string; parameters: Map<string, string> } {
  const type = /^\s*([\w.+-]+\/[\w.+-]+)/.exec(value)?.[1]?.toLowerCase() ?? "text/plain";
  const parameters = new Map<string, string>();
  for (const match of value.slice(0, 2_000).matchAll(parameter)) {
    const name = (match[1] ?? "").toLowerCase();
    if (!parameters.has(name)) parameters.set(name, match[2]?.replace(/\\(.)/g, "$1") ?? match[3] ?? "");
  }
  return { type, parameters };
}

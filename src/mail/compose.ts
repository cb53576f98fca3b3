// The finished message, as it is stored, signed and sent: header fields each exactly once, Bcc
// never, and a MIME tree of alternative (RFC 2046 §5.1.4) within related (RFC 2387) within mixed,
// only as deep as the content asks for. The body hash is taken in the same pass.
// Texts and encodings are header-write.ts and transfer.ts; what a caller may ask for is checked by submission.
import { hash } from "node:crypto";
import { detectMimeType } from "nodemailer/lib/mime-funcs";
import type { Mailbox } from "./address.ts";
import { readContentType } from "./attachments.ts";
import { BodyHasher } from "./body-hash.ts";
import {
  addressField,
  customField,
  headerFits,
  needsUtf8Header,
  parameterField,
  reservedHeader,
  textField,
} from "./header-write.ts";
import { mailDate } from "./trace.ts";
import { base64Lines, encodeText, isSevenBit } from "./transfer.ts";

export { headerFits, reservedHeader } from "./header-write.ts";
export { textFromHtml } from "./html-text.ts";

export interface ComposeAttachment {
  filename: string;
  contentType: string;
  /** Without angle brackets; the html names it as `cid:…`. */
  contentId: string | null;
  disposition: "attachment" | "inline";
  bytes: Buffer;
}

export interface ComposeInput {
  from: Mailbox;
  replyTo: Mailbox[];
  to: Mailbox[];
  cc: Mailbox[];
  subject: string;
  text: string | null;
  html: string | null;
  /** In this order; each must pass headerFits and not reservedHeader. */
  headers: [string, string][];
  attachments: ComposeAttachment[];
  /** Of a report for a program to read (RFC 6522): text and attachments are then multipart/report of this type. */
  reportType?: string;
  /** With its angle brackets. */
  messageId: string;
  /** Milliseconds since 1970-01-01 UTC. */
  date: number;
  /** The same seed gives the same boundaries, so that one input composes to the same bytes each time. */
  boundarySeed: string;
}

export interface Composed {
  /** The message with CRLF line ends; one chunk where it is small. */
  chunks: Buffer[];
  /** Bytes of the header section, its empty line included. */
  headerLength: number;
  sizeBytes: number;
  /** SHA-256 of the relaxed body, 32 bytes. */
  bodyHash: Buffer;
  /** An address in the header has a local part that is not ASCII: the header is UTF-8 (RFC 6532). */
  smtpUtf8: boolean;
}

/** A node of the MIME tree: its Content-* fields, and content without a CRLF of its own at the end. */
interface Part {
  head: string;
  body: (string | Buffer)[];
}

/** Composes the message. Throws only for a header that the caller let pass though it does not fit. */
export function composeMessage(input: ComposeInput): Composed {
  const smtpUtf8 = [input.from, ...input.replyTo, ...input.to, ...input.cc].some((box) =>
    needsUtf8Header([box]),
  );
  const content = contentTree(input);
  const header = `${headerFields(input)}MIME-Version: 1.0\r\n${content.head}\r\n`;
  const last = content.body.at(-1);
  const open =
    last === undefined ||
    last.length === 0 ||
    last[last.length - 1] !== (typeof last === "string" ? "\n" : 10);
  const encoding = smtpUtf8 ? "utf8" : "latin1";
  const chunks = join([Buffer.from(header, encoding), ...content.body, open ? "\r\n" : ""]);
  const headerLength = Buffer.byteLength(header, encoding);
  const hasher = new BodyHasher();
  chunks.forEach((chunk, i) => hasher.update(i === 0 ? chunk.subarray(headerLength) : chunk));
  const sizeBytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  return { chunks, headerLength, sizeBytes, bodyHash: hasher.digest(), smtpUtf8 };
}

function headerFields(input: ComposeInput): string {
  if (!/^<[!-;=?-~]{3,250}>$/.test(input.messageId)) throw new Error("the Message-ID is none");
  let text = addressField("From", [input.from]);
  text += addressField("To", input.to);
  if (input.cc.length > 0) text += addressField("Cc", input.cc);
  if (input.replyTo.length > 0) text += addressField("Reply-To", input.replyTo);
  text += textField("Subject", input.subject);
  text += `Message-ID: ${input.messageId}\r\nDate: ${mailDate(input.date)}\r\n`;
  for (const [name, value] of input.headers) {
    if (reservedHeader(name) || !headerFits(name, value))
      throw new Error(`header ${JSON.stringify(name)} must not be set`);
    text += customField(name, value);
  }
  return text;
}

function contentTree(input: ComposeInput): Part {
  const boundaries = boundarySource(input.boundarySeed);
  const related = input.html === null ? [] : input.attachments.filter((a) => a.contentId !== null);
  const mixed = input.attachments.filter((a) => !related.includes(a));
  const texts: Part[] = [];
  if (input.text !== null || input.html === null) texts.push(textPart("plain", input.text ?? ""));
  if (input.html !== null) {
    const html = textPart("html", input.html);
    const parts = [html, ...related.map(attachmentPart)];
    texts.push(related.length === 0 ? html : multipart('related; type="text/html"', boundaries(), parts));
  }
  const [only = textPart("plain", "")] = texts;
  const body = texts.length === 1 ? only : multipart("alternative", boundaries(), texts);
  const kind = input.reportType === undefined ? "mixed" : `report; report-type="${input.reportType}"`;
  return mixed.length === 0 ? body : multipart(kind, boundaries(), [body, ...mixed.map(attachmentPart)]);
}

/** `=_` is neither in quoted-printable nor in base64, so no encoded part can contain a boundary (RFC 2045 §6.7). */
function boundarySource(seed: string): () => string {
  let made = 0;
  let stem = "";
  return () => {
    stem ||= hash("sha256", seed, "hex").slice(0, 32);
    return `=_${stem}_${++made}`;
  };
}

function textPart(subtype: "plain" | "html", text: string): Part {
  const { encoding, bytes } = encodeText(text);
  const type = `Content-Type: text/${subtype}; charset=utf-8\r\n`;
  return { head: `${type}Content-Transfer-Encoding: ${encoding}\r\n`, body: bytes };
}

function attachmentPart(a: ComposeAttachment): Part {
  const asked = readContentType(a.contentType) ?? detectMimeType(a.filename);
  // RFC 2046 §5.2.1: a message is never base64; one that cannot go as it is goes as a file.
  const whole = asked.startsWith("message/") && isSevenBit(a.bytes);
  const type = asked.startsWith("message/") && !whole ? "application/octet-stream" : asked;
  const head = [
    customField("Content-Type", type),
    `Content-Transfer-Encoding: ${whole ? "7bit" : "base64"}\r\n`,
    parameterField("Content-Disposition", a.disposition, "filename", a.filename),
    a.contentId === null ? "" : `Content-ID: <${contentIdText(a.contentId)}>\r\n`,
  ];
  return { head: head.join(""), body: [whole ? a.bytes : base64Lines(a.bytes)] };
}

/** What an msg-id cannot contain is percent-encoded, as a cid: URL has it (RFC 2392 §2). */
function contentIdText(id: string): string {
  const bare = id.toWellFormed().replace(/^<|>$/g, "");
  return bare.replace(/[^\w!#$&'*+\-/=?^`{|}~.@%]/gu, (char) => encodeURIComponent(char)).slice(0, 900);
}

function multipart(kind: string, boundary: string, parts: Part[]): Part {
  const body: (string | Buffer)[] = [];
  parts.forEach((part, i) => {
    body.push(`${i === 0 ? "" : "\r\n"}--${boundary}\r\n${part.head}\r\n`, ...part.body);
  });
  body.push(`\r\n--${boundary}--`);
  return { head: `Content-Type: multipart/${kind};\r\n boundary="${boundary}"\r\n`, body };
}

const largePiece = 65_536;

/** Small neighbours become one buffer; a large one is passed on without a copy. */
function join(pieces: (string | Buffer)[]): Buffer[] {
  const chunks: Buffer[] = [];
  let small: (string | Buffer)[] = [];
  const release = (): void => {
    if (small.length === 0) return;
    const chunk = Buffer.allocUnsafe(small.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of small)
      at += typeof piece === "string" ? chunk.write(piece, at, "latin1") : piece.copy(chunk, at);
    chunks.push(chunk);
    small = [];
  };
  for (const piece of pieces) {
    if (typeof piece !== "string" && piece.length >= largePiece) {
      release();
      chunks.push(piece);
    } else small.push(piece);
  }
  release();
  return chunks;
}

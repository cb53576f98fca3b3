// Reading a request's JSON body: the headers that announce it, its bytes up to a cap, its text. Bytes
// past the cap are discarded. The raw bytes stay: the idempotency fingerprint is made of them.
import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Refusal } from "../errors.ts";
import { bodyMemoryRule, type BodyReservation } from "./body-memory.ts";

/** The base64 of a message of 26,214,400 bytes, its line ends as JSON escapes them, and room for the rest. */
export const maxBodyBytes = 36 * 1024 * 1024;

const largePiece = 64 * 1024;

/** The client went away in the middle of its request; no answer can be sent. */
export class ClientGone extends Error {}

export function hasBody(req: IncomingMessage): boolean {
  return req.headers["transfer-encoding"] !== undefined || Number(req.headers["content-length"] ?? 0) > 0;
}

/** Throws 400 for no Content-Type or two of them, and for a transfer coding beside chunked (RFC 9112 §6.1), 415 for any other than JSON in UTF-8 without a Content-Encoding. */
export function checkBodyHeaders(req: IncomingMessage): void {
  const coding = req.headers["transfer-encoding"];
  if (coding !== undefined && coding.trim().toLowerCase() !== "chunked") {
    throw new Refusal("invalid_request", "A transfer coding other than chunked is not supported.", {
      field: "Transfer-Encoding",
    });
  }
  const type = req.headers["content-type"];
  if (type === undefined) {
    throw new Refusal(
      "invalid_request",
      "The request has a body, so it needs Content-Type: application/json.",
      { field: "Content-Type" },
    );
  }
  if ((req.headersDistinct["content-type"]?.length ?? 0) > 1) {
    throw new Refusal("invalid_request", "The request has more than one Content-Type.", {
      field: "Content-Type", // of two that differ, a proxy before us may have believed the other
    });
  }
  const [media = "", ...parameters] = type.split(";").map((part) => part.trim().toLowerCase());
  if (media !== "application/json") {
    throw new Refusal("unsupported_media_type", "The Content-Type is not application/json.", {
      field: "Content-Type",
    });
  }
  if (
    parameters.some(
      (parameter) => /^charset\s*=/.test(parameter) && !/^charset=("utf-8"|utf-8)$/.test(parameter),
    )
  ) {
    throw new Refusal("unsupported_media_type", "JSON is read as UTF-8 only.", { field: "Content-Type" });
  }
  const encoding = req.headers["content-encoding"]?.trim().toLowerCase();
  if (encoding !== undefined && encoding !== "identity") {
    throw new Refusal("unsupported_media_type", "A Content-Encoding is not supported.", {
      field: "Content-Encoding",
    });
  }
}

/** null where the length is not announced. Throws message_too_large past the cap. */
export function announcedLength(req: IncomingMessage): number | null {
  const length = req.headers["content-length"];
  if (length === undefined) return req.headers["transfer-encoding"] === undefined ? 0 : null;
  if (Number(length) > maxBodyBytes) throw tooLarge();
  return Number(length);
}

/**
 * The whole body, for which `room` was taken; null: nothing limits it but the cap. A chunked body that outgrows its room
 * is paused until there is more. Throws message_too_large past the cap.
 */
export function readBody(
  req: IncomingMessage,
  res: ServerResponse,
  room: BodyReservation | null,
): Promise<Buffer> {
  if (req.headers.expect !== undefined) res.writeContinue(); // RFC 9110 §10.1.1: not before the headers have passed
  const chunked = req.headers["content-length"] === undefined;
  const chunks: Buffer[] = [];
  /** Of a large body whose length is known: joining its pieces at the end would block the loop. */
  const length = Number(req.headers["content-length"] ?? 0);
  const whole = length > largePiece ? Buffer.allocUnsafeSlow(length) : null;
  let size = 0;
  let waiting: Promise<void> | null = null;
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      req.off("data", onData).off("end", onEnd).off("close", onGone).off("error", onGone);
      if (room) room.tooSlow = null;
      act();
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > maxBodyBytes) return refuse(tooLarge());
      if (whole) chunk.copy(whole, size - chunk.length);
      else chunks.push(chunk);
      if (!room) return;
      room.received += chunk.length;
      if (waiting || !chunked || size <= bodyMemoryRule.smallBytes) return;
      req.pause();
      waiting = room.grow();
      waiting.then(() => req.resume(), refuse);
    };
    /** What still comes is thrown away; the server's request timeout ends it. */
    const refuse = (error: Error): void => {
      chunks.length = 0;
      settle(() => {
        req.on("error", () => undefined).resume();
        reject(error);
      });
    };
    const onEnd = (): void =>
      settle(() =>
        resolve(whole ?? (chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size))),
      );
    const onGone = (): void =>
      settle(() => {
        req.on("error", () => undefined);
        reject(new ClientGone("the client went away"));
      });
    if (req.destroyed && !req.readableEnded) return onGone();
    if (room) room.tooSlow = refuse;
    req.on("data", onData).on("end", onEnd).on("close", onGone).on("error", onGone);
  });
}

/**
 * True if the text has more than `most` values: JSON.parse builds millions of them for seconds, while no other request
 * is served. Strings are skipped, however long; it is what stands between them that is counted.
 */
export function hasMoreValues(raw: Buffer, most: number): boolean {
  if (raw.length <= most) return false;
  let count = 0;
  for (let at = 0; at < raw.length; at++) {
    const kind = kinds[raw[at] ?? 0];
    if (kind === structural && ++count > most) return true;
    if (kind === quotation) at = endOfString(raw, at + 1);
  }
  return false;
}

const quoteMark = 0x22;
const backslash = 0x5c;
const [structural, quotation] = [1, 2];
const kinds = new Uint8Array(256);
/** Each begins or follows a value: comma, colon and the opening brackets. */
for (const byte of Buffer.from(",:[{")) kinds[byte] = structural;
kinds[quoteMark] = quotation;
/** Where quotation marks are escaped, so many octets are read one by one: a search for each mark costs more. */
const dense = 1024;

/** Index of the quotation mark that ends the string: one after an even number of backslashes. */
function endOfString(raw: Buffer, start: number): number {
  let at = start;
  for (;;) {
    const mark = raw.indexOf(quoteMark, at);
    if (mark < 0) return raw.length;
    let slashes = 0;
    while (mark - 1 - slashes >= at && raw[mark - 1 - slashes] === backslash) slashes++;
    if (slashes % 2 === 0) return mark;
    at = mark + 1;
    for (const end = at + dense; at < end && at < raw.length; at++) {
      const byte = raw[at];
      if (byte === quoteMark) return at;
      if (byte === backslash) at++;
    }
  }
}

/** Of a request with an Idempotency-Key: SHA-256 over method, path and body bytes. */
export function fingerprintOf(method: string, path: string, raw: Uint8Array): Buffer {
  return createHash("sha256").update(`${method}\n${path}\n`).update(raw).digest();
}

/** The JSON value of a body with at most `most` values. Throws as parseJson does, and validation_failed if it has more. */
export function readJson(raw: Buffer, most: number): unknown {
  if (hasMoreValues(raw, most))
    throw new Refusal("validation_failed", `The body has more than ${most} values.`);
  return parseJson(raw);
}

/** The JSON value of a body. Throws invalid_request for bytes that are not UTF-8 and text that is not JSON. */
export function parseJson(raw: Buffer): unknown {
  if (raw.length === 0) throw new Refusal("invalid_request", "The request needs a JSON body.");
  if (!isUtf8(raw)) throw new Refusal("invalid_request", "The body is not valid UTF-8.");
  const text = raw.toString("utf8");
  try {
    return JSON.parse(text.startsWith("\ufeff") ? text.slice(1) : text);
  } catch {
    throw new Refusal("invalid_request", "The body is not valid JSON.");
  }
}

function tooLarge(): Refusal {
  return new Refusal(
    "message_too_large",
    `The request body is larger than ${maxBodyBytes} bytes; a message may have 26,214,400.`,
  );
}

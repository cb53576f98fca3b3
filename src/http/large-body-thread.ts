// A thread that large request bodies are handed to: the look at their JSON, its fingerprint, and for the routes that send
// mail the reading and composing of each message. The values stay here, under the body's number, until it is dropped; what
// goes back is small, or bytes that are handed over without a copy. What is refused and why: body.ts and submission.
import { parentPort } from "node:worker_threads";
import { Refusal, type ErrorCode } from "../errors.ts";
import type { Composed } from "../mail/compose.ts";
import { maxMessageBytes } from "../mail/intake.ts";
import { readHere, wholeRequest, withoutBulk, type Read } from "../submission/large-request.ts";
import { render, type AssignedFields } from "../submission/render.ts";
import { isRecord, type MessageRequest } from "../submission/shape.ts";
import { fingerprintOf, readJson } from "./body.ts";

/** Which part of a body is kept in the thread: a message, or each of a `messages` array. */
export type BodyKind = "message" | "batch";

export type LargeBodyCall =
  | {
      kind: "open";
      body: number;
      bytes: Uint8Array;
      mostValues: number;
      /** null: its JSON is wanted itself. */
      kept: BodyKind | null;
      /** Of a request with an Idempotency-Key. */
      named: { method: string; path: string } | null;
    }
  | { kind: "read"; body: number; index: number; made: AssignedFields }
  | { kind: "compose"; body: number; index: number; made: AssignedFields }
  | { kind: "drop"; body: number };

export type Opened =
  { json: unknown; fingerprint: Uint8Array | null } | { refused: { code: ErrorCode; detail: string } };

export interface LargeBodyAnswers {
  open: Opened;
  read: Read | null;
  compose: Omit<Composed, "chunks" | "bodyHash"> & { chunks: Uint8Array[]; bodyHash: Uint8Array };
  drop: null;
}

interface Message {
  json: unknown;
  request: MessageRequest | null;
  /** Where reading it had to compose it. */
  composed: Composed | null;
}

const port = parentPort;
if (!port) throw new Error("large-body-thread is started by large-bodies.ts, not by hand");
const bodies = new Map<number, Message[]>();

function messageOf(body: number, index: number): Message {
  const message = bodies.get(body)?.[index];
  if (!message) throw new Error("the thread was started again in the middle of a request");
  return message;
}

/** As many as a refusal of the length needs. */
const mostKept = 101;

function open(call: Extract<LargeBodyCall, { kind: "open" }>): Opened {
  const raw = Buffer.from(call.bytes.buffer, call.bytes.byteOffset, call.bytes.byteLength);
  const fingerprint = call.named && fingerprintOf(call.named.method, call.named.path, raw);
  let json: unknown;
  try {
    json = readJson(raw, call.mostValues);
  } catch (error) {
    if (error instanceof Refusal) return { refused: { code: error.code, detail: error.message } };
    throw error;
  }
  if (call.kept === null || !isRecord(json)) return { json, fingerprint };
  const list = json["messages"];
  const kept = call.kept === "message" ? [json] : Array.isArray(list) ? list.slice(0, mostKept) : [];
  bodies.set(
    call.body,
    kept.map((message: unknown) => ({ json: message, request: null, composed: null })),
  );
  return { json: outlineOf(json, kept.length), fingerprint };
}

/** The same fields without their values: of an array, its length. */
function outlineOf(json: Record<string, unknown>, length: number): Record<string, unknown> {
  const outline = (value: unknown): unknown => {
    if (Array.isArray(value)) return Array.from({ length }, () => null);
    if (isRecord(value)) return {};
    return typeof value === "string" ? "" : value;
  };
  return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, outline(value)]));
}

function read(message: Message, made: AssignedFields): Read | null {
  const found = readHere(message.json, made);
  message.json = null; // what is sound of it is in the request
  if (!found) return null;
  message.composed = found.composed;
  message.request = found.composed ? null : wholeRequest(found);
  return withoutBulk(found);
}

function compose(message: Message, made: AssignedFields): LargeBodyAnswers["compose"] {
  const ready = message.composed ?? (message.request && render(message.request, made));
  if (!ready) throw new Error("only a request that was read without problems can be composed");
  message.composed = message.request = null;
  const { chunks, ...composed } = ready;
  return { ...composed, chunks: composed.sizeBytes > maxMessageBytes ? [] : chunks.map(alone) };
}

/** Bytes in memory of their own, which can be handed over: small ones are views of a pool. */
function alone(bytes: Buffer): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}

function answer(call: LargeBodyCall): LargeBodyAnswers[LargeBodyCall["kind"]] {
  switch (call.kind) {
    case "open":
      return open(call);
    case "read":
      return read(messageOf(call.body, call.index), call.made);
    case "compose":
      return compose(messageOf(call.body, call.index), call.made);
    case "drop":
      bodies.delete(call.body);
      return null;
  }
}

port.on("message", (call: LargeBodyCall) => {
  try {
    const value = answer(call);
    const chunks = call.kind === "compose" && value && "chunks" in value ? value.chunks : [];
    port.postMessage({ value }, chunks.map(({ buffer }) => buffer) as ArrayBuffer[]);
  } catch (error) {
    port.postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
});

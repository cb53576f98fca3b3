// The code of a parsing thread: reads mail, returns its parts (mail/). It handles one call at a time and in order; a call
// takes a few milliseconds, so that no mail delays another for long.
import { parentPort } from "node:worker_threads";
import { ContentLimit, ContentReader, type ContentPlan } from "../mail/content-reader.ts";
import { ContentText } from "../mail/content-text.ts";
import type { OpenedContent } from "../model/content.ts";
import { readNotice, type Notice } from "../mail/notice.ts";
import { readReturned, type ReturnContext, type Returned } from "../mail/returned.ts";
import { lowerPriority } from "../thread.ts";
import { openedMail, type OpenedMail } from "./opened-mail.ts";

export type ParsingCall =
  | { kind: "open"; reading: number; content: OpenedContent }
  | { kind: "scan"; reading: number }
  | { kind: "plan"; reading: number }
  | { kind: "show"; reading: number; part: "text" | "html" }
  | { kind: "list"; reading: number; from: number }
  | { kind: "drop"; reading: number }
  | { kind: "returned"; mail: Uint8Array; came: ReturnContext }
  | { kind: "notice"; mail: Uint8Array };

/** A part of the work. */
export interface Step {
  done: boolean;
  /** Processor time, milliseconds. */
  tookMs: number;
}

export interface ParsingAnswers {
  open: null;
  scan: Step;
  /** Whether the mail has them. */
  plan: { text: boolean; html: boolean };
  /** JSON text. */
  show: Step & { bytes: Uint8Array };
  /** JSON text; `next` is where to go on, null at the end. */
  list: { bytes: Uint8Array; next: number | null };
  drop: null;
  returned: Returned;
  notice: Notice;
}

/** In the order of the calls. `limit` names what the mail has too much of. */
export type ParsingReport = { value: unknown } | { limit: string } | { error: string };

interface Reading {
  mail: OpenedMail;
  reader: ContentReader;
  /** How far it was scanned, octets. */
  scanned: number;
  plan: ContentPlan | null;
  shown: Partial<Record<"text" | "html", Shown>>;
}

/** Octets of the mail from `start` up to `end`. */
interface Span {
  start: number;
  end: number;
}

/** A text that is on its way. */
interface Shown {
  text: ContentText;
  /** What is still to be read, the next place first. */
  spans: Span[];
}

/** How long a step reads on, milliseconds of processor time. */
const stepMs = 10;
/** Places that are nearer to each other are read in one go: opening a file costs more than reading on. */
const nearBytes = 256 * 1024;
/** Rows of a list that are put into JSON in one call. */
const rowsAtOnce = 200;

const port = parentPort;
if (!port) throw new Error("parsing-thread is started by parsing.ts, not by hand");
lowerPriority(); // mail from outside waits for the rest of the program
const readings = new Map<number, Reading>();

function readingOf(id: number): Reading {
  const reading = readings.get(id);
  if (!reading) throw new Error("the thread was started again in the middle of a mail");
  return reading;
}

function planOf(id: number): ContentPlan {
  const reading = readingOf(id);
  return (reading.plan ??= reading.reader.end());
}

function spansOf(places: readonly Span[]): Span[] {
  const spans: Span[] = [];
  for (const { start, end } of places) {
    const last = spans.at(-1);
    if (last && start - last.end < nearBytes) last.end = end;
    else spans.push({ start, end });
  }
  return spans;
}

/** Works on until it is done, has something to send or has used up its time. */
function stepOf(work: () => "done" | "more" | "send"): Step {
  const began = process.threadCpuUsage();
  for (;;) {
    const state = work();
    const { user, system } = process.threadCpuUsage(began);
    const tookMs = (user + system) / 1000;
    if (state !== "more" || tookMs >= stepMs) return { done: state === "done", tookMs };
  }
}

function scan(reading: Reading): Step {
  return stepOf(() => {
    const piece = reading.mail.piece(reading.scanned);
    if (piece.length === 0) return "done";
    reading.scanned += piece.length;
    reading.reader.push(piece);
    return "more";
  });
}

function show(reading: Reading, plan: ContentPlan, part: "text" | "html"): ParsingAnswers["show"] {
  const places = plan[part];
  const { text, spans } = (reading.shown[part] ??= { text: new ContentText(places), spans: spansOf(places) });
  let bytes: Uint8Array = Buffer.alloc(0);
  const step = stepOf(() => {
    const [span] = spans;
    if (!span) return "done";
    const piece = reading.mail.piece(span.start).subarray(0, span.end - span.start);
    bytes = text.push(piece, span.start);
    span.start += piece.length;
    if (piece.length === 0 || span.start >= span.end) spans.shift();
    return bytes.length > 0 ? "send" : "more";
  });
  return { ...step, bytes };
}

/** The rows of both lists from the one numbered `from` on: `"headers":[…],"attachments":[…]`. */
function listFrom({ headers, attachments }: ContentPlan, from: number): ParsingAnswers["list"] {
  const rows = headers.length + attachments.length;
  const end = Math.min(rows, from + rowsAtOnce);
  let json = from === 0 ? '"headers":[' : "";
  for (let i = from; i <= end; i++) {
    if (i === headers.length && (i < end || end === rows)) json += '],"attachments":[';
    if (i === end) break;
    const file = attachments[i - headers.length];
    const row = file
      ? { filename: file.filename, content_type: file.contentType, size_bytes: file.sizeBytes }
      : headers[i];
    json += `${i === 0 || i === headers.length ? "" : ","}${JSON.stringify(row)}`;
  }
  if (end === rows) json += "]";
  return { bytes: Buffer.from(json), next: end === rows ? null : end };
}

function answer(call: ParsingCall): ParsingAnswers[ParsingCall["kind"]] {
  switch (call.kind) {
    case "open":
      readings.set(call.reading, {
        mail: openedMail(call.content),
        reader: new ContentReader(),
        scanned: 0,
        plan: null,
        shown: {},
      });
      return null;
    case "scan":
      return scan(readingOf(call.reading));
    case "plan": {
      const { text, html } = planOf(call.reading);
      return { text: text.length > 0, html: html.length > 0 };
    }
    case "show":
      return show(readingOf(call.reading), planOf(call.reading), call.part);
    case "list":
      return listFrom(planOf(call.reading), call.from);
    case "drop":
      readings.delete(call.reading);
      return null;
    case "returned":
      return readReturned(call.mail, call.came);
    case "notice":
      return readNotice(call.mail);
  }
}

function reportOf(call: ParsingCall): ParsingReport {
  try {
    return { value: answer(call) };
  } catch (error) {
    if (error instanceof ContentLimit) return { limit: error.message };
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** Large ones are handed over, not copied; small ones may be views of a buffer that others use. */
function handedOver(report: ParsingReport): ArrayBuffer[] {
  const answered = "value" in report ? report.value : null;
  const value =
    answered !== null && typeof answered === "object" && "bytes" in answered ? answered.bytes : null;
  if (!(value instanceof Uint8Array) || !(value.buffer instanceof ArrayBuffer)) return [];
  return value.byteLength === value.buffer.byteLength ? [value.buffer] : [];
}

port.on("message", (call: ParsingCall) => {
  const report = reportOf(call);
  port.postMessage(report, handedOver(report));
});

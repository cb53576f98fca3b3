// The code of a parsing thread: takes pieces of mail, returns their parts (mail/). It handles one call at a time and in
// order, each a piece of at most the size that the store reads, so that no mail delays another for long.
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { ContentLimit, ContentReader, type ContentPlan } from "../mail/content-reader.ts";
import { ContentText } from "../mail/content-text.ts";
import { readNotice, type Notice } from "../mail/notice.ts";
import { readReturned, type ReturnContext, type Returned } from "../mail/returned.ts";

/** Octets of the mail from `start` up to `end`. */
export interface Span {
  start: number;
  end: number;
}

/** Where the text is; null where the mail has none. */
export interface TextSpans {
  text: Span[] | null;
  html: Span[] | null;
}

export type ParsingCall =
  /** `first`: the mail begins; a reading that the thread does not know was lost with the thread before it. */
  | { kind: "scan"; reading: number; first: boolean; bytes: Uint8Array }
  | { kind: "plan"; reading: number }
  | { kind: "show"; reading: number; part: "text" | "html"; offset: number; bytes: Uint8Array }
  | { kind: "list"; reading: number; from: number }
  | { kind: "drop"; reading: number }
  | { kind: "returned"; mail: Uint8Array; came: ReturnContext }
  | { kind: "notice"; mail: Uint8Array };

export interface ParsingAnswers {
  scan: null;
  plan: TextSpans;
  /** JSON text. */
  show: Uint8Array;
  /** JSON text; `next` is where to go on, null at the end. */
  list: { bytes: Uint8Array; next: number | null };
  drop: null;
  returned: Returned;
  notice: Notice;
}

/** In the order of the calls. `limit` names what the mail has too much of. */
export type ParsingReport = { value: unknown } | { limit: string } | { error: string };

interface Reading {
  reader: ContentReader;
  plan: ContentPlan | null;
  shown: Partial<Record<"text" | "html", ContentText>>;
}

/** Places that are nearer to each other are read in one go: opening a file costs more than reading on. */
const nearBytes = 256 * 1024;
/** Rows of a list that are put into JSON in one call. */
const rowsAtOnce = 200;

const port = parentPort;
if (!port) throw new Error("parsing-thread is started by parsing.ts, not by hand");
/** Of this thread alone, on Linux (setpriority(2), 0): mail from outside waits for the rest of the program. */
const niceness = 10;
try {
  setPriority(0, niceness);
} catch {
  // priority unchanged
}
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

function spansOf(places: readonly Span[]): Span[] | null {
  const spans: Span[] = [];
  for (const { start, end } of places) {
    const last = spans.at(-1);
    if (last && start - last.end < nearBytes) last.end = end;
    else spans.push({ start, end });
  }
  return spans.length > 0 ? spans : null;
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
    case "scan":
      if (call.first) readings.set(call.reading, { reader: new ContentReader(), plan: null, shown: {} });
      readingOf(call.reading).reader.push(bufferOf(call.bytes));
      return null;
    case "plan": {
      const { text, html } = planOf(call.reading);
      return { text: spansOf(text), html: spansOf(html) };
    }
    case "show": {
      const plan = planOf(call.reading);
      const shown = (readingOf(call.reading).shown[call.part] ??= new ContentText(plan[call.part]));
      return shown.push(bufferOf(call.bytes), call.offset);
    }
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

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Large ones are handed over, not copied; small ones may be views of a buffer that others use. */
function handedOver(report: ParsingReport): ArrayBuffer[] {
  const value = "value" in report ? report.value : null;
  if (!(value instanceof Uint8Array) || !(value.buffer instanceof ArrayBuffer)) return [];
  return value.byteLength === value.buffer.byteLength ? [value.buffer] : [];
}

port.on("message", (call: ParsingCall) => {
  const report = reportOf(call);
  port.postMessage(report, handedOver(report));
});

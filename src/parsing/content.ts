// The parts of one mail as JSON (GET /v1/messages/{id}/content), made by a parsing thread while they are sent. First the
// whole mail is shown to the thread, which finds where things are or refuses it; then its text is read again, piece by
// piece, as the client takes it. At no time is more of the mail in memory than two pieces.
import type { ParsingWorker } from "./worker.ts";
import type { Span } from "./parsing-thread.ts";

/** The mail's bytes from `offset` on. */
export type OpenMail = (offset: number) => AsyncIterable<Uint8Array>;

export interface ReadingCall {
  worker: ParsingWorker;
  /** Its number at the thread. */
  id: number;
  open: OpenMail;
  /** Throws if the client has gone away. */
  goOn(): void;
}

/** Pieces under way to the thread: it has the next while the loop hears of the last. */
const ahead = 2;

/** Resolves once the mail is known to be within the limits; the JSON is made as it is taken. Throws BeyondLimit. */
export async function contentJson(call: ReadingCall): Promise<AsyncIterable<Uint8Array>> {
  const { worker, id } = call;
  await scan(call);
  const { text, html } = await worker.call({ kind: "plan", reading: id });
  return (async function* () {
    yield Buffer.from('{"text":');
    yield* shown(call, "text", text);
    yield Buffer.from(',"html":');
    yield* shown(call, "html", html);
    yield Buffer.from(",");
    for (let from: number | null = 0; from !== null;) {
      const { bytes, next }: { bytes: Uint8Array; next: number | null } = await worker.call({
        kind: "list",
        reading: id,
        from,
      });
      yield bytes;
      from = next;
    }
    yield Buffer.from("}");
  })();
}

async function scan({ worker, id, open, goOn }: ReadingCall): Promise<void> {
  const underWay: Promise<null>[] = [];
  let first = true;
  try {
    for await (const bytes of open(0)) {
      goOn();
      const scanned = worker.call({ kind: "scan", reading: id, first, bytes });
      scanned.catch(() => undefined); // it may fail while the next piece is read; it is awaited below all the same
      underWay.push(scanned);
      first = false;
      if (underWay.length >= ahead) await underWay.shift();
    }
    await Promise.all(underWay);
  } catch (error) {
    await Promise.allSettled(underWay);
    throw error;
  }
}

async function* shown(
  { worker, id, open }: ReadingCall,
  part: "text" | "html",
  spans: Span[] | null,
): AsyncGenerator<Uint8Array> {
  if (spans === null) return yield Buffer.from("null");
  yield Buffer.from('"');
  for (const { start, end } of spans) {
    let offset = start;
    for await (const chunk of open(start)) {
      const bytes = chunk.subarray(0, end - offset);
      const json = await worker.call({ kind: "show", reading: id, part, offset, bytes });
      if (json.length > 0) yield json;
      offset += bytes.length;
      if (offset >= end) break;
    }
  }
  yield Buffer.from('"');
}

// The parts of one mail as JSON (GET /v1/messages/{id}/content), made by a parsing thread while they are sent. The thread
// reads the mail by itself: first all of it, to find where things are or to refuse it; then its text again, as the
// client takes it. What passes the event loop is the JSON, a piece at a time.
import type { OpenedContent } from "../model/content.ts";
import { sendingMs } from "./processor-time.ts";
import type { ParsingWorker } from "./worker.ts";

export interface ReadingCall {
  worker: ParsingWorker;
  /** Its number at the thread. */
  id: number;
  content: OpenedContent;
  /** Resolves when the thread may work on; rejects if the client has gone away. */
  turn(): Promise<void>;
  /** What the thread needed, milliseconds of processor time. */
  spent(ms: number): void;
}

/** Resolves once the mail is known to be within the limits; the JSON is made as it is taken. Throws BeyondLimit. */
export async function contentJson(call: ReadingCall): Promise<AsyncIterable<Uint8Array>> {
  const { worker, id: reading, content } = call;
  await worker.call({ kind: "open", reading, content });
  for (let done = false; !done;) {
    await call.turn();
    const step = await worker.call({ kind: "scan", reading });
    call.spent(step.tookMs);
    done = step.done;
  }
  const { text, html } = await worker.call({ kind: "plan", reading });
  return (async function* () {
    yield Buffer.from('{"text":');
    yield* shown(call, "text", text);
    yield Buffer.from(',"html":');
    yield* shown(call, "html", html);
    yield Buffer.from(",");
    for (let from: number | null = 0; from !== null;) {
      const { bytes, next }: { bytes: Uint8Array; next: number | null } = await worker.call({
        kind: "list",
        reading,
        from,
      });
      yield bytes;
      from = next;
    }
    yield Buffer.from("}");
  })();
}

async function* shown(
  { worker, id: reading, turn, spent }: ReadingCall,
  part: "text" | "html",
  present: boolean,
): AsyncGenerator<Uint8Array> {
  if (!present) return yield Buffer.from("null");
  yield Buffer.from('"');
  for (let done = false; !done;) {
    await turn();
    const step = await worker.call({ kind: "show", reading, part });
    spent(step.tookMs + sendingMs(step.bytes.length));
    if (step.bytes.length > 0) yield step.bytes;
    done = step.done;
  }
  yield Buffer.from('"');
}

// Large request bodies never meet the event loop: a thread looks at their JSON, and reads and composes the messages that
// they hold, while everybody else is served. Small bodies stay on the loop, where they cost less than the way to a thread.
// Two threads, so that a body of 100 KB does not wait behind one of 25 MB. How much memory bodies take: body-memory.ts.
import type { Clock } from "../clock.ts";
import { Refusal } from "../errors.ts";
import type { Log } from "../log.ts";
import { createCallWorker, ParsingFailed, type CallWorker } from "../parsing/parsing.ts";
import { LargeRequest } from "../submission/large-request.ts";
import type { LargeBodyAnswers, LargeBodyCall } from "./large-body-thread.ts";

/** Measured: what is smaller blocks the loop for 1 to 3 ms, and for 13 where it is html of nothing but tags; 256 KB of that are 47. */
export const largeBytes = 64 * 1024;
/** Above this a body goes to the thread of the largest. */
const hugeBytes = 1024 * 1024;
const memory = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };
/** As long as a request may take. */
const callLimitMs = 30_000;
const retrySeconds = 5;

export interface LargeBody {
  /** What was sent; where the thread keeps its messages, only the outline of it. */
  json: unknown;
  /** null where none was asked for. */
  fingerprint: Buffer | null;
  /** The message kept at this place. */
  request(index: number): LargeRequest;
  /** The thread drops it. */
  drop(): void;
}

export interface LargeBodies {
  /** Takes the body over: `raw` is empty behind it. Throws a Refusal for what is not JSON, as body.ts does, and service_overloaded. */
  open(
    raw: Buffer,
    asked: Omit<Extract<LargeBodyCall, { kind: "open" }>, "kind" | "body" | "bytes">,
  ): Promise<LargeBody>;
  stop(): Promise<void>;
}

type Thread = CallWorker<LargeBodyCall, LargeBodyAnswers>;

export function createLargeBodies({ clock, log }: { clock: Clock; log: Log }): LargeBodies {
  let bodies = 0;
  const threadOf = (name: string) => {
    const open = new Set<number>();
    const setup = {
      name,
      thread: "large-body-thread",
      beside: import.meta.url,
      memory,
      callLimitMs,
    } as const;
    const worker = createCallWorker<LargeBodyCall, LargeBodyAnswers>(setup, {
      clock,
      log,
      inUse: () => open.size > 0,
    });
    return { worker, open };
  };
  const [large, huge] = [threadOf("large bodies"), threadOf("huge bodies")];

  return {
    async open(raw, asked) {
      const { worker, open } = raw.length > hugeBytes ? huge : large;
      const body = ++bodies;
      const drop = (): void => {
        if (!open.delete(body)) return;
        // What an ended thread had is lost with it.
        if (worker.running()) worker.call({ kind: "drop", body }).catch(() => undefined);
      };
      open.add(body);
      try {
        const { bytes, handedOver } = own(raw);
        const opened = await called(worker.call({ kind: "open", body, bytes, ...asked }, handedOver));
        if ("refused" in opened) throw new Refusal(opened.refused.code, opened.refused.detail);
        const { json, fingerprint } = opened;
        const request = (index: number): LargeRequest => requestOf(worker, body, index);
        return { json, fingerprint: fingerprint && bufferOf(fingerprint), request, drop };
      } catch (error) {
        drop();
        throw error;
      }
    },
    async stop() {
      await Promise.all([large.worker.stop(), huge.worker.stop()]);
    },
  };
}

function requestOf(worker: Thread, body: number, index: number): LargeRequest {
  return new LargeRequest({
    read: (made) => called(worker.call({ kind: "read", body, index, made })),
    async compose(made) {
      const composed = await called(worker.call({ kind: "compose", body, index, made }));
      return { ...composed, chunks: composed.chunks.map(bufferOf), bodyHash: bufferOf(composed.bodyHash) };
    },
  });
}

/** Nothing was accepted: the client may send it again. */
async function called<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof ParsingFailed)) throw error;
    const detail = `The body could not be read: ${error.message}; nothing was accepted, try again later.`;
    throw new Refusal("service_overloaded", detail, { retry_after_seconds: retrySeconds });
  }
}

/** Memory that is the body's alone is handed over; where it is a part of other memory, a copy. */
function own(raw: Buffer): { bytes: Uint8Array; handedOver: ArrayBuffer[] } {
  const { buffer } = raw;
  const whole = buffer instanceof ArrayBuffer && buffer.byteLength === raw.byteLength ? buffer : null;
  return whole ? { bytes: raw, handedOver: [whole] } : { bytes: new Uint8Array(raw), handedOver: [] };
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

// Answers that have no end of their own (NDJSON). They are ended when the server stops; a reader that is
// 1 MB behind is cut, so that one slow reader costs no memory and delays no shutdown.
import { Readable } from "node:stream";
import type { Clock, Timer } from "../clock.ts";

const maxBehindBytes = 1024 * 1024;
const heartbeatMs = 15_000;

export interface Stream {
  readonly body: Readable;
  /** False once the stream is over: nothing more is taken. */
  write(line: string): boolean;
  /** Resolves when the reader takes more, or is gone. */
  ready(): Promise<void>;
  end(): void;
  onEnd(listener: () => void): void;
}

export interface Streams {
  open(): Stream;
  endAll(): void;
}

export function createStreams(): Streams {
  const running = new Set<Stream>();
  return {
    open() {
      const stream = createStream();
      running.add(stream);
      stream.onEnd(() => running.delete(stream));
      return stream;
    },
    endAll() {
      for (const stream of running) stream.end();
    },
  };
}

function createStream(): Stream {
  const waiting: (() => void)[] = [];
  const wake = (): void => {
    for (const resume of waiting.splice(0)) resume();
  };
  const body = new Readable({ read: wake });
  let over = false;
  body.once("close", () => {
    over = true;
    wake();
  });
  return {
    body,
    write(line) {
      if (over) return false;
      body.push(`${line}\n`);
      if (body.readableLength > maxBehindBytes) body.destroy();
      return !body.destroyed;
    },
    ready() {
      if (over || body.readableLength < body.readableHighWaterMark) return Promise.resolve();
      return new Promise((resolve) => void waiting.push(resolve));
    },
    end() {
      if (!over) body.push(null);
      over = true;
      wake();
    },
    onEnd: (listener) => void body.once("close", listener),
  };
}

/** Writes an empty line each 15 seconds, so that a reader knows a quiet stream from a dead one. */
export function keepAlive(clock: Clock, stream: Stream): void {
  let timer: Timer;
  const arm = (): void => {
    timer = clock.after(heartbeatMs, () => {
      if (stream.write("")) arm();
    });
  };
  arm();
  stream.onEnd(() => timer.cancel());
}

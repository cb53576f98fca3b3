// How answers leave. A large one goes out in slices of one shared buffer, the next when the system has taken the one
// before, so that a client that does not read costs a slice and not the answer. A connection whose pending bytes make
// no progress is closed; after a shorter time where unread answers fill the memory that they may have together.
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Timer } from "../clock.ts";

export const writeRule = {
  sliceBytes: 16_384,
  /** Answers up to this size are written whole. */
  wholeBytes: 65_536,
  /** Without progress. A slice, or an answer written whole, has to be taken within this time. */
  stallMs: 30_000,
  everyMs: 5000,
  /** All that waits to be read. Beyond it `everyMs` without progress is enough to be closed. */
  totalBytes: 64 * 1024 * 1024,
};

/** A body that goes out slice by slice; srvx writes the head and calls `pipe`. */
export function sliced(body: Buffer, sliceBytes = writeRule.sliceBytes): { pipe(res: ServerResponse): void } {
  return {
    pipe(res) {
      let at = 0;
      const next = (error?: Error | null): void => {
        if (error || res.destroyed) return;
        const slice = body.subarray(at, at + sliceBytes);
        at += slice.length;
        if (at < body.length) res.write(slice, next);
        else res.end(slice);
      };
      next();
    },
  };
}

export interface WriteWatch {
  add(socket: Socket): void;
  stop(): void;
}

/** Looks at every connection now and then: nothing is done for one answer. */
export function createWriteWatch(clock: Clock, rule = writeRule): WriteWatch {
  const sockets = new Set<Socket>();
  /** Those with pending bytes: how many the system had taken, and since when no more. */
  const pending = new Map<Socket, { taken: number; since: number }>();
  let timer: Timer | null = null;

  const look = (): void => {
    const now = clock.monotonic();
    let unread = 0;
    for (const socket of sockets) {
      if (socket.writableLength === 0) {
        pending.delete(socket);
        continue;
      }
      unread += socket.writableLength;
      const taken = socket.bytesWritten - socket.writableLength;
      const before = pending.get(socket);
      if (before?.taken !== taken) pending.set(socket, { taken, since: now });
    }
    const stallMs = unread > rule.totalBytes ? rule.everyMs : rule.stallMs;
    for (const [socket, { since }] of pending) if (now - since >= stallMs) socket.destroy();
    timer = sockets.size > 0 ? clock.after(rule.everyMs, look) : null;
  };

  return {
    add(socket) {
      sockets.add(socket);
      timer ??= clock.after(rule.everyMs, look);
      socket.once("close", () => {
        sockets.delete(socket);
        pending.delete(socket);
      });
    },
    stop() {
      timer?.cancel();
      timer = null;
    },
  };
}

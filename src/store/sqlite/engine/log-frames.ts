// The write-ahead log as a file (https://www.sqlite.org/fileformat2.html, section 4): which page each of its frames holds.
// Frames are read up to the end of a commit that SQLite has named, so none of them is still being written.
import { openSync } from "node:fs";
import { frameHeaderBytes } from "./wal.ts";
import { readWhole } from "./whole-io.ts";

const headerBytes = 32;
/** Read at once. */
const piece = 64;

/** Of one generation of the log, which begins when it is restarted. */
export interface LogFile {
  readonly fd: number;
  /** Two numbers that every restart changes; null: there is no log yet. */
  generation(): string | null;
  /**
   * The pages of frames `from` (the first is 0) to `to`, in their order; `bytes` is the page, until the next call. False: the
   * file has not all of them, since it was restarted and cut short.
   */
  frames(from: number, to: number, each: (page: number, bytes: Buffer, pagesAfter: number) => void): boolean;
}

/** No lock of SQLite's is on the log, so that a descriptor of its own may come and go (engine/open.ts). */
export function openLogFile(path: string, frameBytes: number): LogFile {
  const fd = openSync(`${path}-wal`, "r");
  const header = Buffer.alloc(headerBytes);
  const buffer = Buffer.alloc(piece * frameBytes);
  return {
    fd,
    generation: () => (readWhole(fd, header, 0) < headerBytes ? null : header.toString("hex", 16, 24)),
    frames(from, to, each) {
      for (let at = from; at < to; at += piece) {
        const bytes = Math.min(piece, to - at) * frameBytes;
        if (readWhole(fd, buffer.subarray(0, bytes), headerBytes + at * frameBytes) < bytes) return false;
        for (let place = 0; place < bytes; place += frameBytes)
          each(
            buffer.readUInt32BE(place),
            buffer.subarray(place + frameHeaderBytes, place + frameBytes),
            buffer.readUInt32BE(place + 4),
          );
      }
      return true;
    },
  };
}

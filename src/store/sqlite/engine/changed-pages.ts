// Which pages of the database commits have changed since they were last copied, while a backup watches: a bit a page, shared
// by the writer's thread, which sets it after each commit, and the backup's, which takes it. So the backup copies the file
// beside the writer without holding a snapshot: checkpoints go on, and the write-ahead log stays as small as ever.
import { closeSync } from "node:fs";
import { openLogFile, type LogFile } from "./log-frames.ts";

/** A database of more pages cannot be backed up while it is written: 512 GB, or 256 GB where its pages are of 4 KB. */
const mostPages = 64 * 1024 * 1024;
/** Which watch it is, counted; 0: none. */
const watchedAt = 0;
/** Not 0: something was not noted. */
const missedAt = 1;
/** The watch that a writer's thread has begun to note for. */
const begunAt = 2;
const firstWord = 3;

export interface ChangedPages {
  /** Handed to the threads. */
  readonly shared: SharedArrayBuffer;
  watch(): void;
  unwatch(): void;
}

/** On the loop. Memory is taken only where bits are set. */
export function createChangedPages(): ChangedPages {
  const shared = new SharedArrayBuffer((firstWord + mostPages / 32) * 4);
  const words = new Int32Array(shared);
  let watches = 0;
  return {
    shared,
    watch() {
      takeAll(words);
      Atomics.store(words, missedAt, 0);
      Atomics.store(words, watchedAt, ++watches);
    },
    unwatch: () => void Atomics.store(words, watchedAt, 0),
  };
}

/** In the writer's thread: to be told of the log's frames after each commit, and before anything is said to be watched. */
export interface PageWatch {
  look(frames: number, frameBytes: number): void;
  /** What was changed is not known. */
  lose(): void;
}

export function createPageWatch(path: string, shared: SharedArrayBuffer | undefined): PageWatch {
  if (!shared) return { look: () => undefined, lose: () => undefined };
  const words = new Int32Array(shared);
  let seen: { watch: number; log: LogFile; generation: string | null; frames: number } | null = null;
  const mark = (page: number): void => {
    const bit = page - 1;
    if (bit >= mostPages) return void Atomics.store(words, missedAt, 1);
    Atomics.or(words, firstWord + (bit >>> 5), 1 << (bit & 31));
  };
  /** The backup fails, and nothing else does. */
  const lose = (): void => void Atomics.store(words, missedAt, 1);
  return {
    lose,
    look(frames, frameBytes) {
      const watch = Atomics.load(words, watchedAt);
      if (seen && seen.watch !== watch) {
        closeSync(seen.log.fd);
        seen = null;
      }
      if (watch === 0) return;
      try {
        if (!seen) {
          // One that began with this watch has ended, perhaps between a commit and its look.
          if (Atomics.exchange(words, begunAt, watch) === watch) lose();
          // At the first look of each watch all of the log: what was copied into the database before it was restarted is whole there.
          seen = { watch, log: openLogFile(path, frameBytes), generation: null, frames: 0 };
        }
        const generation = seen.log.generation();
        const from = generation === seen.generation && frames >= seen.frames ? seen.frames : 0;
        if (!seen.log.frames(from, frames, mark)) lose();
        seen = { ...seen, generation, frames };
      } catch {
        lose();
      }
    },
  };
}

/** In the backup's thread: the pages that were changed since the last call, in order. Throws where one may be missing. */
export function takeChangedPages(shared: SharedArrayBuffer): number[] {
  const words = new Int32Array(shared);
  const pages = takeAll(words);
  if (Atomics.load(words, missedAt) === 0) return pages;
  throw new Error(
    "the changes of the database could not be followed: it is too large, its log cannot be read, or the writer had a fault",
  );
}

function takeAll(words: Int32Array): number[] {
  const pages: number[] = [];
  for (let at = firstWord; at < words.length; at++) {
    if (Atomics.load(words, at) === 0) continue;
    const bits = Atomics.exchange(words, at, 0);
    for (let bit = 0; bit < 32; bit++) if ((bits >>> bit) & 1) pages.push((at - firstWord) * 32 + bit + 1);
  }
  return pages;
}

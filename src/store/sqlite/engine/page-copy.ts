// A copy of the database as it is at one moment, made beside the writer. The file is copied page by page while checkpoints write
// to it, and what was changed meanwhile again (changed-pages.ts), until little is left; then, under a snapshot that keeps the
// log as it is, the last of it, and over it what only the log has. So no snapshot is held for longer than that. The database's
// file is read through a descriptor that stays open: closing one would drop SQLite's locks in this process (open.ts).
import { closeSync, fdatasyncSync, fstatSync, fsyncSync, ftruncateSync, openSync } from "node:fs";
import { takeChangedPages } from "./changed-pages.ts";
import { createHeldLog } from "./held-log.ts";
import { openLogFile, type LogFile } from "./log-frames.ts";
import { openReading, openWriting } from "./open.ts";
import { pageBytesOf } from "./pages.ts";
import { createWalState, frameBytesOf } from "./wal.ts";
import { readWhole, writeWhole } from "./whole-io.ts";

export interface DatabaseFile {
  path: string;
  /** Of its file, open for reading. */
  fd: number;
  /** Of ChangedPages, which watch since before the copy began. */
  changed: SharedArrayBuffer;
  /** Of HeldLog. */
  held: SharedArrayBuffer;
}

/** Of one step: the disk is the writer's again after each. */
const stepBytes = 4 * 1024 * 1024;
/** Written bytes are synced after so many: more at once would make the writer's own sync wait for them. */
const syncBytes = 4 * 1024 * 1024;
/** Of changed pages that are left to the end. */
const fewBytes = 16 * 1024 * 1024;
/** Where more are changed all the time than are copied, the end comes all the same. */
const mostRounds = 10;
const mostTries = 20;

/** Copies it to `target`, an empty file. `between` is called after each step, and ends the copy by throwing. */
export function copyDatabase(source: DatabaseFile, target: string, between: (share: number) => void): void {
  const log = openLog(source.path);
  const to = openSync(target, "r+");
  try {
    const { pageBytes } = log;
    const stepPages = stepBytes / pageBytes;
    const copy = createCopy({ from: source.fd, to, pageBytes });
    const all = copy.pagesOfSource();
    for (let page = 1; page <= all; page += stepPages) {
      copy.run(page, Math.min(stepPages, all + 1 - page));
      between(page / (all + 1));
    }
    /** Changed pages that are not copied since. */
    const left = new Set<number>();
    for (let round = 0; round < mostRounds; round++) {
      const pages = changedInFile(source.changed, log, left);
      if (pages === null) continue;
      copy.pages(pages, () => between(1));
      if (pages.length * pageBytes < fewBytes) break;
    }
    finish(source, log, { copy, left });
    fsyncSync(to);
  } finally {
    log.close();
    closeSync(to);
  }
}

interface OpenLog extends LogFile {
  pageBytes: number;
  /** Frames of the log, and how many of them the file has. */
  state(): { log: number; checkpointed: number };
  close(): void;
}

function openLog(path: string): OpenLog {
  const db = openWriting(path);
  const frameBytes = frameBytesOf(db);
  const file = openLogFile(path, frameBytes);
  const state = createWalState(db);
  return {
    ...file,
    pageBytes: pageBytesOf(db),
    state() {
      const { bytes, copiedBytes } = state();
      return { log: bytes / frameBytes, checkpointed: copiedBytes / frameBytes };
    },
    close() {
      db.close();
      closeSync(file.fd);
    },
  };
}

/**
 * Takes from `left`, to which it adds what was changed, the pages that the file has as the last commit left them. null: it
 * cannot be told now, since the log was restarted meanwhile.
 */
function changedInFile(changed: SharedArrayBuffer, log: OpenLog, left: Set<number>): number[] | null {
  for (const page of takeChangedPages(changed)) left.add(page);
  // What was committed before is in the file by now, or in these frames; or the log is restarted, and all is in the file.
  const generation = log.generation();
  const { log: frames, checkpointed } = log.state();
  const onlyInLog = new Set<number>();
  const whole = log.frames(checkpointed, frames, (page) => void onlyInLog.add(page));
  if (!whole || log.generation() !== generation) return null; // these frames may be those of a later one
  const pages = [...left].filter((page) => !onlyInLog.has(page)).toSorted((a, b) => a - b);
  for (const page of pages) left.delete(page);
  return pages;
}

interface Copy {
  /** Pages that follow one another. */
  run(first: number, count: number): void;
  pages(pages: readonly number[], between: () => void): void;
  pagesOfSource(): number;
  /** Makes the copy so many pages long. */
  setPages(count: number): void;
  write(page: number, bytes: Buffer): void;
}

function createCopy({ from, to, pageBytes }: { from: number; to: number; pageBytes: number }): Copy {
  const stepPages = stepBytes / pageBytes;
  const buffer = Buffer.allocUnsafe(stepPages * pageBytes);
  let unsynced = 0;
  const wrote = (bytes: number): void => {
    unsynced += bytes;
    if (unsynced < syncBytes) return;
    fdatasyncSync(to);
    unsynced = 0;
  };
  const run = (first: number, count: number): void => {
    const at = (first - 1) * pageBytes;
    // Past the end of the file: the page is in the log, or was given back.
    const bytes = readWhole(from, buffer.subarray(0, count * pageBytes), at);
    writeWhole(to, buffer.subarray(0, bytes), at);
    wrote(bytes);
  };
  return {
    run,
    pagesOfSource: () => Math.ceil(fstatSync(from).size / pageBytes),
    setPages: (count) => ftruncateSync(to, count * pageBytes),
    pages(pages, between) {
      let copied = 0;
      for (let at = 0; at < pages.length;) {
        const first = pages[at] ?? 1;
        let count = 1;
        while (count < stepPages && pages[at + count] === first + count) count += 1;
        run(first, count);
        at += count;
        copied += count;
        if (copied < stepPages) continue;
        copied = 0;
        between();
      }
    },
    write(page, bytes) {
      writeWhole(to, bytes, (page - 1) * pageBytes);
      wrote(pageBytes);
    },
  };
}

interface End {
  copy: Copy;
  left: Set<number>;
}

/** The rest, as of one moment: no page of it is written to the file meanwhile that the log has not. */
function finish({ path, changed, held }: DatabaseFile, log: OpenLog, end: End): void {
  const hold = createHeldLog(held);
  hold.hold();
  try {
    for (let tries = 0; tries < mostTries; tries++) {
      const snapshot = openReading(path, 1024);
      try {
        snapshot.exec("BEGIN");
        snapshot.prepare("SELECT count(*) FROM sqlite_schema").get(); // a read transaction begins with its first read
        for (const page of takeChangedPages(changed)) end.left.add(page);
        const generation = log.generation();
        const whole = copyEnd(log, log.state().log, end);
        // Nothing but the snapshot keeps the log from being restarted, and that not where the file has all of the log.
        if (whole && log.generation() === generation) return;
      } finally {
        snapshot.close();
      }
    }
  } finally {
    hold.release();
  }
  throw new Error("the end of the copy was overtaken by writes again and again");
}

/**
 * What the log has is taken from there. It stays in `left`: a try that did not last has to copy it from the file. False: the log
 * has not all of these frames.
 */
function copyEnd(log: LogFile, frames: number, { copy, left }: End): boolean {
  /** The last frame of each page. */
  const newest = new Map<number, number>();
  let pagesAfter = copy.pagesOfSource();
  let at = 0;
  const found = log.frames(0, frames, (page, _bytes, after) => {
    newest.set(page, at++);
    if (after > 0) pagesAfter = after;
  });
  const inFile = [...left].filter((page) => !newest.has(page)).toSorted((a, b) => a - b);
  for (const page of newest.keys()) left.add(page);
  copy.pages(inFile, () => undefined);
  at = 0;
  const whole = log.frames(0, frames, (page, bytes) => {
    if (newest.get(page) === at++) copy.write(page, bytes);
  });
  copy.setPages(pagesAfter);
  return found && whole;
}

// The backup's side in its thread: a snapshot, the spool files that it names, the database page by page, and the check of the
// copy. The disk has as long to itself after each step as the step took, and a copy ends before a disk is full.
import { mkdirSync, renameSync, rmSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import type { Database } from "better-sqlite3";
import { systemClock, type Clock } from "../../clock.ts";
import type { BackupContent, StoreCopy } from "../../model/backup.ts";
import type { StoreCheck } from "../../model/store-check.ts";
import { lowerPriority } from "../../thread.ts";
import { checkStore } from "./store-check.ts";
import { linkOrCopy, sumFile, syncPath } from "./backup-files.ts";
import { databaseName, makeFile } from "./engine/open.ts";
import { checkIntegrity, openCopy } from "./engine/copy.ts";
import { copyLog, openSnapshot } from "./engine/snapshot.ts";
import { lowWaterBytes } from "./engine/space.ts";

export interface BackupWork {
  dataDir: string;
  directory: string;
  content: BackupContent;
  /** The copy is checked, with the files of content, and is of no use afterwards. */
  checkOnly: boolean;
  minFreeShare: number;
  /** A descriptor of the database's file, for its syncs: to close one would drop SQLite's locks, so there is one for all. */
  databaseFile: number;
  /** Not 0: it is to end. */
  ended: SharedArrayBuffer;
}

export type BackupReport =
  /** The snapshot's files are linked: others may be removed again. */
  | { kind: "linked" }
  /** The snapshot is closed, and the log may be restarted. */
  | { kind: "released" }
  | { kind: "progress"; share: number }
  | { kind: "done"; copy: StoreCopy }
  | { kind: "checked"; check: StoreCheck }
  | { kind: "failed"; why: "full" | "failed"; detail: string };

class Full extends Error {}

/** SQL: messages that are still to be sent to somebody. */
const unsentMessages = `SELECT message_key FROM recipients WHERE due_at IS NOT NULL
  UNION SELECT message_key FROM recipients WHERE lease_owner IS NOT NULL`;
/** Shares of the progress: the copy, then the check. */
const copyShare = 0.7;

/** To be called once, in the thread. */
export async function serveBackup(): Promise<void> {
  const port = parentPort;
  if (!port) throw new Error("the backup's thread is started by the store, not by hand");
  const report = (message: BackupReport): void => port.postMessage(message);
  try {
    lowerPriority();
    report(await copyStore(workerData as BackupWork, systemClock, report));
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const full = error instanceof Full || code === "SQLITE_FULL" || code === "ENOSPC" || code === "EDQUOT";
    report({ kind: "failed", why: full ? "full" : "failed", detail });
  }
}

async function copyStore(
  work: BackupWork,
  clock: Clock,
  report: (message: BackupReport) => void,
): Promise<BackupReport> {
  const path = join(work.dataDir, databaseName);
  const target = join(work.directory, databaseName);
  const ended = new Int32Array(work.ended);
  const stopIfEnded = (): void => {
    if (Atomics.load(ended, 0) !== 0) throw new Error("the service stopped before the backup was complete");
  };
  let began = clock.monotonic();
  /** Leaves the disk alone for as long as it was used since the last time. */
  const rest = (): void => {
    stopIfEnded();
    requireSpace(work, 0);
    Atomics.wait(ended, 0, 0, Math.min(1000, clock.monotonic() - began));
    stopIfEnded();
    began = clock.monotonic();
  };

  const snapshot = openSnapshot(path);
  let files: Pick<StoreCopy["counts"], "files" | "fileBytes" | "filesMissing"> | null = null;
  try {
    requireSpace(work, snapshot.bytes);
    if (!work.checkOnly) {
      files = linkFiles(snapshot.db, work, rest);
      report({ kind: "linked" });
    }
    makeFile(target);
    await snapshot.copyTo(target, (share) => {
      report({ kind: "progress", share: share * copyShare });
      rest();
    });
  } finally {
    snapshot.close();
    shortenLog(path, work.databaseFile, () => Atomics.load(ended, 0) !== 0);
    report({ kind: "released" });
  }
  if (files === null) {
    const checked = { target, dataDir: work.dataDir, now: clock.now() };
    return { kind: "checked", check: checkStore(checked, stopIfEnded) };
  }
  if (work.content === "unsent") dropSentContent(target, work, stopIfEnded);
  const facts = inspect(target, stopIfEnded);
  syncPath(target);
  syncPath(work.directory);
  report({ kind: "progress", share: 1 });
  const database = { path: databaseName, ...sumFile(target, stopIfEnded) };
  const counts = { ...facts.counts, ...files };
  return { kind: "done", copy: { schema: facts.schema, database, counts } };
}

/** What has gathered in the log is copied here, so that the writer need not; where it cannot be, the writer does. */
function shortenLog(path: string, databaseFile: number, isOver: () => boolean): void {
  try {
    copyLog(path, databaseFile, isOver);
  } catch {
    // the writer reports what is wrong with the database
  }
}

/** Checks the copy. */
function inspect(target: string, stopIfEnded: () => void) {
  const db = openCopy(target);
  try {
    checkIntegrity(db, target, stopIfEnded);
    return { schema: Number(db.pragma("user_version", { simple: true })), counts: countsOf(db) };
  } finally {
    db.close();
  }
}

/** Throws Full where either disk has less than the mark under which new mail is refused, and `bytes`, to spare. */
function requireSpace({ dataDir, directory, minFreeShare }: BackupWork, bytes: number): void {
  for (const [place, needed] of [
    [dataDir, 0],
    [directory, bytes],
  ] as const) {
    const disk = statfsSync(place);
    const free = disk.bavail * disk.bsize;
    const least = lowWaterBytes(disk, minFreeShare) + needed;
    if (free < least)
      throw new Full(
        `the disk of ${place} has ${megabytes(free)} free, and the backup needs ${megabytes(least)}, of which limits.min_free_space stays free`,
      );
  }
}

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1e6)} MB`;

/**
 * The files that the snapshot names, as links where the disk is the same, which cost no space. One that is not whole is left
 * out: a restore would refuse the backup for it.
 */
function linkFiles(db: Database, { dataDir, directory, content }: BackupWork, rest: () => void) {
  const [from, to] = [join(dataDir, "spool"), join(directory, "spool")];
  mkdirSync(to, { mode: 0o700 });
  const of = content === "unsent" ? `AND key IN (${unsentMessages})` : "";
  const named = db.prepare<[], { name: string; sizeBytes: number }>(
    `SELECT content_name AS name, size_bytes AS sizeBytes FROM messages WHERE content_name IS NOT NULL ${of}`,
  );
  const counts = { files: 0, fileBytes: 0, filesMissing: 0 };
  const folders = new Set<string>();
  for (const { name, sizeBytes } of named.iterate()) {
    const folder = name.slice(0, 2);
    if (!folders.has(folder)) mkdirSync(join(to, folder), { mode: 0o700 });
    folders.add(folder);
    const target = join(to, folder, name);
    if (linkOrCopy(join(from, folder, name), target) === sizeBytes) {
      counts.files += 1;
      counts.fileBytes += sizeBytes;
    } else {
      counts.filesMissing += 1;
      rmSync(target, { force: true });
    }
    if ((counts.files + counts.filesMissing) % filesAtOnce === 0) rest();
  }
  for (const folder of folders) syncPath(join(to, folder));
  syncPath(to);
  return counts;
}

const filesAtOnce = 50;

/**
 * As retention does it, but to all that is sent. What is left is written to a file of its own, so that nothing else stays in
 * unused pages: a VACUUM in place would hold the whole of it in memory (temp_store).
 */
function dropSentContent(target: string, work: BackupWork, stopIfEnded: () => void): void {
  const sent = `NOT IN (${unsentMessages})`;
  const packed = `${target}.packed`;
  const db = openCopy(target);
  try {
    db.pragma("journal_mode = OFF"); // of a copy that fails, nothing is kept
    db.exec(`BEGIN;
      DELETE FROM content WHERE message_key ${sent};
      DELETE FROM inbox WHERE message_key ${sent};
      UPDATE attempts SET trace = NULL WHERE trace IS NOT NULL AND message_key ${sent};
      UPDATE messages SET content_kind = NULL, content_name = NULL WHERE content_kind IS NOT NULL AND key ${sent};
      COMMIT;`);
    stopIfEnded();
    requireSpace(work, statSync(target).size);
    makeFile(packed);
    db.prepare("VACUUM INTO ?").run(packed);
  } finally {
    db.close();
  }
  renameSync(packed, target);
  stopIfEnded();
}

function countsOf(db: Database): { messages: number; unsentRecipients: number } {
  const row = db
    .prepare<[], { messages: number; unsentRecipients: number }>(
      `SELECT (SELECT count(*) FROM messages) AS messages,
         (SELECT count(*) FROM recipients WHERE due_at IS NOT NULL)
         + (SELECT count(*) FROM recipients WHERE lease_owner IS NOT NULL) AS unsentRecipients`,
    )
    .get();
  return { messages: row?.messages ?? 0, unsentRecipients: row?.unsentRecipients ?? 0 };
}

// Puts a backup in the place of a data directory, whose lock it holds meanwhile. The copy is complete, checked and on disk
// before anything of the directory is moved, and what stood there is kept in it under another name. All mail that was still
// to be sent is held for the operator: some of it may have been sent after the backup. The numbers of messages and events go
// on far above those that were given after the backup, so that no cursor and no return path means two things.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import type { Database } from "better-sqlite3";
import type { HeldOf, RestoreRequest, Restored } from "../../model/backup.ts";
import { asOwner } from "../../owner.ts";
import { syncPath } from "./backup-files.ts";
import { endFormerBoots } from "./boots.ts";
import { asDamage, StoreDamaged } from "./engine/corruption.ts";
import { lockDirectory } from "./engine/lock.ts";
import { databaseName, makeDirectory } from "./engine/open.ts";
import { checkIntegrity, openCopy } from "./engine/copy.ts";
import { firstOperatorHolder } from "./held-mail.ts";
import { migrate } from "./migrations.ts";
import { createQueueWrites } from "./queue.ts";
import { copyBackup } from "./restore-copy.ts";
import { sequenceNames } from "./sequences.ts";

const partialName = /^restore-(.*)\.partial$/;
/** What a data directory has of the store's; the rest (lock, socket, backups) stays. */
const storeEntries = [databaseName, `${databaseName}-wal`, `${databaseName}-shm`, "spool"];
/** Above this rate of events nobody sends; and what a short age may be wrong by. */
const numbersPerSecond = 10_000;
const leastGap = 1_000_000;

/** Throws StoreLocked, SchemaRefused, StoreDamaged, and where a file is not whole; nothing of the directory is changed then. */
export function restoreStore(request: RestoreRequest): Restored {
  makeDirectory(request.dataDir);
  // As root in a directory of another: the owner could put a link in the place of what root is about to write.
  return asOwner(statSync(request.dataDir), () => restoreAsOwner(request));
}

function restoreAsOwner(request: RestoreRequest): Restored {
  const { from, dataDir, stamp, others } = request;
  const lock = lockDirectory(dataDir);
  const partial = join(dataDir, `restore-${stamp}.partial`);
  try {
    undoInterrupted(dataDir, others);
    removePartials(dataDir);
    mkdirSync(partial, { mode: 0o700 });
    const path = join(partial, databaseName);
    copyBackup(from, partial, ["spool", ...others]);
    const prepared = prepare(path, request);
    const filesMissing = verifyContent(path, join(partial, "spool"), request);
    syncPath(path);
    syncPath(partial);
    const aside = putInPlace(dataDir, partial, { others, folder: `before-restore-${stamp}` });
    return { ...prepared, aside, filesMissing };
  } finally {
    rmSync(partial, { recursive: true, force: true });
    lock.release();
  }
}

/**
 * Throws where a restore was killed between its moves: a database that is made now would be an empty one, and would have the
 * engine delete the log of the former one.
 */
export function refuseHalfRestored(dataDir: string): void {
  if (hasStore(dataDir)) return;
  if (readdirSync(dataDir).some((name) => partialName.test(name)))
    throw new StoreDamaged(
      `${dataDir} has no ${databaseName}: a restore was cut short. Run svc restore again: it begins by putting back what it had moved`,
    );
  if (existsSync(join(dataDir, `${databaseName}-wal`)))
    throw new StoreDamaged(
      `${dataDir} has no ${databaseName}, and the log of one: put its database back beside it`,
    );
}

/** Whether a restore would move something aside. Throws where this user may not look. */
export function hasStore(dataDir: string): boolean {
  return statSync(join(dataDir, databaseName), { throwIfNoEntry: false }) !== undefined;
}

/** Its database is a file of no octets, which a connection that writes would make a new one of. */
export function hasEmptyStore(dataDir: string): boolean {
  return statSync(join(dataDir, databaseName), { throwIfNoEntry: false })?.size === 0;
}

function removePartials(dataDir: string): void {
  for (const name of readdirSync(dataDir))
    if (partialName.test(name)) rmSync(join(dataDir, name), { recursive: true });
}

/**
 * What a restore that was killed between its moves had moved aside goes back. The spool is the first that it puts in place:
 * where it still has its own, nothing of the directory is the restored one's.
 */
function undoInterrupted(dataDir: string, others: readonly string[]): void {
  if (hasStore(dataDir)) return; // none was, or it was complete but for its empty folder
  for (const name of readdirSync(dataDir)) {
    const [, stamp] = partialName.exec(name) ?? [];
    const aside = join(dataDir, `before-restore-${stamp}`);
    if (stamp === undefined || !existsSync(aside)) continue;
    if (!existsSync(join(dataDir, name, "spool")))
      for (const restored of ["spool", ...others])
        rmSync(join(dataDir, restored), { recursive: true, force: true });
    for (const entry of readdirSync(aside).toSorted(databaseLast))
      renameSync(join(aside, entry), join(dataDir, entry));
    rmdirSync(aside);
    syncPath(dataDir);
  }
}

const databaseLast = (a: string, b: string): number =>
  Number(a === databaseName) - Number(b === databaseName);

function prepare(path: string, { now, createdAt }: RestoreRequest): Pick<Restored, "held" | "schema"> {
  try {
    const db = openCopy(path);
    try {
      checkIntegrity(db, path);
      migrate(db, path);
      db.exec("BEGIN");
      holdUnsent(db, now);
      raiseNumbers(db, leastGap + numbersPerSecond * Math.ceil(Math.max(0, now - createdAt) / 1000));
      db.exec("COMMIT");
      return { held: heldOf(db), schema: Number(db.pragma("user_version", { simple: true })) };
    } finally {
      db.close();
    }
  } catch (error) {
    throw asDamage(error, path);
  }
}

/** Attempts that were under way are recorded as interrupted, as after a crash. Held mail keeps when it would be due. */
function holdUnsent(db: Database, now: number): void {
  endFormerBoots(db);
  createQueueWrites(db).takeBackLeases({ owner: "restore", now, localQueue: "" });
  const hold = db.prepare(
    `UPDATE recipients SET held_since = coalesce(held_since, max(coalesce(due_at, @now), @now)), due_at = NULL,
       lease_owner = '${firstOperatorHolder}' || account_key
     WHERE key IN (SELECT key FROM recipients WHERE due_at IS NOT NULL
       UNION ALL SELECT key FROM recipients WHERE lease_owner < '${firstOperatorHolder}')`,
  );
  hold.run({ now });
}

function raiseNumbers(db: Database, gap: number): void {
  const raise = db.prepare(
    "INSERT INTO sequences (name, last) VALUES (@name, @gap) ON CONFLICT (name) DO UPDATE SET last = last + @gap",
  );
  for (const name of sequenceNames) raise.run({ name, gap });
}

function heldOf(db: Database): HeldOf[] {
  return db
    .prepare<[], HeldOf>(
      `SELECT a.name AS account, count(*) AS recipients FROM recipients r JOIN accounts a ON a.key = r.account_key
       WHERE r.lease_owner >= '${firstOperatorHolder}' GROUP BY a.name ORDER BY a.name`,
    )
    .all();
}

/** Throws where a file of content is not as long as its message, or one is missing that the backup had; answers how many it had not. */
function verifyContent(path: string, spool: string, { from, counts }: RestoreRequest): number {
  const db = openCopy(path);
  try {
    const named = db.prepare<[], { name: string; sizeBytes: number }>(
      "SELECT content_name AS name, size_bytes AS sizeBytes FROM messages WHERE content_name IS NOT NULL",
    );
    let [files, missing, aMissing] = [0, 0, ""];
    for (const { name, sizeBytes } of named.iterate()) {
      const inSpool = join(name.slice(0, 2), name);
      const found = lstatSync(join(spool, inSpool), { throwIfNoEntry: false });
      if (found && found.size !== sizeBytes)
        throw new Error(
          `${join(from, "spool", inSpool)} is not the file that was written: found ${found.size} bytes, expected ${sizeBytes}. ${whatToDo}`,
        );
      if (found) files += 1;
      else [missing, aMissing] = [missing + 1, join(from, "spool", inSpool)];
    }
    if (files !== counts.files || missing !== counts.filesMissing)
      throw new Error(
        `${from} has ${files} files of content and lacks ${missing}${missing > 0 ? ` (${aMissing} is one)` : ""}; backup.json says that it has ${counts.files} and lacks ${counts.filesMissing}. ${whatToDo}`,
      );
    return missing;
  } finally {
    db.close();
  }
}

const whatToDo = "Restore another backup, or see docs/backup.md on one that is damaged";

/**
 * Moves what stands in the directory aside, and the restored in its place. Answers where the former is; null: there was
 * nothing. Where an entry cannot be moved, all go back.
 */
function putInPlace(
  dataDir: string,
  partial: string,
  { others, folder }: { others: readonly string[]; folder: string },
): string | null {
  const there = [...storeEntries, ...others].filter((name) => existsSync(join(dataDir, name)));
  const aside = join(dataDir, folder);
  const moved: [from: string, to: string][] = [];
  const move = (from: string, to: string): void => {
    renameSync(from, to);
    moved.push([from, to]);
  };
  if (there.length > 0) mkdirSync(aside, { mode: 0o700 });
  try {
    for (const name of there) move(join(dataDir, name), join(aside, name));
    if (there.length > 0) syncPath(aside);
    // The database last: a directory without one is not taken for a restored one.
    for (const name of ["spool", ...others, databaseName])
      if (existsSync(join(partial, name))) move(join(partial, name), join(dataDir, name));
  } catch (error) {
    for (const [from, to] of moved.toReversed()) renameSync(to, from);
    if (there.length > 0) rmdirSync(aside);
    throw error;
  }
  syncPath(dataDir);
  return there.length > 0 ? aside : null;
}

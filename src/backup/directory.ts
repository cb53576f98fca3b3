// A backup on disk: `svc-<time>Z/`, which has its name only once everything in it is written, verified and synced. Also the
// list of those in a folder, and the removal of old ones.
import { randomBytes } from "node:crypto";
import { chmod, copyFile, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isoTime } from "../clock.ts";
import type { Log } from "../log.ts";
import type { BackupContent, CopyRequest, StoreCopy } from "../model/backup.ts";
import { manifestName, manifestOf, readManifest, sumOf, type BackupFile, type Manifest } from "./manifest.ts";

export interface BackupPlan {
  to: string;
  content: BackupContent;
  scheduled: boolean;
}

export interface BackupParts {
  copyInto(request: CopyRequest): Promise<StoreCopy>;
  dataDir: string;
  hostname: string;
  version: string;
  /** The configuration files. */
  configFiles: readonly string[];
  log: Pick<Log, "warn">;
}

export interface Backup extends Manifest {
  /** The directory. */
  path: string;
}

const completeName = /^svc-\d{8}T\d{6}Z$/;
const partialName = /^\.svc-\d{8}T\d{6}Z-[0-9a-f]{8}\.partial$/;
const partialsKeptMs = 86_400_000;

/** `20261127T091522Z` */
export const stampOf = (ms: number): string => isoTime(ms).replace(/[-:]|\.\d+/g, "");

/** Makes one backup; nothing of it stays where it fails. */
export async function makeBackup(
  parts: BackupParts,
  { to, content, scheduled }: BackupPlan,
  createdAt: number,
  { onProgress, signal }: Pick<CopyRequest, "onProgress" | "signal">,
): Promise<Backup> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  await removeAbandoned(to, createdAt);
  const name = await freeName(to, createdAt);
  const path = join(to, name);
  const partial = partialOf(path);
  await mkdir(partial, { mode: 0o700 });
  try {
    signal.throwIfAborted();
    const copy = await parts.copyInto({ directory: partial, content, onProgress, signal });
    const { version, hostname } = parts;
    const files: BackupFile[] = [
      copy.database,
      ...(await copyFolder(join(parts.dataDir, "tls"), partial, "tls")),
      ...(await copyConfig(parts, partial)),
    ];
    const manifest = manifestOf(copy, { version, hostname, scheduled, content, files, createdAt });
    await writeSynced(join(partial, manifestName), `${JSON.stringify(manifest, null, 2)}\n`);
    await syncFolder(partial);
    await rename(partial, path);
    await syncFolder(to);
    return { path, ...manifest };
  } catch (error) {
    // A thread that was not waited for may still write one of its files.
    await rm(partial, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
    throw error;
  }
}

/** Complete ones, the newest first, `most` of them. */
export async function listBackups(to: string, most = Infinity): Promise<Backup[]> {
  const names = await readdir(to).catch(() => []);
  const found: Backup[] = [];
  for (const name of names
    .filter((one) => completeName.test(one))
    .toSorted()
    .toReversed()) {
    if (found.length >= most) break;
    const path = join(to, name);
    const manifest = await readManifest(path).catch(() => null); // null: somebody else's
    if (manifest) found.push({ path, ...manifest });
  }
  return found;
}

/** Removes all but the newest `keep` of those that the daily job made, and answers their paths. */
export async function removeOld(to: string, keep: number): Promise<string[]> {
  const old = (await listBackups(to)).filter(({ scheduled }) => scheduled).slice(keep);
  for (const { path } of old) {
    // Half removed, it is none: its manifest might be the last that goes.
    const partial = partialOf(path);
    await rename(path, partial);
    await rm(partial, { recursive: true });
  }
  return old.map(({ path }) => path);
}

const partialOf = (path: string): string =>
  join(dirname(path), `.${basename(path)}-${randomBytes(4).toString("hex")}.partial`);

/** Of its second, or of the next one that has no backup. */
async function freeName(to: string, createdAt: number): Promise<string> {
  const taken = new Set(await readdir(to));
  for (let at = createdAt; ; at += 1000) {
    const name = `svc-${stampOf(at)}`;
    if (!taken.has(name)) return name;
  }
}

/** What a process that was killed left; where it was another user's (an offline backup by root), it is not ours to remove. */
async function removeAbandoned(to: string, now: number): Promise<void> {
  for (const name of await readdir(to)) {
    if (!partialName.test(name)) continue;
    const path = join(to, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: now }));
    if (now - mtimeMs > partialsKeptMs) await rm(path, { recursive: true }).catch(() => undefined);
  }
}

async function copyFolder(from: string, partial: string, folder: string): Promise<BackupFile[]> {
  const names = await readdir(from, { withFileTypes: true }).catch(() => []);
  const plain = names.filter((entry) => entry.isFile()).map(({ name }) => name);
  if (plain.length === 0) return [];
  await mkdir(join(partial, folder), { mode: 0o700 });
  const files: BackupFile[] = [];
  for (const name of plain) files.push(await copySynced(join(from, name), partial, `${folder}/${name}`));
  await syncFolder(join(partial, folder));
  return files;
}

/** They may have the same name in different folders. One that was removed since the start is left out: the mail must be backed up without it. */
async function copyConfig(
  { configFiles, log }: Pick<BackupParts, "configFiles" | "log">,
  partial: string,
): Promise<BackupFile[]> {
  if (configFiles.length === 0) return [];
  await mkdir(join(partial, "config"), { mode: 0o700 });
  const files: BackupFile[] = [];
  for (const origin of configFiles) {
    const taken = new Set(files.map((file) => basename(file.path)));
    let name = basename(origin);
    for (let n = 1; taken.has(name); n++) name = `${n}-${basename(origin)}`;
    try {
      files.push({ ...(await copySynced(origin, partial, `config/${name}`)), origin });
    } catch (error) {
      if (!isMissing(error)) throw error;
      log.warn(
        { path: origin },
        "the backup has not this configuration file: it was removed since the start",
      );
    }
  }
  await syncFolder(join(partial, "config"));
  return files;
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT";

async function copySynced(from: string, partial: string, path: string): Promise<BackupFile> {
  const target = join(partial, path);
  await copyFile(from, target);
  await chmod(target, 0o600);
  await syncFolder(target);
  return { path, ...(await sumOf(target)) };
}

async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A folder or a file. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

// backup.json: what a backup is of, and the sums of its files. The files of content are counted, and not summed: most are
// links to files that are never changed, and the database has their sizes.
import { createHash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { lstat, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isoTime } from "../clock.ts";
import { backupContents, type BackupContent, type FileSum, type StoreCopy } from "../model/backup.ts";

export const manifestName = "backup.json";
const format = 1;
/** Without its sum, nothing would tell that it is the one that was written. */
const databaseName = "svc.db";
const countNames: (keyof Manifest["counts"])[] = [
  "messages",
  "unsent_recipients",
  "files",
  "file_bytes",
  "files_missing",
];
/** It has a line for each certificate and configuration file. */
const manifestBytes = 1_000_000;

export interface BackupFile extends FileSum {
  /** Where a configuration file stood. */
  origin?: string;
}

/** As it stands in backup.json. */
export interface Manifest {
  format: number;
  /** Of the program that made it. */
  version: string;
  schema: number;
  /** The backup has all that was acknowledged before. */
  created_at: string;
  hostname: string;
  /** Made by the daily job, which keeps the newest `backup.keep`. */
  scheduled: boolean;
  content: BackupContent;
  counts: {
    messages: number;
    unsent_recipients: number;
    files: number;
    file_bytes: number;
    files_missing: number;
  };
  files: BackupFile[];
}

export class BackupUnusable extends Error {}

export function manifestOf(
  copy: StoreCopy,
  facts: Pick<Manifest, "version" | "hostname" | "scheduled" | "content" | "files"> & { createdAt: number },
): Manifest {
  const { version, hostname, scheduled, content, files, createdAt } = facts;
  const { counts, schema } = copy;
  return {
    format,
    version,
    schema,
    created_at: isoTime(createdAt),
    hostname,
    scheduled,
    content,
    counts: {
      messages: counts.messages,
      unsent_recipients: counts.unsentRecipients,
      files: counts.files,
      file_bytes: counts.fileBytes,
      files_missing: counts.filesMissing,
    },
    files,
  };
}

/** Throws BackupUnusable for a directory that is not a complete backup. */
export async function readManifest(directory: string): Promise<Manifest> {
  const path = join(directory, manifestName);
  const text = await readText(path);
  if (text === null)
    throw new BackupUnusable(
      `${directory} has no ${manifestName}: it is not a backup, or one that was not completed`,
    );
  const value = parsed(text);
  if (!isManifest(value)) throw new BackupUnusable(`${path} is not what svc backup writes`);
  if (value.format > format)
    throw new BackupUnusable(
      `${path} has format ${value.format}; this program knows formats up to ${format}`,
    );
  return value;
}

/** Throws BackupUnusable where a file is missing or is not the one that was written. */
export async function verifyFiles(directory: string, { files }: Manifest): Promise<void> {
  for (const { path, bytes, sha256 } of files) {
    const whole = join(directory, path);
    const found = await sumOf(whole).catch(() => null);
    if (found === null) throw new BackupUnusable(`${whole} cannot be read`);
    if (found.bytes !== bytes || found.sha256 !== sha256)
      throw new BackupUnusable(
        `${whole} is not the file that was written: found ${found.bytes} bytes with sha256 ${found.sha256}, expected ${bytes} with ${sha256}`,
      );
  }
}

export async function sumOf(path: string): Promise<{ bytes: number; sha256: string }> {
  // Nor is the folder a link, which would lead out of the backup.
  if (!(await lstat(path)).isFile() || !(await lstat(dirname(path))).isDirectory())
    throw new Error(`${path} is not a file`);
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest("hex") };
}

/** null: there is none. A pipe is not waited for, and no more is read than a manifest has. */
async function readText(path: string): Promise<string | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null);
  if (file === null) return null;
  try {
    const facts = await file.stat();
    if (!facts.isFile()) throw new BackupUnusable(`${path} is not a file`);
    if (facts.size > manifestBytes)
      throw new BackupUnusable(
        `${path} is not what svc backup writes: it has ${facts.size} bytes, more than ${manifestBytes}`,
      );
    const { buffer, bytesRead } = await file.read(Buffer.alloc(facts.size), 0, facts.size, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What the program goes by; a path in it never leads out of the backup. */
function isManifest(value: unknown): value is Manifest {
  if (typeof value !== "object" || value === null) return false;
  const {
    format: form,
    version,
    schema,
    created_at: at,
    hostname,
    content,
    files,
    counts,
  } = value as Manifest;
  return (
    [form, schema].every((number) => Number.isInteger(number)) &&
    [version, hostname].every((text) => typeof text === "string") &&
    !Number.isNaN(Date.parse(at)) &&
    backupContents.includes(content) &&
    isCounts(counts) &&
    Array.isArray(files) &&
    files.some(({ path }) => path === databaseName) &&
    files.every(
      (file) =>
        isInside(file.path) &&
        ["string", "undefined"].includes(typeof file.origin) &&
        Number.isInteger(file.bytes) &&
        /^[0-9a-f]{64}$/.test(file.sha256),
    )
  );
}

const isCounts = (counts: unknown): boolean =>
  typeof counts === "object" &&
  counts !== null &&
  countNames.every((name) => Number.isInteger((counts as Record<string, unknown>)[name]));

const isInside = (path: unknown): boolean =>
  typeof path === "string" &&
  /^[^/]/.test(path) &&
  path.split("/").length <= 2 &&
  path.split("/").every((part) => part !== "" && part !== "..");

// The bytes of messages. Up to 64 KB they ride in the commit that names them; above, they are streamed to
// spool/ab/<name>, file and folders synced before the transaction that names the file. A file that no message names is
// an orphan of a crash or a refusal and is swept at start.
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { mkdir, open, unlink } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { PutContent } from "../../model/content.ts";
import { ContentGone, StoreUnavailable } from "../store.ts";

/** Content up to this many bytes is a row of the database. */
export const inlineLimit = 64 * 1024;
const writeChunk = 256 * 1024;
const readChunk = 64 * 1024;
const spoolName = /^[0-9a-f]{32}$/;
const spoolFolder = /^[0-9a-f]{2}$/;

export interface Spool {
  put(bytes: AsyncIterable<Uint8Array>): Promise<PutContent>;
  drop(content: PutContent): Promise<void>;
  /** The file's bytes from `offset` on. Throws ContentGone. */
  open(name: string, offset: number): AsyncIterable<Buffer>;
  /** The file itself, open for reading; the caller closes it. Throws ContentGone. */
  openFile(name: string): Promise<FileHandle>;
  /** Until the function that it returns is called, files that are dropped stay: a backup is about to link them. */
  keepFiles(): () => void;
  /** True if it has no file at all. */
  empty(): boolean;
  /** Removes every file that `named` does not know; answers how many. Before anything is put. */
  sweep(named: (name: string) => boolean): number;
}

/** `onRefusal` hears of a write that the disk refused. */
export function createSpool(directory: string, onRefusal: (why: "full" | "failed") => void): Spool {
  const pathOf = (name: string): string => {
    if (!spoolName.test(name)) throw new Error(`not a spool file's name: ${JSON.stringify(name)}`);
    return join(directory, name.slice(0, 2), name);
  };

  /** Folders of which this process knows that their own entries are on disk: one that stands need not be. */
  const settled = new Set<string>();
  const syncFolders = async (folder: string): Promise<void> => {
    await onDisk(syncFolder(folder));
    if (settled.has(folder)) return;
    await onDisk(syncFolder(directory));
    await onDisk(syncFolder(dirname(directory)));
    settled.add(folder);
  };

  const write = async (first: Uint8Array[], rest: AsyncIterator<Uint8Array>): Promise<PutContent> => {
    const name = randomBytes(16).toString("hex");
    const path = pathOf(name);
    const folder = join(directory, name.slice(0, 2));
    let file: FileHandle | null = null;
    try {
      await onDisk(mkdir(folder, { recursive: true, mode: 0o700 }));
      file = await onDisk(open(path, "wx", 0o600));
      const sizeBytes = await writeAll(file, first, rest);
      await onDisk(file.sync());
      await onDisk(file.close());
      file = null;
      await syncFolders(folder);
      return { kind: "spool", name, sizeBytes };
    } catch (error) {
      await file?.close().catch(() => undefined);
      await unlink(path).catch(() => undefined);
      if (error instanceof StoreUnavailable) onRefusal(error.why);
      throw error;
    }
  };

  const openFile = (name: string): Promise<FileHandle> =>
    open(pathOf(name), "r").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") throw new ContentGone(`the content ${name} was removed`);
      throw error;
    });

  const remove = (name: string): Promise<void> =>
    unlink(pathOf(name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
  /** What was dropped while files are kept; one that a crash leaves is an orphan, swept at the next start. */
  let dropped: string[] | null = null;

  return {
    async put(bytes) {
      const iterator = bytes[Symbol.asyncIterator]();
      const held: Uint8Array[] = [];
      let size = 0;
      try {
        for (;;) {
          const { done, value } = await iterator.next();
          if (done) return { kind: "inline", bytes: Buffer.concat(held, size) };
          held.push(value);
          size += value.byteLength;
          if (size > inlineLimit) return await write(held, iterator);
        }
      } catch (error) {
        await iterator.return?.().catch(() => undefined);
        throw error;
      }
    },
    async drop(content) {
      if (content.kind === "inline") return;
      if (dropped) dropped.push(content.name);
      else await remove(content.name);
    },
    keepFiles() {
      const mine = (dropped ??= []);
      return () => {
        if (dropped !== mine) return;
        dropped = null;
        for (const name of mine) void remove(name).catch(() => undefined);
      };
    },
    async *open(name, offset) {
      const file = await openFile(name);
      try {
        let position = offset;
        for (;;) {
          const { bytesRead, buffer } = await file.read(
            Buffer.allocUnsafeSlow(readChunk),
            0,
            readChunk,
            position,
          );
          if (bytesRead === 0) return;
          position += bytesRead;
          yield bytesRead === readChunk ? buffer : buffer.subarray(0, bytesRead);
        }
      } finally {
        await file.close();
      }
    },
    openFile: async (name) => openFile(name),
    empty() {
      if (!existsSync(directory)) return true;
      const folders = readdirSync(directory).filter((folder) => spoolFolder.test(folder));
      return folders.every((folder) => readdirSync(join(directory, folder)).length === 0);
    },
    sweep(named) {
      if (!existsSync(directory)) return 0;
      let swept = 0;
      for (const folder of readdirSync(directory)) {
        if (!spoolFolder.test(folder)) continue;
        for (const name of readdirSync(join(directory, folder))) {
          if (!spoolName.test(name) || named(name)) continue;
          rmSync(join(directory, folder, name));
          swept++;
        }
      }
      return swept;
    },
  };
}

/** Writes in large pieces, whatever the pieces that come; answers the size. */
async function writeAll(
  file: FileHandle,
  first: Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): Promise<number> {
  let pieces = first;
  let gathered = first.reduce((sum, piece) => sum + piece.byteLength, 0);
  let size = gathered;
  for (;;) {
    const { done, value } = await rest.next();
    if (!done) {
      pieces.push(value);
      gathered += value.byteLength;
      size += value.byteLength;
    }
    if (pieces.length > 0 && (done || gathered >= writeChunk)) {
      await onDisk(file.appendFile(Buffer.concat(pieces, gathered)));
      pieces = [];
      gathered = 0;
    }
    if (done) return size;
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** A failure of the disk as StoreUnavailable; what the source of the bytes throws stays what it is. */
async function onDisk<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    const full = code === "ENOSPC" || code === "EDQUOT";
    throw new StoreUnavailable(
      full ? "full" : "failed",
      error instanceof Error ? error.message : String(error),
      { cause: error },
    );
  }
}

// Files of a backup: linked where the disk is the same, else copied; on disk before they count.
import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
  statSync,
} from "node:fs";

/** Answers the file's size; null: there is none. A copy is synced, a linked file is already. */
export function linkOrCopy(from: string, to: string): number | null {
  try {
    linkSync(from, to);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT") return null;
    if (code !== "EXDEV" && code !== "EPERM" && code !== "EMLINK") throw error;
    copyWhole(from, to);
  }
  return statSync(to).size;
}

export function copyWhole(from: string, to: string): void {
  copyFileSync(from, to);
  chmodSync(to, 0o600);
  syncPath(to);
}

export function syncPath(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Of a thread: `between` is called after each piece. */
export function sumFile(path: string, between: () => void): { bytes: number; sha256: string } {
  const hash = createHash("sha256");
  const piece = Buffer.allocUnsafe(sumPieceBytes);
  const file = openSync(path, "r");
  let bytes = 0;
  try {
    for (let read = -1; read !== 0; bytes += read) {
      read = readSync(file, piece, 0, piece.length, null);
      hash.update(piece.subarray(0, read));
      between();
    }
  } finally {
    closeSync(file);
  }
  return { bytes, sha256: hash.digest("hex") };
}

const sumPieceBytes = 1024 * 1024;

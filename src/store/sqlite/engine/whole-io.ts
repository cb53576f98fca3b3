// Reads and writes at a place of a file, whole: a call to the system may take or give less than it was asked to, as write(2)
// on a disk that is almost full does without an error.
import { readSync, writeSync } from "node:fs";

/** Fills `bytes` from `at` on; answers how many there were before the file's end. */
export function readWhole(file: number, bytes: Uint8Array, at: number): number {
  let done = 0;
  while (done < bytes.length) {
    const read = readSync(file, bytes, done, bytes.length - done, at + done);
    if (read === 0) break;
    done += read;
  }
  return done;
}

/** Throws where not all of it could be written. */
export function writeWhole(file: number, bytes: Uint8Array, at: number): void {
  for (let done = 0; done < bytes.length;)
    done += writeSync(file, bytes, done, bytes.length - done, at + done);
}

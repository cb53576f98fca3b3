// A small disk of the test's own (tmpfs, root only) that can be filled to the last byte and freed again.
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "./folders.ts";

export interface SmallDisk {
  path: string;
  freeBytes(): number;
  /** Takes space until only `leaveBytes` are free. */
  fill(leaveBytes?: number): void;
  /** Gives back what `fill` took. */
  free(): void;
  unmount(): void;
}

export function mountSmallDisk(megabytes: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), "svc-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path]);
  let fillers: string[] = [];
  const freeBytes = (): number => {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  };
  return {
    path,
    freeBytes,
    fill(leaveBytes = 0) {
      const filler = join(path, `filler-${fillers.length}`);
      fillers.push(filler);
      const file = openSync(filler, "w");
      try {
        for (let room = freeBytes() - leaveBytes; room > 0; room = freeBytes() - leaveBytes)
          writeSync(file, Buffer.alloc(Math.min(room, 1024 * 1024)));
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
      } finally {
        closeSync(file);
      }
    },
    free() {
      for (const filler of fillers) rmSync(filler);
      fillers = [];
    },
    unmount() {
      execFileSync("umount", ["-l", path]);
      removeFolder(path);
    },
  };
}

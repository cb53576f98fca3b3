// Is there room to take more in? Free space is looked at, at most once a second; under the mark new mail is refused
// before the disk is really full, and the rest serves what was accepted. After a refused write a small one is tried
// again and again, so that no restart is needed when there is room again.
import { statfsSync, type StatsFs } from "node:fs";
import type { Clock, Timer } from "../../../clock.ts";

/** What a mail of the largest size needs at the worst moment, and a little more. */
const leastFreeBytes = 40 * 1024 * 1024;
const lookAgainMs = 1000;
const probeEachMs = 2000;

/** Free bytes under which a disk counts as full; 0 where the mark is switched off. */
export function lowWaterBytes({ blocks, bsize }: StatsFs, minFreeShare: number): number {
  return minFreeShare <= 0 ? 0 : Math.max(leastFreeBytes, minFreeShare * blocks * bsize);
}

export interface Space {
  full(): boolean;
  /** Bytes that are free before it is full, as of the last look; any number where the mark is switched off. */
  room(): number;
  freeBytes(): number;
  /** False since the last write was refused. */
  writable(): boolean;
  noteRefusal(why: "full" | "failed"): void;
  noteSuccess(): void;
  stop(): void;
}

/** `minFreeShare` of the disk's size, 0 to 1; 0 leaves only the refused writes. `probe` resolves when a write went through. */
export function createSpace(deps: {
  directory: string;
  clock: Clock;
  minFreeShare: number;
  probe: () => Promise<void>;
}): Space {
  const { directory, clock, minFreeShare } = deps;
  let refused: "full" | "failed" | null = null;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let low = false;
  let roomBytes = Infinity;
  let timer: Timer | null = null;
  let stopped = false;

  const look = (): boolean => {
    if (minFreeShare <= 0) return false;
    const now = clock.monotonic();
    if (now - lookedAt < lookAgainMs) return low;
    lookedAt = now;
    try {
      const disk = statfsSync(directory);
      const over = disk.bavail * disk.bsize - lowWaterBytes(disk, minFreeShare);
      low = over < 0;
      roomBytes = Math.max(0, over);
    } catch {
      low = false; // a disk that cannot be asked shows itself at the next write
      roomBytes = Infinity;
    }
    return low;
  };

  const probeLater = (): void => {
    if (timer || stopped) return;
    timer = clock.after(probeEachMs, () => {
      timer = null;
      deps.probe().catch(probeLater);
    });
  };

  return {
    full: () => refused === "full" || look(),
    room() {
      look();
      return roomBytes;
    },
    freeBytes() {
      const { bavail, bsize } = statfsSync(directory);
      return bavail * bsize;
    },
    writable: () => refused === null,
    noteRefusal(why) {
      refused = why;
      probeLater();
    },
    noteSuccess() {
      refused = null;
      timer?.cancel();
      timer = null;
    },
    stop() {
      stopped = true;
      timer?.cancel();
      timer = null;
    },
  };
}

// Gives pages that nothing uses back to the disk, in small steps. Pages that mail will soon fill again are not among
// them, so that a busy store does not shrink and grow all day: only as many are returned as stood empty during the
// whole of the last ten minutes, and those above 65,536 (512 MB).
import type { Database, Statement } from "better-sqlite3";

const windowMs = 600_000;
/** Pages that stay in any case. */
const leastKept = 256;
/** And the most that stay: SQLite looks for the page to free in the list of all free ones, so that must not grow long. */
const mostKept = 65_536;
/** Entries of that list that one step may look at, which takes 10 to 20 ms. */
const mostLookedAt = 32_000_000;

/** Of a step: the pages that were returned, and whether there are more. `all`: also those that stood empty for a moment only. */
export type IncrementalVacuum = (
  now: number,
  limit: number,
  all?: boolean,
) => { pages: number; more: boolean };

export function createIncrementalVacuum(db: Database): IncrementalVacuum {
  const freePages: Statement<[], { freelist_count: number }> = db.prepare("PRAGMA freelist_count");
  let window = { from: Number.NEGATIVE_INFINITY, lowest: 0 };
  let idle = 0;

  return (now, limit, all = false) => {
    const free = freePages.get()?.freelist_count ?? 0;
    window.lowest = Math.min(window.lowest, free);
    if (now - window.from >= windowMs || now < window.from) {
      idle = window.lowest - leastKept;
      window = { from: now, lowest: free };
    }
    idle = Math.max(Math.min(all ? free : idle, free - leastKept), free - mostKept, 0);
    if (idle === 0) return { pages: 0, more: false };
    const pages = Math.min(idle, Math.max(1, Math.min(limit, Math.floor(mostLookedAt / free))));
    db.pragma(`incremental_vacuum(${pages})`);
    idle -= pages;
    window.lowest -= pages;
    return { pages, more: idle > 0 };
  };
}

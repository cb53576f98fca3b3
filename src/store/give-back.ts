// Gives pages that nothing uses back to the disk, in small steps. Pages that mail will fill again are not among them: only
// as many as stood empty during the whole of the last ten minutes are given back, so that a busy store does not shrink
// and grow all day.
import type { Database, Statement } from "better-sqlite3";

const windowMs = 600_000;
/** Pages that stay in any case. */
const keptPages = 256;
/** SQLite looks for the page to free in the list of all free ones: fewer at a time where that is long. */
const mostLookedAt = 32_000_000;

/** Of a step: the pages that were given back, and whether there are more. */
export type GiveBack = (now: number, limit: number) => { pages: number; more: boolean };

export function createGiveBack(db: Database): GiveBack {
  const freePages: Statement<[], { freelist_count: number }> = db.prepare("PRAGMA freelist_count");
  let window = { from: Number.NEGATIVE_INFINITY, lowest: 0 };
  let idle = 0;

  return (now, limit) => {
    const free = freePages.get()?.freelist_count ?? 0;
    window.lowest = Math.min(window.lowest, free);
    if (now - window.from >= windowMs || now < window.from) {
      idle = Math.max(0, window.lowest - keptPages);
      window = { from: now, lowest: free };
    }
    idle = Math.min(idle, Math.max(0, free - keptPages));
    if (idle === 0) return { pages: 0, more: false };
    const pages = Math.min(idle, Math.max(1, Math.min(limit, Math.floor(mostLookedAt / free))));
    db.pragma(`incremental_vacuum(${pages})`);
    idle -= pages;
    window.lowest -= pages;
    return { pages, more: idle > 0 };
  };
}

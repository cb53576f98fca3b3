// Ranked lists of the statistics, largest first. A page continues after the count and key of the last row of the page
// before, by the current counts: a row that grows past that position between two pages is not shown. A client that needs
// every row exactly once requests a range that has ended.
import { decodeCursor, encodeCursor } from "../cursor.ts";
import type { Totals } from "../model/counters.ts";
import type { Page, PageRequest } from "../model/page.ts";

export interface RankedKey {
  key: string;
  totals: Totals;
}

/** What was taken on or, for what is only known from attempts, what ended; each kind of list has one of these. */
export function sizeOf({ accepted, delivered, bounced, attempts }: Totals): number {
  return Math.max(accepted, delivered + bounced, attempts);
}

/** `list`: names it in the cursor. Throws Refusal invalid_request, field `cursor`. */
export function pageOfRanking(list: string, rows: readonly RankedKey[], page: PageRequest): Page<RankedKey> {
  const after = decodeCursor(`stats ${list}`, page.cursor, ["number", "string"]);
  const ranked = rows
    .map((row) => ({ row, place: [sizeOf(row.totals), row.key] as [number, string] }))
    .filter(({ place }) => after === null || isAfter(place, after as [number, string]))
    .toSorted((a, b) => (isAfter(a.place, b.place) ? 1 : -1));
  const shown = ranked.slice(0, page.limit);
  const hasMore = ranked.length > shown.length;
  const last = shown.at(-1)?.place;
  return {
    rows: shown.map(({ row }) => row),
    hasMore,
    next: hasMore && last ? encodeCursor(`stats ${list}`, last) : null,
  };
}

function isAfter([size, key]: [number, string], [otherSize, otherKey]: [number, string]): boolean {
  return size === otherSize ? key > otherKey : size < otherSize;
}

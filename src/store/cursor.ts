// Pages as the reader thread works on them, and the kind of a list, which its cursors (src/cursor.ts) are bound to.
import { createHash } from "node:crypto";
import { decodeCursor, encodeCursor, type Position } from "../cursor.ts";
import type { Page, PageRequest } from "../model/page.ts";

/** Rows that a page looks at where a filter has no index. */
export const walkLimit = 20_000;

/** A list's page as the reader works on it: `after` is a position, null at the start. */
export interface PageAt {
  limit: number;
  after: Position | null;
}

export interface PageFound<T> {
  rows: T[];
  next: Position | null;
  hasMore: boolean;
}

/** A list's kind with what it is filtered by: a cursor goes on in the list that gave it. Times are left out: "the last hour" is another one each time. */
export function kindOf(kind: string, filter: object): string {
  const given = Object.entries(filter)
    .filter(([name, value]) => value !== undefined && !/(?:After|Before)$/.test(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (given.length === 0) return kind;
  const hash = createHash("sha256").update(JSON.stringify(given)).digest("base64url");
  return `${kind}.${hash.slice(0, 8)}`;
}

export function pageAt(kind: string, page: PageRequest, shape: ("string" | "number")[]): PageAt {
  return { limit: page.limit, after: decodeCursor(kind, page.cursor, shape) };
}

/** Where a list in the order of creation goes on; the key tells rows of one time apart. */
export interface Created {
  createdAt: number;
  key: number;
}

/** The row that such a page goes on after; before all of them at the start. */
export function createdAfter(kind: string, page: PageRequest): Created {
  const [createdAt = -1, key = 0] = (decodeCursor(kind, page.cursor, ["number", "number"]) ?? []).map(Number);
  return { createdAt, key };
}

/** `rows`: in the order of creation, one more than the page holds where there are more. */
export function pageByCreation<T extends Created>(kind: string, rows: T[], limit: number): Page<T> {
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  const next = last ? [last.createdAt, last.key] : null;
  return pageOf(kind, { rows: shown, next, hasMore: next !== null });
}

export function pageOf<T>(kind: string, { rows, next, hasMore }: PageFound<T>): Page<T> {
  return { rows, next: next === null ? null : encodeCursor(kind, next), hasMore };
}

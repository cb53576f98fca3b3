// Pages as the reader thread works on them, and the kind of a list, which its cursors (src/cursor.ts) are bound to.
import { createHash } from "node:crypto";
import type { Position } from "../cursor.ts";

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

/** A list's kind with what it is filtered by: a cursor goes on in the list that gave it. Times are left out, for whoever asks for "the last hour" means another one each time. */
export function kindOf(kind: string, filter: object): string {
  const given = Object.entries(filter)
    .filter(([name, value]) => value !== undefined && !/(?:After|Before)$/.test(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (given.length === 0) return kind;
  const hash = createHash("sha256").update(JSON.stringify(given)).digest("base64url");
  return `${kind}.${hash.slice(0, 8)}`;
}

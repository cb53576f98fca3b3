// Lists: `{data, has_more, next_cursor}`. A cursor is the store's own position, sealed with a key of this
// installation and the name of its list, so that the store only ever meets positions that it gave itself
// and a cursor of one list opens no other.
import { createHmac, timingSafeEqual } from "node:crypto";
import { Refusal } from "../errors.ts";
import type { Page, PageRequest } from "../store/store.ts";

export interface Cursors {
  seal(list: string, position: string): string;
  /** Throws invalid_request for what was not sealed for this list. */
  open(list: string, cursor: string, field?: string): string;
}

const sealBytes = 9;

export function createCursors(secret: Uint8Array): Cursors {
  const mark = (list: string, position: string): Buffer =>
    createHmac("sha256", secret).update(`${list}\n${position}`).digest().subarray(0, sealBytes);
  return {
    seal: (list, position) =>
      Buffer.concat([mark(list, position), Buffer.from(position)]).toString("base64url"),
    open(list, cursor, field = "cursor") {
      const bytes = Buffer.from(cursor, "base64url");
      const position = bytes.subarray(sealBytes).toString();
      if (bytes.length > sealBytes && timingSafeEqual(bytes.subarray(0, sealBytes), mark(list, position)))
        return position;
      throw new Refusal("invalid_request", "The cursor is not one that this list gave.", { field });
    },
  };
}

export function pageRequest(
  cursors: Cursors,
  list: string,
  query: { limit: number; cursor?: string | undefined },
): PageRequest {
  return { limit: query.limit, cursor: query.cursor === undefined ? null : cursors.open(list, query.cursor) };
}

/** A page as the API shows it. */
export function listBody(cursors: Cursors, list: string, page: Page<unknown>): unknown {
  return {
    data: page.rows,
    has_more: page.hasMore,
    next_cursor: page.next === null ? null : cursors.seal(list, page.next),
  };
}

/** A page of a short list that the store gives whole: by ascending key, so that an added row never moves another. */
export function pageOf<T extends { key: number }>(
  rows: readonly T[],
  { limit, cursor }: PageRequest,
): Page<T> {
  const after = cursor === null ? -1 : Number(cursor);
  const rest = rows.filter((row) => row.key > after).toSorted((a, b) => a.key - b.key);
  const shown = rest.slice(0, limit);
  const hasMore = rest.length > shown.length;
  return { rows: shown, hasMore, next: hasMore ? String(shown.at(-1)?.key ?? after) : null };
}

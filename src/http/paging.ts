// Lists: `{data, has_more, next_cursor}`. A cursor is the store's own position, opaque to everybody else;
// short lists that the store gives whole are walked by id here.
import { Refusal } from "../errors.ts";
import type { Page, PageRequest } from "../model/page.ts";

export function pageRequest(query: { limit: number; cursor?: string | undefined }): PageRequest {
  return { limit: query.limit, cursor: query.cursor ?? null };
}

/** A page as the API shows it (view-fields.ts, list). */
export interface ListBody<T> {
  data: T[];
  has_more: boolean;
  next_cursor: string | null;
}

export function listBody<T, Shown>(page: Page<T>, show: (row: T) => Shown): ListBody<Shown> {
  return { data: page.rows.map(show), has_more: page.hasMore, next_cursor: page.next };
}

/** A page of a list that is here whole, by name. */
export function namedPageOf<T extends { name: string }>(
  rows: readonly T[],
  { limit, cursor }: PageRequest,
): Page<T> {
  if (cursor !== null && !/^[0-9a-z_.:-]{1,253}$/.test(cursor)) throw noCursor();
  const rest = rows
    .filter(({ name }) => cursor === null || name > cursor)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const shown = rest.slice(0, limit);
  const hasMore = rest.length > shown.length;
  return { rows: shown, hasMore, next: hasMore ? (shown.at(-1)?.name ?? null) : null };
}

function noCursor(): Refusal {
  return new Refusal("invalid_request", "The cursor is not one that this list gave.", { field: "cursor" });
}

/** A page of a list that is here whole, oldest first: ids grow with time, so a row that is added or deleted moves no other. */
export function pageOf<T extends { id: string }>(
  rows: readonly T[],
  { limit, cursor }: PageRequest,
): Page<T> {
  if (cursor !== null && !/^[a-z]+_[0-9a-z]{26}$/.test(cursor)) throw noCursor();
  const rest = rows
    .filter(({ id }) => cursor === null || id > cursor)
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const shown = rest.slice(0, limit);
  const hasMore = rest.length > shown.length;
  return { rows: shown, hasMore, next: hasMore ? (shown.at(-1)?.id ?? null) : null };
}

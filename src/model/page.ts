// A page of a list, and what asks for one.

/** `next` is an opaque position of the store's engine, never parsed by a caller. */
export interface Page<T> {
  rows: T[];
  next: string | null;
  hasMore: boolean;
}

export interface PageRequest {
  limit: number;
  /** `next` of the page before; null: from the start. */
  cursor: string | null;
}

// What the loop has just had in its hands and is about to ask for again: bytes that were just written, and rows that
// change rarely and are read often. Only a saving: both are dropped without harm, and rows are forgotten once their
// revision is another, whoever has written.

export interface ByteCache {
  /** Keeps the bytes until newer ones need the room. */
  keep(key: number, bytes: Buffer): void;
  find(key: number): Buffer | null;
  clear(): void;
}

/** At most `limitBytes` in all, oldest out first. */
export function createByteCache(limitBytes: number): ByteCache {
  const kept = new Map<number, Buffer>();
  let bytesKept = 0;
  return {
    keep(key, bytes) {
      kept.set(key, bytes);
      bytesKept += bytes.length;
      for (const [oldest, { length }] of kept) {
        if (bytesKept <= limitBytes) break;
        kept.delete(oldest);
        bytesKept -= length;
      }
    },
    find: (key) => kept.get(key) ?? null,
    clear() {
      kept.clear();
      bytesKept = 0;
    },
  };
}

export interface RowCache {
  /** The row as it was last read, or as `read` gives it now. */
  get<T>(name: string, read: () => T): T;
}

const rowsKept = 10_000;

/** `revision`: another number once any of the rows was written; read before each row. */
export function createRowCache(revision: () => number): RowCache {
  const rows = new Map<string, unknown>();
  let of = revision();
  return {
    get<T>(name: string, read: () => T): T {
      const now = revision();
      if (now !== of) {
        rows.clear();
        of = now;
      }
      if (rows.has(name)) return rows.get(name) as T;
      const row = read();
      if (rows.size >= rowsKept) rows.clear();
      rows.set(name, row);
      return row;
    },
  };
}

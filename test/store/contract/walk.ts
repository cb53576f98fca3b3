// All rows of a list, page by page.
import type { Page } from "../../../src/model/page.ts";

/** `between`: what happens between two pages. */
export const walk = async <T>(
  list: (cursor: string | null) => Promise<Page<T>>,
  between?: () => Promise<void>,
): Promise<T[]> => {
  const rows: T[] = [];
  let cursor: string | null = null;
  for (;;) {
    const page: Page<T> = await list(cursor);
    rows.push(...page.rows);
    if (!page.hasMore) return rows;
    cursor = page.next;
    await between?.();
  }
};

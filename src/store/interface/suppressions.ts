// The calls of the suppression list.
import type { Page, PageRequest } from "../../model/page.ts";
import type {
  NewSuppression,
  Suppression,
  SuppressionCount,
  SuppressionFilter,
} from "../../model/suppression.ts";

/** How many of the entries were new, replaced a weaker reason, or changed nothing. */
export interface SuppressionsAdded {
  added: number;
  updated: number;
  unchanged: number;
}

export interface SuppressionStore {
  suppression(accountKey: number, canonical: string, now: number): Promise<Suppression | null>;
  suppressed(accountKey: number, canonicals: string[], now: number): Promise<Suppression[]>;
  listSuppressions(
    accountKey: number,
    filter: SuppressionFilter,
    page: PageRequest,
  ): Promise<Page<Suppression>>;
  /** Counts a piece of the list; `after`: null, then the `next` of the piece before, until that is null. */
  countSuppressions(
    accountKey: number,
    filter: SuppressionFilter,
    after: string | null,
  ): Promise<SuppressionCount>;
  /**
   * A stronger reason replaces a weaker one (complaint > hard_bounce > unsubscribe > manual); the first spelling stays.
   * All are of one account. Throws LimitReached where it would have more than `most` that were added by hand.
   */
  addSuppressions(
    entries: NewSuppression[],
    at: number,
    most?: number,
  ): Promise<SuppressionsAdded & { rows: Suppression[] }>;
  /** The same, of a list whose rows nobody wants back. */
  importSuppressions(entries: NewSuppression[], at: number, most?: number): Promise<SuppressionsAdded>;
  removeSuppression(accountKey: number, canonical: string): Promise<boolean>;
}

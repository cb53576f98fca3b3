// The calls of the suppression list.
import type { Page, PageRequest } from "../../model/page.ts";
import type { NewSuppression, Suppression, SuppressionFilter } from "../../model/suppression.ts";

export interface SuppressionStore {
  suppression(accountKey: number, canonical: string, now: number): Promise<Suppression | null>;
  suppressed(accountKey: number, canonicals: string[], now: number): Promise<Suppression[]>;
  listSuppressions(
    accountKey: number,
    filter: SuppressionFilter,
    page: PageRequest,
  ): Promise<Page<Suppression>>;
  /**
   * A stronger reason replaces a weaker one (complaint > hard_bounce > unsubscribe > manual); the first spelling stays.
   * All are of one account. Throws LimitReached where it would have more than `most` that were added by hand.
   */
  addSuppressions(
    entries: NewSuppression[],
    at: number,
    most?: number,
  ): Promise<{ added: number; updated: number; unchanged: number; rows: Suppression[] }>;
  removeSuppression(accountKey: number, canonical: string): Promise<boolean>;
}

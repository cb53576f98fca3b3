// The calls of the suppression list, and of the second looks at domains that did not exist.
import type { Page, PageRequest } from "../../model/page.ts";
import type { NewSuppression, SecondLook, Suppression, SuppressionFilter } from "../../model/suppression.ts";

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
  /** Looks that are due, the oldest first. */
  secondLooksDue(now: number, limit: number): Promise<SecondLook[]>;
  /** `suppress`: agreed, `drop`: there is nothing to it, `later`: due again at `dueAt`. */
  settleSecondLooks(looks: {
    suppress: SecondLook[];
    drop: SecondLook[];
    later: SecondLook[];
    at: number;
    dueAt: number;
  }): Promise<void>;
  /** Domains that took mail lately, in any account; of the newest thousand recipients. */
  domainsDelivered(limit: number): Promise<string[]>;
}

// The calls of the second looks at domains that did not exist.
import type { SecondLook } from "../../model/suppression.ts";

export interface NxdomainRecheckStore {
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

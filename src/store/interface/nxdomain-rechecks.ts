// The calls of the second rechecks at domains that did not exist.
import type { NxdomainRecheck } from "../../model/suppression.ts";

export interface NxdomainRecheckStore {
  /** Looks that are due, the oldest first. */
  nxdomainRechecksDue(now: number, limit: number): Promise<NxdomainRecheck[]>;
  /** `suppress`: agreed, `drop`: there is nothing to it, `later`: due again at `dueAt`. */
  settleNxdomainRechecks(rechecks: {
    suppress: NxdomainRecheck[];
    drop: NxdomainRecheck[];
    later: NxdomainRecheck[];
    at: number;
    dueAt: number;
  }): Promise<void>;
  /** Domains that took mail lately, in any account; of the newest thousand recipients. */
  domainsDelivered(limit: number): Promise<string[]>;
}

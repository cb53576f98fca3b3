// The call that removes what is older than retention keeps it.
import type { Expired, ExpiredRequest, PurgeRequest, Purged } from "../../model/retention.ts";

export interface RetentionStore {
  /** Removes a piece of what is too old, the oldest first, and gives space back that has lain idle. */
  purge(request: PurgeRequest): Promise<Purged>;
  /** What `purge` would look at, a hundred thousand rows of each kind at most. */
  expired(request: ExpiredRequest): Promise<Expired>;
}

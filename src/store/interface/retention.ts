// The call that removes what is older than retention keeps it.
import type { PurgeRequest, Purged } from "../../model/retention.ts";

export interface RetentionStore {
  /** Removes a piece of what is too old, the oldest first, and gives space back that has lain idle. */
  purge(request: PurgeRequest): Promise<Purged>;
}

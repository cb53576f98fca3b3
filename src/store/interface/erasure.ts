// The call that removes what an account keeps of one person.
import type { Forgotten } from "../../model/erasure.ts";

export interface ErasureStore {
  /**
   * Removes a piece of what an account keeps of an address, but for its suppressions; `afterKey`: 0, then the `next` of
   * the piece before, until that is null.
   */
  forgetRecipient(
    accountKey: number,
    canonical: string,
    afterKey: number,
  ): Promise<Forgotten & { next: number | null }>;
}

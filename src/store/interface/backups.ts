// The call that copies the store while it is used.
import type { CopyRequest, StoreCopy } from "../../model/backup.ts";
import type { CheckRequest, StoreCheck } from "../../model/store-check.ts";

export interface BackupStore {
  /**
   * Copies everything as it is at one moment, database and content, into a directory, and verifies the copy. One at a
   * time; writes go on meanwhile. Rejects with StoreUnavailable `full` before either disk is, and when the store is closed.
   */
  copyInto(request: CopyRequest): Promise<StoreCopy>;
  /** Checks everything, of a copy that is made for it: never while one is made by `copyInto`. Rejects as that does. */
  check(request: CheckRequest): Promise<StoreCheck>;
}

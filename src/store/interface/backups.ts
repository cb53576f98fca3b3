// The call that copies the store while it is used.
import type { CopyRequest, StoreCopy } from "../../model/backup.ts";

export interface BackupStore {
  /**
   * Copies everything as it is at one moment, database and content, into a directory, and verifies the copy. One at a
   * time; writes go on meanwhile. Rejects with StoreUnavailable `full` before either disk is, and when the store is closed.
   */
  copyInto(request: CopyRequest): Promise<StoreCopy>;
}

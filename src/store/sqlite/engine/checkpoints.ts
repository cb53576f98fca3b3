// When the write-ahead log is copied into the database: beside the writer, from 64 MB on, one copy at a time. A log that is
// so long that the writer restarts it is left to the writer (wal.ts).
import type { Log } from "../../../log.ts";
import type { HeldLog } from "./held-log.ts";
import { checkpointAtBytes, leftToRestartBytes, restartAtBytes, type WalState } from "./wal.ts";

/** Looks at the log as a commit left it. `copy` copies it. */
export function createCheckpoints(deps: {
  heldLog: Pick<HeldLog, "held">;
  log: Log;
  copy(): Promise<void>;
}): (wal: WalState) => void {
  const { heldLog, log, copy } = deps;
  let copying = false;
  return ({ bytes, copiedBytes }) => {
    if (heldLog.held()) return; // of what is written during a backup nothing can be copied
    // Shortly before the writer restarts the log, little is left for it to copy.
    const nearRestart = bytes >= restartAtBytes - checkpointAtBytes;
    const atBytes = nearRestart ? leftToRestartBytes : checkpointAtBytes;
    if (copying || bytes - copiedBytes < atBytes || bytes >= restartAtBytes) return;
    copying = true;
    copy()
      .catch((error: Error) =>
        log.warn(
          { detail: error.message },
          "the checkpoint of the write-ahead log failed; it is tried again",
        ),
      )
      .finally(() => (copying = false));
  };
}

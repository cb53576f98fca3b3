// The operator's mail when the daily backup failed. At most one an hour (notices.ts).
import type { Notices } from "./notices.ts";

export async function notifyBackupFailed(notices: Pick<Notices, "notify">, error: string): Promise<void> {
  await notices.notify(
    "backup",
    "the daily backup failed",
    `${error}\n\nNothing of it was kept, and older backups are as they were.\n\n` +
      `What to do: make room, or name another folder (backup.to), then make one now: svc backup\n`,
  );
}

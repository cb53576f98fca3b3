// The backup's side on the loop: starts the thread, keeps the spool's files and the log as they are for as long as it needs
// them, and ends it when the store is closed.
import type { Log } from "../../log.ts";
import type { CopyRequest, StoreCopy } from "../../model/backup.ts";
import { startThread } from "../../thread.ts";
import type { BackupStore } from "../interface/backups.ts";
import type { Spool } from "../spool.ts";
import { StoreUnavailable } from "../store.ts";
import type { BackupReport, BackupWork } from "./backup-copy.ts";
import type { HeldLog } from "./engine/held-log.ts";

export interface Backups extends BackupStore {
  /** Ends the one that runs, and waits until its thread has. */
  stop(): Promise<void>;
}

export function createBackups(deps: {
  dataDir: string;
  minFreeShare: number;
  spool: Spool;
  log: Log;
  heldLog: HeldLog;
}): Backups {
  const { dataDir, minFreeShare, spool, heldLog } = deps;
  let running: { end(): void; over: Promise<unknown> } | null = null;

  const copy = async (request: CopyRequest, ended: SharedArrayBuffer): Promise<StoreCopy> => {
    const { directory, content, onProgress } = request;
    const work: BackupWork = { dataDir, directory, content, minFreeShare, ended };
    const result = Promise.withResolvers<StoreCopy>();
    result.promise.catch(() => undefined); // it is awaited once the thread is gone
    const over = Promise.withResolvers<void>();
    const letGo = spool.keepFiles();
    heldLog.hold();
    const onReport = (report: BackupReport): void => {
      switch (report.kind) {
        case "linked":
          return letGo();
        case "progress":
          return onProgress(report.share);
        case "released":
          return heldLog.release();
        case "done":
          return result.resolve(report.copy);
        case "failed":
          return result.reject(new StoreUnavailable(report.why, report.detail));
      }
    };
    const onEnd = (error: Error | null): void => {
      result.reject(error ?? new Error("the backup's thread ended"));
      over.resolve();
    };
    try {
      startThread<BackupReport>("backup-thread", import.meta.url, work, { onReport, onEnd });
      await over.promise;
      return await result.promise;
    } finally {
      letGo();
      heldLog.release();
    }
  };

  return {
    async copyInto(request) {
      if (running) throw new Error("a backup is running");
      const shared = new SharedArrayBuffer(4);
      const over = copy(request, shared);
      const end = (): void => {
        Atomics.store(new Int32Array(shared), 0, 1);
        Atomics.notify(new Int32Array(shared), 0);
      };
      running = { end, over };
      request.signal.addEventListener("abort", end);
      if (request.signal.aborted) end();
      try {
        return await over;
      } finally {
        request.signal.removeEventListener("abort", end);
        running = null;
      }
    },
    async stop() {
      running?.end();
      await running?.over.catch(() => undefined);
    },
  };
}

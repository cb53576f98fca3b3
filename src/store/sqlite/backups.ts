// The backup's side on the loop: starts the thread, keeps the spool's files for as long as it needs
// them and the log as it is, and ends it when the store is closed.
import { truncate } from "node:fs/promises";
import { join } from "node:path";
import type { Clock, Timer } from "../../clock.ts";
import type { Log } from "../../log.ts";
import type { CopyRequest, StoreCopy } from "../../model/backup.ts";
import type { StoreCheck } from "../../model/store-check.ts";
import { startThread } from "../../thread.ts";
import type { BackupStore } from "../interface/backups.ts";
import type { Spool } from "./spool.ts";
import { StoreUnavailable } from "../store.ts";
import type { BackupReport, BackupWork } from "./backup-copy.ts";
import type { HeldLog } from "./engine/held-log.ts";
import { databaseName } from "./engine/open.ts";

export interface Backups extends BackupStore {
  /** Ends the one that runs, and waits until its thread has, a second at most. */
  stop(): Promise<void>;
}

type Request = CopyRequest & { checkOnly: boolean };

interface Ending {
  end(): void;
}

const stopMs = 1000;
const stopped = (): StoreUnavailable =>
  new StoreUnavailable("failed", "the service stopped before the backup was complete");

export function createBackups(deps: {
  dataDir: string;
  minFreeShare: number;
  spool: Spool;
  log: Log;
  heldLog: HeldLog;
  databaseFile: number;
  clock: Pick<Clock, "after">;
}): Backups {
  const { dataDir, minFreeShare, spool, heldLog, databaseFile, clock } = deps;
  let running: { end(): void; over: Promise<unknown> } | null = null;

  const run = async (request: Request, ending: Ending): Promise<StoreCopy | StoreCheck> => {
    const { directory, content, checkOnly, onProgress, signal } = request;
    if (signal.aborted) throw stopped();
    const ended = new SharedArrayBuffer(4);
    const work: BackupWork = { dataDir, directory, content, checkOnly, minFreeShare, databaseFile, ended };
    const result = Promise.withResolvers<StoreCopy | StoreCheck>();
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
        case "checked":
          return result.resolve(report.check);
        case "failed":
          return result.reject(new StoreUnavailable(report.why, report.detail));
      }
    };
    const onEnd = (error: Error | null): void => {
      result.reject(error ?? new Error("the backup's thread ended"));
      over.resolve();
    };
    let waiting: Timer | null = null;
    try {
      const worker = startThread<BackupReport>("backup-thread", import.meta.url, work, { onReport, onEnd });
      ending.end = () => {
        if (waiting) return;
        Atomics.store(new Int32Array(ended), 0, 1);
        Atomics.notify(new Int32Array(ended), 0);
        // Nothing ends a statement that checks a large table, not the end of its thread either, and the process could not
        // exit: but it fails at once where the copy, which is of no use now, is cut short.
        void truncate(join(directory, databaseName)).catch(() => undefined);
        waiting = clock.after(stopMs, () => {
          void worker.terminate();
          over.resolve();
        });
      };
      await over.promise;
      if (waiting) throw stopped();
      return await result.promise;
    } finally {
      (waiting as Timer | null)?.cancel();
      letGo();
      heldLog.release(); // of a thread that ended with it
    }
  };

  const alone = async (request: Request): Promise<StoreCopy | StoreCheck> => {
    if (running) throw new Error("a backup or a check is running");
    const ending: Ending = { end: () => undefined };
    const end = (): void => ending.end();
    const over = run(request, ending);
    running = { end, over };
    request.signal.addEventListener("abort", end);
    try {
      return await over;
    } finally {
      request.signal.removeEventListener("abort", end);
      running = null;
    }
  };

  return {
    copyInto: (request) => alone({ ...request, checkOnly: false }) as Promise<StoreCopy>,
    check: (request) => alone({ ...request, content: "all", checkOnly: true }) as Promise<StoreCheck>,
    async stop() {
      running?.end();
      await running?.over.catch(() => undefined);
    },
  };
}

// What is done to the data directory of a service that does not run, under the lock that `serve` would hold: a backup, and
// a restore.
import { existsSync } from "node:fs";
import { makeBackup, type Backup } from "./backup/directory.ts";
import { restoreBackup, type RestoredBackup } from "./backup/restore.ts";
import { systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { setsNothing } from "./config/edit.ts";
import { createIdMint } from "./ids.ts";
import type { Log } from "./log.ts";
import type { BackupContent } from "./model/backup.ts";
import { theNode } from "./model/node.ts";
import { handToOwner } from "./owner.ts";
import { endWithoutWriter } from "./setup.ts";
import { hasStore, restoreStore } from "./store/sqlite/restore.ts";
import { openStore } from "./store/sqlite/sqlite-store.ts";

declare const __VERSION__: string;

/** `svc backup --offline`. */
export async function backupOffline(options: {
  config: Config;
  log: Log;
  to: string;
  content: BackupContent;
  onProgress(share: number): void;
}): Promise<Backup> {
  const { config, log, to, content, onProgress } = options;
  const { dataDir, hostname, files: configFiles } = config;
  if (!hasStore(dataDir)) throw new Error(`${dataDir} has no database: there is nothing to back up`);
  const store = await openStore({
    dataDir,
    node: theNode,
    clock: systemClock,
    log,
    mint: createIdMint(),
    minFreeShare: config.limits.minFreeSpaceShare,
    onLost: endWithoutWriter,
  });
  try {
    const parts = { copyInto: store.copyInto, dataDir, hostname, version: __VERSION__, configFiles, log };
    const plan = { to, content, scheduled: false };
    const { signal } = new AbortController();
    const isNew = !existsSync(to);
    const backup = await makeBackup(parts, plan, systemClock.now(), { onProgress, signal });
    handToOwner(dataDir, [isNew ? to : backup.path]); // the service lists it, and may remove it
    return backup;
  } finally {
    await store.close();
  }
}

/** `svc restore`. */
export function restore(options: {
  from: string;
  dataDir: string;
  isConfigFile(path: string): boolean;
}): Promise<RestoredBackup> {
  return restoreBackup({ ...options, now: systemClock.now(), restoreStore, setsNothing });
}

// What is done to the data directory of a service that does not run, under the lock that `serve` would hold: a backup, a
// restore, a migration.
import { statSync } from "node:fs";
import { makeBackup, type Backup } from "./backup/directory.ts";
import { checkStore } from "./backup/check.ts";
import { restoreBackup, type RestoredBackup } from "./backup/restore.ts";
import { systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { setsNothing } from "./config/edit.ts";
import { createIdMint } from "./ids.ts";
import type { Log } from "./log.ts";
import type { BackupContent } from "./model/backup.ts";
import { theNode } from "./model/node.ts";
import { isSound, type StoreCheck } from "./model/store-check.ts";
import { asOwner, asOwnerThroughout, makeFolderFor } from "./owner.ts";
import { endWithoutWriter } from "./setup.ts";
import { hasStore, restoreStore } from "./store/sqlite/restore.ts";
import { migrateStore, type Migrated, type MigrationRequest } from "./store/sqlite/migrate-offline.ts";
import type { Store } from "./store/store.ts";
import { openStore } from "./store/sqlite/sqlite-store.ts";

declare const __VERSION__: string;

export interface OfflineBackup {
  config: Config;
  log: Log;
  to: string;
  content: BackupContent;
  onProgress(share: number): void;
}

/** `svc backup --offline`; as root with the rights of the data directory's owner, in whose folders it reads and writes. */
export async function backupOffline(options: OfflineBackup): Promise<Backup> {
  const { to, config } = options;
  const { dataDir } = config;
  if (!hasStore(dataDir)) throw new Error(`${dataDir} has no database: there is nothing to back up`);
  const owner = statSync(dataDir);
  makeFolderFor(owner, to);
  return asOwnerThroughout(owner, () => backUp(options));
}

function openForCopy({ dataDir, limits }: Config, log: Log): Promise<Store> {
  return openStore({
    dataDir,
    node: theNode,
    clock: systemClock,
    log,
    mint: createIdMint(),
    minFreeShare: limits.minFreeSpaceShare,
    onLost: endWithoutWriter,
  });
}

async function backUp({ config, log, to, content, onProgress }: OfflineBackup): Promise<Backup> {
  const { dataDir, hostname, files: configFiles } = config;
  const store = await openForCopy(config, log);
  try {
    const parts = { copyInto: store.copyInto, dataDir, hostname, version: __VERSION__, configFiles, log };
    const plan = { to, content, scheduled: false };
    const { signal } = new AbortController();
    return await makeBackup(parts, plan, systemClock.now(), { onProgress, signal });
  } finally {
    await store.close();
  }
}

/** `svc db check --offline`; as root with the rights of the data directory's owner. */
export async function checkOffline(options: {
  config: Config;
  log: Log;
}): Promise<StoreCheck & { sound: boolean }> {
  const { config, log } = options;
  const { dataDir } = config;
  if (!hasStore(dataDir)) throw new Error(`${dataDir} has no database: there is nothing to check`);
  return asOwnerThroughout(statSync(dataDir), async () => {
    const store = await openForCopy(config, log);
    try {
      const { signal } = new AbortController();
      const check = await checkStore(store, dataDir, systemClock.now(), {
        onProgress: () => undefined,
        signal,
      });
      return { ...check, sound: isSound(check) };
    } finally {
      await store.close();
    }
  });
}

/** `svc migrate`; as root with the rights of the data directory's owner. */
export async function migrate(options: MigrationRequest): Promise<Migrated> {
  const { dataDir } = options;
  if (!hasStore(dataDir)) throw new Error(`${dataDir} has no database: there is nothing to migrate`);
  return asOwner(statSync(dataDir), () => migrateStore(options));
}

/** `svc restore`. */
export function restore(options: {
  from: string;
  dataDir: string;
  isConfigFile(path: string): boolean;
}): Promise<RestoredBackup> {
  return restoreBackup({ ...options, now: systemClock.now(), restoreStore, setsNothing });
}

// What is done to the data directory of a service that does not run, under the lock that `serve` would hold: a backup, a
// restore, a migration, checks.
import { statSync } from "node:fs";
import { listBackups, makeBackup, type Backup } from "./backup/directory.ts";
import { checkStore } from "./backup/check.ts";
import { restoreBackup, type RestoredBackup } from "./backup/restore.ts";
import { systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { setsNothing } from "./config/edit.ts";
import type { ClosedListener, Finding, World } from "./doctor/check.ts";
import { runChecks, type Result, type Wanted } from "./doctor/doctor.ts";
import { closedPorts } from "./doctor/ports.ts";
import { createWorld, listenersOf } from "./doctor/world.ts";
import { createIdMint } from "./ids.ts";
import { silentLog, type Log } from "./log.ts";
import type { BackupContent } from "./model/backup.ts";
import type { Pool } from "./model/ip-pool.ts";
import { theNode } from "./model/node.ts";
import { isSound, type StoreCheck } from "./model/store-check.ts";
import { asOwner, asOwnerThroughout, makeFolderFor } from "./owner.ts";
import { canBind } from "./pools/bind.ts";
import { endWithoutWriter, resolverOf } from "./setup.ts";
import { hasEmptyStore, hasStore, restoreStore } from "./store/sqlite/restore.ts";
import { migrateStore, type Migrated, type MigrationRequest } from "./store/sqlite/migrate-offline.ts";
import type { Store } from "./store/store.ts";
import { openStore } from "./store/sqlite/sqlite-store.ts";
import { readCertificate } from "./tls/open.ts";

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

/**
 * `svc doctor --offline`: every check that needs no running service. As root the ports are tried with root's rights, which
 * the service has for them, and all else is done with those of the data directory's owner. Throws StoreLocked where it runs.
 */
export async function doctorOffline(options: {
  config: Config;
  log: Log;
  wanted: Wanted;
  /** This program's. */
  schema?: MigrationRequest["schema"];
}): Promise<Result[]> {
  const { config, schema } = options;
  const { dataDir } = config;
  const there = statSync(dataDir, { throwIfNoEntry: false });
  const owned = <T>(work: () => Promise<T>): Promise<T> => (there ? asOwnerThroughout(there, work) : work());
  const closed = await owned(async () => unopenable({ dataDir, dryRun: true, schema })); // first: a service that runs has its ports
  const ports = await closedPorts(listenersOf(config));
  return owned(() => runOffline(options, closed, ports));
}

type Unopened = Pick<Finding, "status" | "saw" | "mend">;

/** Why the database is not to be opened: a look would change it. null: it can be tried. Throws StoreLocked. */
function unopenable(request: MigrationRequest): Unopened | null {
  const { dataDir } = request;
  if (!hasStore(dataDir))
    return {
      status: "fail",
      saw: `${dataDir} has no database`,
      mend: "of a new server: svc init; of one that was lost: svc restore DIR",
    };
  if (hasEmptyStore(dataDir))
    return {
      status: "fail",
      saw: `the database in ${dataDir} is an empty file`,
      mend: "svc restore DIR, with the newest backup that is intact",
    };
  try {
    const { from, to } = migrateStore(request);
    if (from === to) return null;
    return {
      status: "warn",
      saw: `its schema has version ${from}; this program's is ${to}`,
      mend: "svc migrate, or start the service: both keep a copy",
    };
  } catch (error) {
    return unopenedBy(error);
  }
}

/** Throws what says nothing of the database. */
function unopenedBy(error: unknown): Unopened {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (!(error instanceof Error) || ["STORE_LOCKED", "EACCES", "EPERM", "EROFS"].includes(code)) throw error;
  return {
    status: "fail",
    saw: error.message,
    mend: "if it is damaged: svc restore DIR, with the newest backup that is intact",
  };
}

async function runOffline(
  { config, log, wanted }: { config: Config; log: Log; wanted: Wanted },
  unopenable: Unopened | null,
  closed: readonly ClosedListener[],
): Promise<Result[]> {
  const clock = systemClock;
  let unopened = unopenable;
  const store =
    unopened === null
      ? await openForCopy(config, log).catch((error: unknown) => {
          unopened = unopenedBy(error);
          return null;
        })
      : null;
  const resolver = resolverOf(config, clock, log);
  try {
    const pools = store === null ? null : await poolsOf(store);
    const { certificate, certificates } = await certificateOf(config);
    const [newest] = await listBackups(config.backup.to, 1);
    const world = await createWorld({
      config,
      running: false,
      store: store ?? notOpen,
      unopened,
      resolver: resolver.uncached,
      pools: { all: () => pools ?? refuse("the database is not open: see the check database") },
      dnsbl: {
        summary: () => refuse("the running service alone asks the blocklists"),
        zones: () => [],
      },
      certificate: () => certificate,
      certificates: () => Promise.resolve(certificates),
      closedListeners: () => Promise.resolve(closed),
      lastBackupAt: () => (newest === undefined ? null : Date.parse(newest.created_at)),
      clock,
    })(wanted);
    return await runChecks(world, wanted, clock);
  } finally {
    resolver.stop();
    await store?.close();
  }
}

/** The store of a world whose database is not open: its calls reject, so that the checks that need them are not checkable. */
const notOpen = new Proxy({} as Store, {
  get: () => () => Promise.reject(new Error("the database is not open: see the check database")),
});

function refuse(why: string): never {
  throw new Error(why);
}

const mostAccounts = 1_000;

/** Whether this machine has their addresses is looked up now; what the DNS called them is what the service last saw. */
async function poolsOf(store: Store): Promise<Pool[]> {
  const { rows } = await store.listAccounts({ limit: mostAccounts, cursor: null });
  const pools: Pool[] = [];
  for (const { key } of rows)
    for (const pool of await store.listPools(key)) {
      const addresses = await Promise.all(
        pool.addresses.map(async (one) => ({ ...one, bindable: await canBind(one.address) })),
      );
      pools.push({ ...pool, addresses });
    }
  return pools;
}

/** What a start would serve. */
async function certificateOf({ tls, dataDir, hostname }: Config): Promise<{
  certificate: string | null;
  certificates: Awaited<ReturnType<World["certificates"]>>;
}> {
  if (tls.mode === "off") return { certificate: null, certificates: [] };
  let error: string | null = null;
  const log: Log = {
    ...silentLog,
    error: ({ file, err }) =>
      (error = `${String(file)}: ${err instanceof Error ? err.message : String(err)}`), // a finding, not a line of the log
  };
  const pair = await readCertificate({ config: tls, dataDir, hostname, log }).catch((fault: Error) => {
    error = fault.message;
    return null;
  });
  const host = { name: hostname, isHost: true, renewAt: null, isGivenUp: false, error };
  return { certificate: pair?.cert ?? null, certificates: [host] };
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

// What keeps the appliance in order while it runs: the abuse guard, retention, backups, checks of the store, and the doctor.
import { createBackups } from "../backup/backup.ts";
import { createStoreChecks } from "../backup/check.ts";
import { createDoctor } from "../doctor/doctor.ts";
import { closedListener } from "../doctor/ports.ts";
import { createWorld } from "../doctor/world.ts";
import { notifyBackupFailed } from "../notifications/backup-notice.ts";
import { notifyDoctor } from "../notifications/doctor-notice.ts";
import { notifyAccountPaused } from "../notifications/pause-notice.ts";
import { createRetention } from "../retention/retention.ts";
import { createAbuseGuard } from "../sending-pause/abuse-guard.ts";
import { createNxdomainRecheck } from "../suppressions/nxdomain-recheck.ts";
import type { Base } from "./base.ts";
import type { Foundation } from "./foundation.ts";
import type { Sending } from "./sending.ts";
import type { Reporting } from "./reporting.ts";

declare const __VERSION__: string;

export type Upkeep = ReturnType<typeof createUpkeep>;

export function createUpkeep(
  { config, log, clock, store }: Base,
  { resolver, tls, certificates, pools, dnsbl }: Foundation,
  { sendingPause }: Sending,
  { notices }: Reporting,
) {
  const guard = createAbuseGuard({
    store,
    pauses: sendingPause,
    onPaused: (account, reason, at) => notifyAccountPaused(notices, account, reason, at),
    shares: config.guard,
    clock,
    log: log.component("sending-pause"),
  });
  const retention = createRetention({
    store,
    retention: config.retention,
    clock,
    log: log.component("retention"),
  });
  const backups = createBackups({
    store,
    config,
    version: __VERSION__,
    onFailed: (error) => void notifyBackupFailed(notices, error),
    clock,
    log: log.component("backup"),
  });
  const storeChecks = createStoreChecks({
    store,
    dataDir: config.dataDir,
    isBackingUp: () => backups.running() !== null,
    clock,
    log: log.component("store-check"),
  });
  const nxdomainRecheck = createNxdomainRecheck({
    store,
    resolver: resolver.uncached,
    clock,
    log: log.component("suppressions"),
  });
  const doctor = createDoctor({
    world: createWorld({
      config,
      store,
      resolver: resolver.uncached,
      pools,
      dnsbl,
      certificate: () => certificates?.current().cert ?? null,
      certificates: tls.list,
      running: true,
      // Without one of the others the service had not started.
      closedListeners: async () =>
        tls.closed().map(({ listen, error }) => closedListener({ name: "acme", listen }, error)),
      lastBackupAt: backups.newestAt,
      clock,
    }),
    onChanged: (changed) => void notifyDoctor(notices, changed),
    clock,
    log: log.component("doctor"),
  });
  return { guard, retention, backups, storeChecks, nxdomainRecheck, doctor };
}

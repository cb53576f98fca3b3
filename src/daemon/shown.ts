// What is shown of all modules: GET /v1/status, and what Prometheus reads.
import { createMetrics } from "../metrics/metrics.ts";
import { createStatus } from "../status/status.ts";
import type { Base, Listening } from "./base.ts";
import type { Foundation } from "./foundation.ts";
import type { Jobs } from "../jobs.ts";
import type { Upkeep } from "./upkeep.ts";

declare const __VERSION__: string;

export function createShown(
  { config, clock, store, startedAt }: Base,
  { tls, certificates, maintenance, pools, dnsbl }: Foundation,
  { backups }: Upkeep,
  jobs: Jobs,
  addresses: Listening["addresses"],
) {
  const metrics = createMetrics({
    store,
    clock,
    version: __VERSION__,
    others: () => ({
      maintenance: maintenance.window() !== null,
      poolProblems: pools.problems().length,
      listings: dnsbl.summary().listed.length,
      certificate: certificates?.current().cert ?? null,
      failingCertificates: {
        host: tls.troubles().filter(({ isHost }) => isHost).length,
        tracking: tls.troubles().filter(({ isHost }) => !isHost).length,
      },
      backupAt: backups.newestAt(),
    }),
  });
  const status = createStatus({
    store,
    config,
    maintenance,
    clock,
    version: __VERSION__,
    startedAt,
    poolProblems: pools.problems,
    certificateTroubles: tls.troubles,
    dnsbl,
    listeners: addresses,
    jobs: jobs.states,
  });
  return { metrics, status };
}

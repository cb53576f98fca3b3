// The list of all modules that have periodic jobs.
import { createJobs } from "../jobs.ts";
import { createStatsFold } from "../stats/fold.ts";
import type { Base } from "./base.ts";
import type { Foundation } from "./foundation.ts";
import type { Reporting } from "./reporting.ts";
import type { Sending } from "./sending.ts";
import type { Upkeep } from "./upkeep.ts";

export function createPeriodicJobs(
  { log, clock, store }: Base,
  { domains, tls, pools, dnsbl }: Foundation,
  { sendingPause, tlsResults, trackingKeys }: Sending,
  { tlsReports }: Reporting,
  { guard, retention, backups, nxdomainRecheck, doctor }: Upkeep,
) {
  const modules = [
    domains,
    tls,
    nxdomainRecheck,
    retention,
    backups,
    createStatsFold(store),
    guard,
    sendingPause,
    pools,
    dnsbl,
    tlsResults,
    tlsReports,
    doctor,
    trackingKeys,
  ];
  return createJobs(modules, clock, log.component("jobs"));
}

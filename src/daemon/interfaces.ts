// The listeners, HTTP and SMTP, with what they show of all other modules. One list.
import { createProbe } from "../delivery/probe.ts";
import { createFeedback } from "../feedback/feedback.ts";
import { createHttp } from "../http/server.ts";
import { createMetrics } from "../metrics/metrics.ts";
import { createQueueAdmin } from "../queue/queue-admin.ts";
import { createInbound } from "../relay/inbound.ts";
import { createRelay } from "../relay/relay.ts";
import { createStatus } from "../status/status.ts";
import type { Base, Listening } from "./base.ts";
import type { Foundation } from "./foundation.ts";
import type { Sending } from "./sending.ts";
import type { Reporting } from "./reporting.ts";
import type { Upkeep } from "./upkeep.ts";
import { createReload } from "./reload.ts";

declare const __VERSION__: string;

export type Interfaces = ReturnType<typeof createInterfaces>;

export function createInterfaces(
  { config, log, clock, mint, store, startedAt, changes, logLines }: Base,
  { resolver, tls, certificates, maintenance, recorder, parsing, access, pools, dnsbl, domains }: Foundation,
  {
    shaping,
    delivery,
    verpSecret,
    trackingTokens,
    tokens,
    queuePauses,
    visits,
    unsubscribes,
    queue,
    activity,
    shapingRules,
    submission,
  }: Sending,
  { notices, webhooks }: Reporting,
  { guard, retention, backups, storeChecks, doctor, jobs }: Upkeep,
) {
  const relay =
    certificates === null
      ? null
      : createRelay({
          config,
          certificates,
          access,
          submission,
          store,
          maintenance,
          clock,
          log: log.component("relay"),
        });
  const feedback = createFeedback({
    store,
    recorder,
    verpSecret,
    tokens,
    unsubscribes,
    resolver,
    readReturned: parsing.readReturned,
    readNotice: parsing.readNotice,
    config,
    notices,
    clock,
    log: log.component("feedback"),
  });
  const inbound = createInbound({
    config,
    certificates,
    feedback,
    store,
    maintenance,
    clock,
    log: log.component("inbound"),
  });
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
  const reload = createReload({ shapingRules, tls, changes, log });
  const listeners: Listening[] = [];
  const addresses: Listening["addresses"] = () => listeners.flatMap((one) => one.addresses());
  const http = createHttp({
    config,
    certificates,
    trackingCertificates: tls.tracking,
    tls,
    store,
    access,
    submission,
    domains,
    webhooks,
    pools,
    queuePauses,
    queueAdmin: createQueueAdmin({ store, recorder, note: queue.note, clock }),
    dnsbl,
    shapingRules,
    queue,
    probe: createProbe({
      delivery,
      resolver,
      sourcesOf: pools.sourcesOf,
      tlsFor: (domain, group) => shaping.tlsFor(domain, group) ?? config.outbound.tls,
      hostname: config.hostname,
      clock,
    }),
    parsing,
    tracking: { tokens: trackingTokens, visits, unsubscribes },
    maintenance,
    backups,
    storeChecks,
    retention,
    guard,
    clock,
    log: log.component("http"),
    logLines,
    mint,
    status: createStatus({
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
    }),
    doctor,
    metrics: metrics.text,
    activity,
    reload,
  });
  listeners.push(http, ...(relay ? [relay] : []), inbound, tls);
  return { relay, inbound, metrics, reload, addresses, http };
}

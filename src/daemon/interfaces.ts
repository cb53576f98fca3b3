// The listeners, HTTP and SMTP, with what they show of all other modules. One list.
import { createProbe } from "../delivery/probe.ts";
import { createHttp } from "../http/server.ts";
import type { Jobs } from "../jobs.ts";
import { createQueueAdmin } from "../queue/queue-admin.ts";
import type { Base, Listening } from "./base.ts";
import type { Foundation } from "./foundation.ts";
import type { Sending } from "./sending.ts";
import type { Reporting } from "./reporting.ts";
import type { Upkeep } from "./upkeep.ts";
import { createReload } from "./reload.ts";
import { createShown } from "./shown.ts";
import { createSmtp } from "./smtp.ts";

export function createInterfaces(
  base: Base,
  foundation: Foundation,
  sending: Sending,
  reporting: Reporting,
  upkeep: Upkeep,
  jobs: Jobs,
) {
  const { config, log, clock, mint, store, changes, logLines } = base;
  const { resolver, tls, certificates, maintenance, recorder, parsing, access, pools, dnsbl, domains } =
    foundation;
  const { shaping, delivery, queue, queuePauses, shapingRules, submission, activity } = sending;
  const { trackingTokens, visits, unsubscribes } = sending;
  const { guard, retention, backups, storeChecks, doctor } = upkeep;
  const { relay, inbound } = createSmtp(base, foundation, sending, reporting);
  const reload = createReload({ shapingRules, tls, changes, log });
  const listeners: Listening[] = [];
  const addresses: Listening["addresses"] = () => listeners.flatMap((one) => one.addresses());
  const { metrics, status } = createShown(base, foundation, upkeep, jobs, addresses);
  const http = createHttp({
    config,
    certificates,
    trackingCertificates: tls.tracking,
    tls,
    store,
    access,
    submission,
    domains,
    webhooks: reporting.webhooks,
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
    status,
    doctor,
    metrics: metrics.text,
    activity,
    reload,
  });
  listeners.push(http, ...(relay ? [relay] : []), inbound, tls);
  return { relay, inbound, metrics, reload, addresses, http };
}

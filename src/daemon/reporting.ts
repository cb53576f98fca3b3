// Reports of what happens: mail to the operator and to receivers, webhooks to the accounts.
import { notifyCertificate } from "../notifications/certificate-notice.ts";
import { notifyDeadLetter } from "../notifications/dead-letter-notice.ts";
import { notifyDomainStatus } from "../notifications/domain-notice.ts";
import { notifyListings } from "../notifications/listing-notice.ts";
import { createNotices } from "../notifications/notices.ts";
import { notifyPoolProblem } from "../notifications/pool-notice.ts";
import { createTlsReports } from "../tls-reports/reports.ts";
import { createWebhooks } from "../webhooks/webhooks.ts";
import type { Base } from "./base.ts";
import type { Foundation } from "./foundation.ts";
import type { Sending } from "./sending.ts";

export type Reporting = ReturnType<typeof createReporting>;

export function createReporting(
  { config, log, clock, mint, store }: Base,
  { owner, resolver, tls, recorder, signHeader, pools, dnsbl, domains }: Foundation,
  { https, messageTokens, activity, runner }: Sending,
) {
  const notices = createNotices({
    store,
    runner,
    config,
    domains,
    signHeader,
    tokens: messageTokens,
    clock,
    mint,
    log: log.component("notices"),
  });
  const tlsReports = createTlsReports({
    store,
    resolver,
    https,
    notices,
    hostname: config.hostname,
    contact: config.operations.email,
    clock,
    log: log.component("tls-reports"),
  });
  const domainsLog = log.component("domains");
  domains.onStatus((domain, before) => void notifyDomainStatus(notices, domainsLog, domain, before));
  pools.onProblem((problem) => void notifyPoolProblem(notices, store, problem));
  tls.onTrouble((trouble) => void notifyCertificate(notices, trouble));
  dnsbl.onChanges((changes) => void notifyListings(notices, changes, config.dnsbl.onListing === "drain"));
  const webhooks = createWebhooks({
    store,
    owner,
    recorder,
    config: config.webhooks,
    resolver,
    clock,
    log,
    onDeadLetter: (letter) => void notifyDeadLetter(notices, letter),
    onAttempt: (endpoint, kind) => activity.posted(endpoint, kind === "retry" ? "failed" : kind),
  });
  const unsubscribe = store.onCommit(({ deliveries }) => {
    if (deliveries) webhooks.kick();
  });
  return { notices, tlsReports, webhooks, unsubscribe };
}

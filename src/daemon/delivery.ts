// How mail reaches receivers: the limits of their hosts, what they publish of TLS, the reports about it, and the attempt.
import { readShapingFile } from "../config.ts";
import { localAddresses, portsOf } from "../delivery/local-addresses.ts";
import { createDelivery } from "../delivery/smtp-delivery.ts";
import { createHttps } from "../https.ts";
import { operationsAccount } from "../model/account.ts";
import { createFetch } from "../mta-sts/fetch.ts";
import { createMtaSts } from "../mta-sts/policies.ts";
import { createShaping } from "../queue/shaping.ts";
import { createTlsResults, tlsReportTest } from "../tls-reports/results.ts";
import type { Base } from "./base.ts";
import type { Foundation } from "./foundation.ts";

export type Delivering = Awaited<ReturnType<typeof createDelivering>>;

export async function createDelivering(
  { config, log, clock, store }: Base,
  { resolver, secureContext, pools }: Foundation,
) {
  const shapingFile = readShapingFile(config.outbound.shapingFile);
  if ("faults" in shapingFile) throw new Error(shapingFile.faults.join("\n"));
  const shaping = createShaping(shapingFile.content, await store.shapingRules());
  const mailListeners = [...config.inbound.listen, ...config.relay.starttls, ...config.relay.implicitTls];
  const { allowNetworks } = config.outbound;
  const https = createHttps({ resolver, allowNetworks, secureContext, clock });
  const operations = await store.accountByName(operationsAccount);
  // TLS reports are about no mail of our own: else the report to a domain would be about the report before it.
  const isOwn = (account: number | string): boolean => account === operations?.key;
  const tlsResults = createTlsResults({ store, clock, log: log.component("tls-reports") });
  const mtaSts = createMtaSts({
    store,
    resolver,
    fetch: createFetch(https),
    onFailed: (result, owner) => void (isOwn(owner) || tlsResults.note(result)),
    clock,
    log: log.component("mta-sts"),
  });
  const delivery = createDelivery({
    resolver,
    outbound: config.outbound,
    hostname: config.hostname,
    isOurs: localAddresses(mailListeners),
    mailPorts: portsOf(mailListeners),
    mtaStsOf: mtaSts.policyOf,
    isTlsReport: tlsReportTest(operations?.key ?? null, config.operations.email),
    isCounted: ({ message }) => !isOwn(message.accountKey),
    onTls: tlsResults.note,
    secureContext,
    clock,
    log: log.component("delivery"),
    random: Math.random,
    limitsOf: shaping.limits,
    tlsFor: shaping.tlsFor,
    mayUse: pools.mayUse,
    onUnusable: pools.lookSoon,
  });
  return { shaping, https, tlsResults, mtaSts, delivery };
}

// What all other modules stand on: this start of the program, the resolver, certificates, threads, accounts, addresses and
// domains.
import { createAccess } from "../access/access.ts";
import { createBoot } from "../boot.ts";
import { createTrust } from "../delivery/trust.ts";
import { createDnsbl } from "../dnsbl/dnsbl.ts";
import { createDomains } from "../domains/manage.ts";
import { createRecorder } from "../events/record.ts";
import { createHttps } from "../https.ts";
import { theNode } from "../model/node.ts";
import { createMaintenance } from "../maintenance/maintenance.ts";
import { createParsing } from "../parsing/parsing.ts";
import { createPools } from "../pools/pools.ts";
import { domainConfig, endAtOnce, resolverOf, systemChoiceOf } from "../setup.ts";
import { createSigning } from "../signing/signing.ts";
import { openTls } from "../tls/tls.ts";
import type { Base } from "./base.ts";

export type Foundation = Awaited<ReturnType<typeof createFoundation>>;

export async function createFoundation({ config, log, clock, mint, store }: Base) {
  const boot = createBoot({
    store,
    node: theNode,
    clock,
    log: log.component("boot"),
    onEnded: endAtOnce,
  });
  const owner = boot.id;
  const resolver = resolverOf(config, clock, log);
  const secureContext = createTrust();
  const tls = await openTls({
    config,
    isTrackingName: store.isTrackingName,
    trackingNames: store.trackingNames,
    // The operator names the ACME server: it may be one of a private network.
    https: createHttps({ resolver, allowNetworks: ["0.0.0.0/0", "::/0"], secureContext, clock }),
    clock,
    log: log.component("tls"),
  });
  const { certificates } = tls;
  const maintenance = createMaintenance({ store, clock });
  await maintenance.reload();
  const recorder = createRecorder({ clock, mint });
  const signing = createSigning(log.component("signing"));
  const { signHeader } = signing;
  const parsing = createParsing({ clock, log: log.component("parsing") });
  const access = createAccess({ store, clock, log, mint });
  const pools = createPools({
    store,
    resolver: resolver.uncached,
    hostname: config.hostname,
    drainListed: config.dnsbl.onListing === "drain",
    clock,
    log: log.component("pools"),
  });
  const dnsbl = createDnsbl({
    store,
    pools: pools.all,
    resolver: resolver.uncached,
    recorder,
    config: config.dnsbl,
    system: await systemChoiceOf(config, store),
    onShown: pools.changed,
    clock,
    log: log.component("dnsbl"),
    random: Math.random,
  });
  const domains = createDomains({
    store,
    resolver: resolver.uncached,
    config: domainConfig(config),
    poolAddresses: pools.addressesOf,
    clock,
    mint,
  });
  return {
    boot,
    owner,
    resolver,
    secureContext,
    tls,
    certificates,
    maintenance,
    recorder,
    signing,
    signHeader,
    parsing,
    access,
    pools,
    dnsbl,
    domains,
  };
}

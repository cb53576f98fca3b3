// Who sends, and from what: accounts, IP pools and the blocklists that their addresses are on, and domains.
import { createAccess } from "../access/access.ts";
import { createDnsbl } from "../dnsbl/dnsbl.ts";
import { createDomains } from "../domains/manage.ts";
import type { Recorder } from "../events/record.ts";
import { createPools } from "../pools/pools.ts";
import { domainConfig, systemChoiceOf, type resolverOf } from "../setup.ts";
import type { Base } from "./base.ts";

export async function createSenders(
  { config, log, clock, mint, store }: Base,
  resolver: ReturnType<typeof resolverOf>,
  recorder: Recorder,
) {
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
  return { access, pools, dnsbl, domains };
}

// Where a domain's mail goes: the smart host if there is one, else its mail hosts as dns/mx.ts finds them
// (RFC 5321 §5.1, RFC 7505), and the group whose limits they share. "No such domain" and "takes no mail" bounce at once,
// "could not tell" defers.
import { getDomain } from "tldts";
import type { Clock } from "../clock.ts";
import type { SmartHost } from "../config.ts";
import { mailHosts, type MailHost } from "../dns/mx.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Owner } from "../fairness.ts";
import { untried } from "../mail/outcome.ts";
import { providers } from "../mail/providers.ts";
import type { KeptMtaStsPolicy } from "../model/mta-sts.ts";
import type { Route } from "./delivery.ts";
import { local, localOutcome } from "./outcome.ts";
import type { LocalFailure } from "./outcome.ts";

export interface RouteDeps {
  resolver: Resolver;
  smartHost: SmartHost | null;
  /** The MTA-STS policy of a domain; null: it has none. Never rejects. */
  mtaStsOf: (domain: string, owner: Owner) => Promise<KeptMtaStsPolicy | null>;
  clock: Clock;
  /** [0, 1) */
  random: () => number;
}

/** `domain` in A-label form. Never throws for what the DNS says. */
export async function findRoute(deps: RouteDeps, domain: string, owner: Owner): Promise<Route> {
  const { smartHost } = deps;
  if (smartHost)
    return {
      kind: "hosts",
      group: "smart-host",
      hosts: [{ host: smartHost.host.toLowerCase(), preference: 0 }],
      authenticated: false,
      mtaSts: null,
    };
  const found = await mailHosts(deps.resolver, domain, deps.random, owner);
  switch (found.kind) {
    case "hosts":
      return {
        kind: "hosts",
        group: groupOfAll(domain, found.hosts),
        hosts: found.hosts,
        authenticated: found.authenticated,
        mtaSts: await deps.mtaStsOf(domain, owner),
      };
    case "null_mx":
      return undeliverable(deps.clock, local.nullMx, `${domain} accepts no mail (null MX)`);
    case "nxdomain":
      return undeliverable(deps.clock, local.noDomain, `the domain ${domain} does not exist`);
    case "no_mail_host":
      return undeliverable(deps.clock, local.noHost, found.why);
    case "failed":
      return undeliverable(deps.clock, local.dnsFailed, `the DNS lookup of ${domain} failed: ${found.why}`);
  }
}

/**
 * The group of the first host. A domain whose hosts are of several groups has connections of its own, as `domain/group`:
 * else one that names a provider's host before its own, which hangs, would hold the connections of the provider's mail.
 */
function groupOfAll(domain: string, hosts: readonly MailHost[]): string {
  const group = groupOf(firstHost(hosts) ?? domain);
  const one = domain === group || hosts.every(({ host }) => groupOf(host) === group);
  return one ? group : `${domain}/${group}`;
}

/** Of the hosts of lowest preference the first by name, so that the group does not change with the order of equals. */
function firstHost(hosts: readonly MailHost[]): string | undefined {
  const lowest = Math.min(...hosts.map(({ preference }) => preference));
  const equals = hosts.filter(({ preference }) => preference === lowest);
  return equals.map(({ host }) => host).toSorted()[0];
}

/** Destinations that share limits: a provider, else the registered domain of the host (`mail.shop.co.uk`: `shop.co.uk`). */
export function groupOf(host: string): string {
  const ends = (suffix: string): boolean => host === suffix || host.endsWith(`.${suffix}`);
  return providers.find(({ hosts }) => hosts.some(ends))?.name ?? getDomain(host) ?? host;
}

function undeliverable(clock: Clock, failure: LocalFailure, why: string): Route {
  return {
    kind: "outcome",
    decide: (_job, startedAt) => {
      return localOutcome(failure, why, untried(startedAt, clock.now()));
    },
  };
}

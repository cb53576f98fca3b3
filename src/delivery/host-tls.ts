// What is asked of the TLS of one host of an attempt: tls-policy.ts decides, here are the facts for it. TLSA records are
// looked up only where the DNS vouches for the MX and the addresses that led there, or for the alias that the host is (RFC 7672 §2.2). A look-up that fails
// may be an attack, so the host is left out then (RFC 7672 §2.1.1).
import type { OutboundConfig } from "../config.ts";
import { queryableName } from "../dns/message.ts";
import type { Resolver } from "../dns/resolver.ts";
import { tlsaName } from "../dns/tlsa.ts";
import type { Owner } from "../fairness.ts";
import type { OutboundTls } from "../model/tls.ts";
import type { HostLookup } from "./addresses.ts";
import type { AttemptJob, AttemptRequest } from "./delivery.ts";
import type { LookupTime } from "./lookups.ts";
import { asConfigured, hostTls, type HostTls, type HostTlsa } from "./tls-policy.ts";

export interface HostTlsDeps {
  resolver: Pick<Resolver, "tlsa" | "cname">;
  outbound: Pick<OutboundConfig, "tls" | "port" | "smartHost">;
  /** What the operator asks of TLS to a recipient domain in a group; undefined: `outbound.tls` holds. */
  tlsFor: (domain: string, group: string) => OutboundTls | undefined;
  /** A TLS report: it is sent whatever the policies of its domain say (RFC 8460 §3). */
  isTlsReport: (job: AttemptJob) => boolean;
}

/** Why a host may not be dialled, or what its TLS must be. */
export type HostTlsResult = HostTls | { kind: "forbidden"; why: string } | { kind: "failed"; why: string };

export async function hostTlsOf(
  { resolver, outbound, tlsFor, isTlsReport }: HostTlsDeps,
  { job, route }: AttemptRequest,
  host: string,
  { tlsaNames, unsureAlias }: Extract<HostLookup, { kind: "addresses" }>,
  time: LookupTime,
  last: boolean,
): Promise<HostTlsResult> {
  if (outbound.smartHost !== null) return asConfigured(outbound.smartHost.tls);
  const { domain } = job;
  const { mtaSts } = route;
  const operator = tlsFor(domain, route.group) ?? outbound.tls;
  if (isTlsReport(job)) return asConfigured(operator);
  const owner = job.message.accountKey;
  const lookUp = async (): Promise<Tlsa> => {
    const names = unsureAlias ? await ofAlias(resolver, host, owner) : tlsaNames;
    return Array.isArray(names) ? tlsaOf(resolver, names, outbound.port, owner) : names;
  };
  const mayHave = route.authenticated && (unsureAlias || tlsaNames.length > 0);
  const found = mayHave ? await time.waitFor(lookUp, last) : noTlsa;
  if (found === null || found.kind === "failed") {
    const why = found?.why ?? "no answer in the time of this attempt";
    return { kind: "failed", why: `the DNS lookup of the TLSA records of ${host} failed: ${why}` };
  }
  const tls = hostTls({ domain, host, operator, tlsa: found.tlsa, mtaSts });
  if (tls.kind !== "forbidden") return tls;
  return { kind: "forbidden", why: `the MTA-STS policy of ${domain} does not name the MX ${host}` };
}

type Tlsa = { kind: "known"; tlsa: HostTlsa | null } | { kind: "failed"; why: string };
const noTlsa: Tlsa = { kind: "known", tlsa: null };

/** Of a host that is an alias of a name which the DNS does not vouch for: its own records count where it does for the alias. */
async function ofAlias(
  resolver: Pick<Resolver, "cname">,
  host: string,
  owner: Owner,
): Promise<string[] | Extract<Tlsa, { kind: "failed" }>> {
  const alias = await resolver.cname(host, owner);
  if (alias.kind === "failed") return alias;
  return alias.kind === "found" && alias.authenticated ? [host] : [];
}

/** Of the first name that has records; without one that has, null. */
async function tlsaOf(
  resolver: Pick<Resolver, "tlsa">,
  names: readonly string[],
  port: number,
  owner: Owner,
): Promise<Tlsa> {
  for (const base of names) {
    const name = tlsaName(base, port);
    if (!queryableName(name)) continue; // too long to have records
    const answer = await resolver.tlsa(name, owner);
    if (answer.kind === "failed") return answer;
    if (answer.kind === "found" && answer.authenticated)
      return { kind: "known", tlsa: { base, records: answer.records } };
  }
  return noTlsa;
}

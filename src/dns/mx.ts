// Where mail for a domain goes (RFC 5321 §5.1, RFC 7505): the hosts in the order in which they are
// tried, and the addresses of one of them. A failed look-up is distinguished from a negative answer: the first defers,
// the second bounces. delivery decides which addresses may be connected to.
import { isIP } from "node:net";
import { queryableName } from "./message.ts";
import type { Owner } from "../fairness.ts";
import { maxMxRecords, type DnsAnswer, type MxRecord, type Resolver } from "./resolver.ts";

/** At most this many addresses of a host are used per family. */
const maxHostAddresses = 16;

export interface MailHost {
  host: string;
  preference: number;
}

export type MailHosts =
  /** Lowest preference first, equal ones shuffled; never empty. `implicit`: the domain itself, for want of any MX. */
  | {
      kind: "hosts";
      hosts: MailHost[];
      implicit: boolean;
      /** AD bit of the MX answer; of an implicit host of its addresses, which are of the same zone. */
      authenticated: boolean;
    }
  /** The domain says that it takes no mail (RFC 7505). */
  | { kind: "null_mx" }
  | { kind: "nxdomain" }
  /** The domain exists and has neither an MX that names a host nor an address. */
  | { kind: "no_mail_host"; why: string }
  | { kind: "failed"; why: string };

export interface HostAddress {
  address: string;
  family: 4 | 6;
}

export type HostAddresses =
  | {
      kind: "addresses";
      addresses: HostAddress[];
      /** The AD bit of every answer that brought some. */
      authenticated: boolean;
      /** The host's name where `host` is an alias (CNAME) of it. */
      canonical?: string;
      /** Why it is unknown whether the host has addresses of the other family too. */
      missing?: string;
    }
  | { kind: "none" }
  | { kind: "failed"; why: string };

/** `domain` in A-label form; `random` gives [0, 1). Never throws. */
export async function mailHosts(
  resolver: Resolver,
  domain: string,
  random: () => number,
  owner?: Owner,
): Promise<MailHosts> {
  const answer = await resolver.mx(domain, owner);
  switch (answer.kind) {
    case "found":
      return fromRecords(domain, answer, random);
    case "nodata":
      return implicitHost(resolver, domain, owner);
    case "nxdomain":
    case "failed":
      return answer;
  }
}

function fromRecords(
  domain: string,
  answer: DnsAnswer<MxRecord> & { kind: "found" },
  random: () => number,
): MailHosts {
  if (answer.records.every((record) => record.exchange === "")) return { kind: "null_mx" };
  const preferences = new Map<string, number>();
  for (const { exchange, preference } of answer.records) {
    if (isHostName(exchange))
      preferences.set(exchange, Math.min(preference, preferences.get(exchange) ?? Infinity));
  }
  if (preferences.size === 0)
    return { kind: "no_mail_host", why: `no MX of ${domain} names a host: ${shown(answer.records)}` };
  const hosts = [...preferences]
    .map(([host, preference]) => ({ host, preference, draw: random() }))
    .sort((a, b) => a.preference - b.preference || a.draw - b.draw)
    .slice(0, maxMxRecords)
    .map(({ host, preference }) => ({ host, preference }));
  return { kind: "hosts", hosts, implicit: false, authenticated: answer.authenticated };
}

/** No MX at all: the domain is its own mail host if it has an address. */
async function implicitHost(
  resolver: Resolver,
  domain: string,
  owner: Owner | undefined,
): Promise<MailHosts> {
  const found = await hostAddresses(resolver, domain, owner);
  switch (found.kind) {
    case "addresses":
      return {
        kind: "hosts",
        hosts: [{ host: domain, preference: 0 }],
        implicit: true,
        authenticated: found.authenticated,
      };
    case "none":
      return { kind: "no_mail_host", why: `${domain} has neither MX nor A nor AAAA records` };
    case "failed":
      return found;
  }
}

/** IPv6 and IPv4 addresses of a host, IPv4 first; "failed" only where neither question brought one and one of them failed. */
export async function hostAddresses(resolver: Resolver, host: string, owner?: Owner): Promise<HostAddresses> {
  const [four, six] = await Promise.all([resolver.a(host, owner), resolver.aaaa(host, owner)]);
  const addresses: HostAddress[] = [
    ...recordsOf(four).map((address) => ({ address, family: 4 as const })),
    ...recordsOf(six).map((address) => ({ address, family: 6 as const })),
  ];
  const failed = [four, six].find((answer) => answer.kind === "failed");
  if (addresses.length > 0) {
    const found = [four, six].filter((answer) => answer.kind === "found");
    const canonical = found.find((answer) => answer.canonical !== undefined)?.canonical;
    return {
      kind: "addresses",
      addresses,
      authenticated: found.every((answer) => answer.authenticated),
      ...(canonical === undefined ? {} : { canonical }),
      ...(failed ? { missing: failed.why } : {}),
    };
  }
  if (four.kind === "failed") return four;
  if (six.kind === "failed") return six;
  return { kind: "none" };
}

function recordsOf(answer: DnsAnswer<string>): string[] {
  return answer.kind === "found" ? answer.records.slice(0, maxHostAddresses) : [];
}

/** A name that can have addresses: not a number in disguise (`192.0.2.1.` as a target), not empty, no odd bytes. */
function isHostName(name: string): boolean {
  return isIP(name) === 0 && queryableName(name) && /^[a-z0-9_.-]+$/.test(name);
}

function shown(records: MxRecord[]): string {
  const names = records.slice(0, 3).map((record) => JSON.stringify(record.exchange.slice(0, 100)));
  return names.join(", ");
}

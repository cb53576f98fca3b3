// The addresses that an attempt may connect to, host by host in MX order: at most five; none that is not public (except a
// smart host's), none of our own, none that failed in the last minute. Counts the ones left out, so that an attempt
// without any address can say why.
import { isIP } from "node:net";
import type { OutboundConfig } from "../config.ts";
import type { Clock } from "../clock.ts";
import { hostAddresses } from "../dns/mx.ts";
import type { HostAddress } from "../dns/mx.ts";
import { createAllowList, isPublicAddress } from "../dns/networks.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Owner } from "../fairness.ts";
import type { Family, Source } from "../pools/sources.ts";
import { createOwnAddresses } from "./own-addresses.ts";

/** Of one attempt; a domain with a thousand MX gets no more of our time than another. */
export const maxAddresses = 5;
const deadForMs = 60_000;
const maxDead = 2_000;

export interface AddressDeps {
  resolver: Resolver;
  outbound: OutboundConfig;
  /** Our own name: an MX of that name is us. */
  hostname: string;
  /** An address that this machine has or listens on at this port. */
  isOurs: (address: string, port: number) => boolean;
  /** Ports that this program takes mail at. */
  mailPorts: readonly number[];
  clock: Clock;
  random: () => number;
}

export type HostLookup =
  /** Dial these, in this order. `otherFamily`: it has others, of a family that the source is not. */
  | {
      kind: "addresses";
      addresses: HostAddress[];
      otherFamily: boolean;
      /** Where TLSA records of the host may stand, in this order; none where the DNS does not vouch for the addresses. */
      tlsaNames: string[];
      /** The host is an alias, and the DNS does not vouch for the addresses: it may for the alias alone. */
      unsureAlias: boolean;
    }
  /** This host and all after it are not to be used: it is this program (RFC 5321 §5.1). */
  | { kind: "ours"; why: string }
  | { kind: "forbidden"; why: string }
  | { kind: "none"; why: string }
  /** It has addresses, but none of the family of the pool's address that the mail was to leave from. */
  | { kind: "unsourced"; why: string }
  | { kind: "failed"; why: string };

export interface Addresses {
  /** Those that can be dialled from the source. `owner`: whose look-up it is. */
  of(host: string, source: Source, owner: Owner): Promise<HostLookup>;
  /** The families of a host that may be dialled, whatever there is to send from. `sure`: there are no others. */
  families(host: string, owner: Owner): Promise<{ families: Family[]; sure: boolean }>;
  /** The address to send from, null: the system's choice; undefined: none of that family, so it cannot be dialled. */
  sourceFor(family: Family, source: Source): string | null | undefined;
  /** How long ago, in milliseconds, this address could not be connected from `source`; null: nothing is known against it. */
  deadSince(address: string, port: number, source: string | null): number | null;
  /** For `source` alone: a receiver may drop what comes from one address of ours, and take what comes from another. */
  markDead(address: string, port: number, source: string | null): void;
}

export function createAddresses(deps: AddressDeps): Addresses {
  const { outbound, clock } = deps;
  const allowed = createAllowList(outbound.allowNetworks);
  const exempt = outbound.smartHost !== null;
  const mayDial = (address: string): boolean => exempt || isPublicAddress(address) || allowed(address);
  const dead = new Map<string, number>();
  // What our host name resolves to may be a router with other servers behind it: at a port that we do not listen on it
  // is one of those. Port 25 is ours: a router leads it to a port of any number.
  const mayBeUs = outbound.port === 25 || deps.mailPorts.includes(outbound.port);
  const named = exempt || !mayBeUs ? null : createOwnAddresses(deps);
  // A retry after less than a minute, where the operator wants that, must really be one.
  const deadMs = Math.min(deadForMs, outbound.retryMs[0] ?? deadForMs);

  const sourceFor: Addresses["sourceFor"] = (family, { address }) => {
    if (address !== null) return isIP(address) === family ? address : undefined;
    return outbound.source.length === 0 ? null : outbound.source.find((own) => isIP(own) === family);
  };

  const deadKey = (address: string, port: number, source: string | null): string =>
    `${address} ${port} ${source}`;

  return {
    sourceFor,
    async families(host, owner) {
      const found = exempt
        ? await smartHostAddresses(deps.resolver, host, owner)
        : await hostAddresses(deps.resolver, host, owner);
      if (found.kind !== "addresses") return { families: [], sure: found.kind === "none" };
      const dialled = found.addresses.filter(({ address }) => mayDial(address));
      return {
        families: [...new Set(dialled.map(({ family }) => family))],
        sure: found.missing === undefined,
      };
    },
    async of(host, source, owner) {
      if (host === deps.hostname.toLowerCase() && !exempt)
        return { kind: "ours", why: `the MX ${host} is this host` };
      const found = exempt
        ? await smartHostAddresses(deps.resolver, host, owner)
        : await hostAddresses(deps.resolver, host, owner);
      if (found.kind === "failed")
        return { kind: "failed", why: `the DNS lookup of ${host} failed: ${found.why}` };
      if (found.kind === "none") return { kind: "none", why: `${host} has no address` };
      if (named?.due()) await named.refresh();
      const own = exempt
        ? undefined
        : found.addresses.find(
            ({ address }) => deps.isOurs(address, outbound.port) || named?.has(address) === true,
          );
      if (own) return { kind: "ours", why: `the MX ${host} [${own.address}] is this host` };
      const dialled = found.addresses.filter(({ address }) => mayDial(address));
      if (dialled.length === 0)
        return {
          kind: "forbidden",
          why: `${host} has no address that mail may be sent to: ${shown(found.addresses)}`,
        };
      const sourced = dialled.filter(({ family }) => sourceFor(family, source) !== undefined);
      if (sourced.length === 0 && found.missing !== undefined)
        return { kind: "failed", why: `the DNS lookup of ${host} failed in part: ${found.missing}` };
      if (sourced.length === 0)
        return {
          kind: source.address === null ? "none" : "unsourced",
          why: `${host} [${shown(dialled)}] has no address of the family that we send from`,
        };
      return {
        kind: "addresses",
        addresses: interleaved(sourced, deps.random),
        otherFamily: sourced.length < dialled.length,
        unsureAlias: !found.authenticated && found.canonical !== undefined,
        tlsaNames: !found.authenticated
          ? []
          : found.canonical === undefined
            ? [host]
            : [found.canonical, host],
      };
    },
    deadSince(address, port, source) {
      const key = deadKey(address, port, source);
      const since = dead.get(key);
      if (since === undefined) return null;
      const ago = clock.monotonic() - since;
      if (ago < deadMs) return ago;
      dead.delete(key);
      return null;
    },
    markDead(address, port, source) {
      const oldest = dead.keys().next();
      if (dead.size >= maxDead && !oldest.done) dead.delete(oldest.value);
      dead.set(deadKey(address, port, source), clock.monotonic());
    },
  };
}

/** The operator configures the smart host, so it may be an IP address or localhost. */
async function smartHostAddresses(
  resolver: Resolver,
  host: string,
  owner: Owner,
): ReturnType<typeof hostAddresses> {
  const literal = host === "localhost" ? "127.0.0.1" : host;
  const family = isIP(literal);
  if (family === 4 || family === 6)
    return { kind: "addresses", addresses: [{ address: literal, family }], authenticated: false };
  return hostAddresses(resolver, host, owner);
}

/** IPv4 and IPv6 by turns, so that neither a missing route nor a dead family uses up the five; each from a random start. */
function interleaved(addresses: HostAddress[], random: () => number): HostAddress[] {
  if (addresses.length === 1) return addresses;
  const turned = ([4, 6] as const).map((family) => {
    const own = addresses.filter((address) => address.family === family);
    const from = Math.floor(random() * own.length);
    return [...own.slice(from), ...own.slice(0, from)];
  });
  const [four = [], six = []] = turned;
  const mixed: HostAddress[] = [];
  for (let i = 0; i < Math.max(four.length, six.length); i++) {
    for (const address of [four[i], six[i]]) if (address) mixed.push(address);
  }
  return mixed;
}

function shown(addresses: HostAddress[]): string {
  return addresses
    .slice(0, 5)
    .map(({ address }) => address)
    .join(", ");
}

// Which addresses are looked up: those that receivers see mail come from. An address of a pool that is public is one.
// Behind NAT a pool has private addresses: receivers see the public addresses that the EHLO name has in the DNS, which it
// must have there anyway (RFC 5321 §4.1.1.1). The same holds for the system's choice, by the server's hostname.
import { isIP } from "node:net";
import { minuteMs, type Clock } from "../clock.ts";
import { isPublicAddress, parseHostAddress } from "../dns/networks.ts";
import type { Resolver } from "../dns/resolver.ts";
import { defaultPool, type Pool, type PoolAddress } from "../model/ip-pool.ts";
import { owner } from "./look.ts";

/** An address that we send from, and what receivers see of it. */
export interface Source {
  accountKey: number;
  pool: string;
  /** null: the system's choice. */
  of: PoolAddress | null;
  /** null: not known yet. */
  publicAddresses: string[] | null;
}

/** An address as receivers see it. */
export interface Watched {
  address: string;
  /** The pools whose mail leaves from it. */
  pools: { accountKey: number; name: string }[];
  /** False while this machine has none of its sources: somebody else may have it. */
  usable: boolean;
}

export interface Names {
  /** The public addresses that a name has in the DNS; null: not known yet. */
  publicAddresses(name: string, family: 4 | 6): string[] | null;
  /** Looks up the names that are due, until `isOver`. */
  refresh(names: readonly { name: string; family: 4 | 6 }[], isOver: () => boolean): Promise<void>;
}

const mostAddressesOfName = 8;
const namesAtOnce = 10;
const failedAgainMs = 5 * minuteMs;

/** `keptMs`: how often a name is looked up. A failed look-up changes nothing, and is tried again sooner. */
export function createNames(resolver: Pick<Resolver, "a" | "aaaa">, clock: Clock, keptMs: number): Names {
  /** `until`: on the monotonic clock. */
  const known = new Map<string, { addresses: string[] | null; until: number }>();
  const keyOf = (name: string, family: 4 | 6): string => `${family} ${name.toLowerCase()}`;

  const look = async (name: string, family: 4 | 6): Promise<void> => {
    const key = keyOf(name, family);
    const answer = await (family === 4 ? resolver.a(name, owner) : resolver.aaaa(name, owner));
    const found = answer.kind === "found" ? answer.records : [];
    const addresses = found
      .flatMap((record) => {
        const parsed = parseHostAddress(record);
        return parsed.ok && isPublicAddress(parsed.value) ? [parsed.value] : [];
      })
      .slice(0, mostAddressesOfName);
    const before = known.get(key)?.addresses ?? null;
    const failed = answer.kind === "failed";
    known.set(key, {
      addresses: failed ? before : addresses,
      until: clock.monotonic() + (failed ? Math.min(failedAgainMs, keptMs) : keptMs),
    });
  };

  return {
    publicAddresses: (name, family) => known.get(keyOf(name, family))?.addresses ?? null,
    async refresh(names, isOver) {
      const wanted = new Map(names.map(({ name, family }) => [keyOf(name, family), { name, family }]));
      for (const key of known.keys()) if (!wanted.has(key)) known.delete(key);
      const due = [...wanted].filter(([key]) => {
        const until = known.get(key)?.until;
        return until === undefined || clock.monotonic() >= until;
      });
      for (let from = 0; from < due.length && !isOver(); from += namesAtOnce)
        await Promise.all(
          due.slice(from, from + namesAtOnce).map(([, { name, family }]) => look(name, family)),
        );
    },
  };
}

/** The system chooses the address of either family. */
const unspecified = ["0.0.0.0", "::"];
const familyOf = (address: string): 4 | 6 => (isIP(address) === 6 ? 6 : 4);

/** Mail's own addresses, where the default account's pool `default` leaves the choice to the system. */
export interface SystemChoice {
  hostname: string;
  /** `outbound.source` */
  sources: readonly string[];
  /** The default account. */
  accountKey: number;
}

/** The names that `sourcesOf` asks for. */
export function namesOf(pools: readonly Pool[], system: SystemChoice): { name: string; family: 4 | 6 }[] {
  return addressesOf(pools, system)
    .filter(({ address }) => !isPublicAddress(address))
    .map(({ address, name }) => ({ name, family: familyOf(address) }));
}

/** `pools`: those of all accounts. */
export function sourcesOf(
  pools: readonly Pool[],
  system: SystemChoice,
  names: Pick<Names, "publicAddresses">,
): Source[] {
  return addressesOf(pools, system).map(({ accountKey, pool, of, address, name }) => ({
    accountKey,
    pool,
    of,
    publicAddresses: isPublicAddress(address) ? [address] : names.publicAddresses(name, familyOf(address)),
  }));
}

export function watchedOf(sources: readonly Source[]): Watched[] {
  const all = new Map<string, Watched>();
  for (const { accountKey, pool, of, publicAddresses } of sources)
    for (const address of publicAddresses ?? []) {
      const watched = all.get(address) ?? { address, pools: [], usable: false };
      all.set(address, watched);
      if (!watched.pools.some((one) => one.accountKey === accountKey && one.name === pool))
        watched.pools.push({ accountKey, name: pool });
      watched.usable ||= of?.bindable !== false;
    }
  return [...all.values()].toSorted((a, b) => (a.address < b.address ? -1 : 1));
}

/** `name`: what is said in EHLO from there. */
interface Named extends Omit<Source, "publicAddresses"> {
  address: string;
  name: string;
}

function addressesOf(pools: readonly Pool[], { accountKey, hostname, sources }: SystemChoice): Named[] {
  const ofPools = pools.flatMap((pool) =>
    pool.addresses.map((of): Named => {
      const name = of.hostname ?? hostname;
      return { accountKey: pool.accountKey, pool: pool.name, of, address: of.address, name };
    }),
  );
  if (ofPools.some((one) => one.accountKey === accountKey && one.pool === defaultPool)) return ofPools;
  const chosen = sources.length === 0 ? unspecified : sources;
  const ofSystem = chosen.map((address): Named => {
    return { accountKey, pool: defaultPool, of: null, address, name: hostname };
  });
  return [...ofPools, ...ofSystem];
}

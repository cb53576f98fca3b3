// The egress sources of a pool: its addresses that are usable now, kept in memory so that no message queries the store.
// The pool `default` without addresses leaves the choice to the system (or to `outbound.source`). Any other that can use
// none gives an empty list: its mail waits, since it never leaves from an address outside of the pool.
import { isIP } from "node:net";
import { defaultPool, type Pool, type PoolAddress } from "../model/ip-pool.ts";

export type Family = 4 | 6;

export interface Source {
  /** null: the system's choice. */
  address: string | null;
  /** The name in EHLO; null: the server's hostname. */
  hostname: string | null;
  weight: number;
}

export interface PoolSources {
  /** Of all addresses of the pool, usable or not; empty for a pool without addresses. */
  families: readonly Family[];
  /** The same list until something changes. */
  usable(family: Family | null): readonly Source[];
}

const system: readonly Source[] = [{ address: null, hostname: null, weight: 1 }];

/** Of the pool `default` without addresses, and of mail that needs no address. */
export const systemSources: PoolSources = { families: [], usable: () => system };
/** Of any other pool without addresses: it may be given one of either family. */
const emptyPool: PoolSources = { families: [4, 6], usable: () => [] };

/** An address that blocklists list; with `dnsbl.on_listing: drain` it gets mail only where no other can be used. */
export const isListed = ({ blacklists }: PoolAddress): boolean => blacklists.length > 0;

/** An address that was not checked yet counts as usable: an attempt finds out. */
export const isUsable = ({ paused, bindable }: PoolAddress): boolean => !paused && bindable !== false;

/** `drainListed`: new mail leaves from addresses that are not listed, while one of the family can be used. */
export function sourcesOf(pool: Pool, drainListed = false): PoolSources {
  if (pool.addresses.length === 0) return pool.name === defaultPool ? systemSources : emptyPool;
  const familyOf = (address: string): Family => (isIP(address) === 6 ? 6 : 4);
  const addresses = pool.addresses.filter(isUsable);
  const of = (...families: Family[]): Source[] => {
    const usable = addresses.filter(({ address }) => families.includes(familyOf(address)));
    const clean = drainListed ? usable.filter((one) => !isListed(one)) : usable;
    return (clean.length > 0 ? clean : usable).map(({ address, hostname, weight }) => ({
      address,
      hostname,
      weight,
    }));
  };
  const [all, four, six] = [of(4, 6), of(4), of(6)];
  return {
    families: [...new Set(pool.addresses.map(({ address }) => familyOf(address)))],
    usable: (family) => (family === null ? all : family === 4 ? four : six),
  };
}

/** One of them by chance, the weightier the likelier. `random`: [0, 1). */
export function chooseByWeight<T extends { weight: number }>(from: readonly T[], random: number): T | null {
  let left = random * from.reduce((sum, { weight }) => sum + weight, 0);
  for (const one of from) {
    left -= one.weight;
    if (left < 0) return one;
  }
  return from.at(-1) ?? null;
}

// The egress sources of a pool: its addresses that are usable now, kept in memory so that no message queries the store.
// The pool `default` without addresses leaves the choice to the system (or to `outbound.source`). Any other that can use
// none gives an empty list: its mail waits, since it never leaves from an address outside of the pool.
// An IPv6 address without a valid reverse name is a last resort: large receivers refuse or bounce what comes from one.
import { isIP } from "node:net";
import { defaultPool, type Pool, type PoolAddress } from "../model/ip-pool.ts";

export type Family = 4 | 6;

export interface Source {
  /** null: the system's choice. */
  address: string | null;
  /** The name in EHLO; null: the server's hostname. */
  hostname: string | null;
  weight: number;
  /** When its warm-up began; null: it does not warm up. */
  warmingSince: number | null;
}

export interface PoolSources {
  /** Of all addresses of the pool, usable or not, that are not a last resort; empty for a pool without addresses. */
  families: readonly Family[];
  /** Of the others: for mail that `families` cannot reach. */
  lastResort: readonly Family[];
  /** The same list until something changes. `family`: of mail that can leave by no other; null: by any. */
  usable(family: Family | null): readonly Source[];
  /** Those of a family that mail which was tried by the other may leave from. */
  others(family: Family): readonly Source[];
}

const system: readonly Source[] = [{ address: null, hostname: null, weight: 1, warmingSince: null }];

/** Of the pool `default` without addresses, and of mail that needs no address. */
export const systemSources: PoolSources = {
  families: [],
  lastResort: [],
  usable: () => system,
  others: () => system,
};
/** Of any other pool without addresses: it may be given one of either family. */
const emptyPool: PoolSources = { families: [4, 6], lastResort: [], usable: () => [], others: () => [] };

/** An address that blocklists list; with `dnsbl.on_listing: drain` it gets mail only where no other can be used. */
export const isListed = ({ blacklists }: PoolAddress): boolean => blacklists.length > 0;

/** An address that was not checked yet counts as usable: an attempt finds out. */
export const isUsable = ({ paused, bindable }: PoolAddress): boolean => !paused && bindable !== false;

/** An IPv6 address whose PTR record is missing or not that of its EHLO name. One that was not looked up yet counts as right. */
export const lacksReverseName = ({ address, ptrOk }: PoolAddress): boolean =>
  familyOf(address) === 6 && ptrOk === false;

/**
 * `drainListed`: new mail leaves from addresses that are not listed, while one of the family can be used that does not warm
 * up: mail that waits for a warm-up's cap is worse off than mail from a listed address.
 */
export function sourcesOf(pool: Pool, drainListed = false): PoolSources {
  if (pool.addresses.length === 0) return pool.name === defaultPool ? systemSources : emptyPool;
  const usable = pool.addresses.filter(isUsable);
  const named = usable.filter((one) => !lacksReverseName(one));
  const isLastResort = (one: PoolAddress): boolean => named.length > 0 && lacksReverseName(one);
  const chosen = (from: PoolAddress[]): Source[] => {
    const clean = drainListed ? from.filter((one) => !isListed(one)) : from;
    return (clean.some((one) => one.warmupStartedAt === null) ? clean : from).map(sourceOf);
  };
  const of = (family: Family, from: PoolAddress[]): Source[] =>
    chosen(from.filter(({ address }) => familyOf(address) === family));
  const first = named.length > 0 ? named : usable;
  const all = chosen(first);
  const others = { 4: of(4, first), 6: of(6, first) };
  const only = { 4: others[4], 6: others[6].length > 0 ? others[6] : of(6, usable) };
  const families = familiesOf(pool.addresses.filter((one) => !isLastResort(one)));
  return {
    families,
    lastResort: familiesOf(pool.addresses).filter((family) => !families.includes(family)),
    usable: (family) => (family === null ? all : only[family]),
    others: (family) => others[family],
  };
}

function familyOf(address: string): Family {
  return isIP(address) === 6 ? 6 : 4;
}

function familiesOf(addresses: readonly PoolAddress[]): Family[] {
  return [...new Set(addresses.map(({ address }) => familyOf(address)))];
}

function sourceOf({ address, hostname, weight, warmupStartedAt: warmingSince }: PoolAddress): Source {
  return { address, hostname, weight, warmingSince };
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

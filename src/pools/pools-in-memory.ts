// The pools of all accounts in memory, as they were read last: which pool a message uses, its addresses, and which of all
// are usable. An account that is not here has the pool `default` alone. What is read, and when: pools.ts.
import { defaultPool, type Pool } from "../model/ip-pool.ts";
import { isUsable, sourcesOf, systemSources, type PoolSources } from "./sources.ts";

interface Entry {
  pool: Pool;
  sources: PoolSources;
}

interface AccountPools {
  byName: Map<string, Entry>;
  defaultName: string;
}

export interface PoolsInMemory {
  /** Puts what was read in the place of the account's pools; answers those that are gone. */
  put(accountKey: number, pools: readonly Pool[]): Pool[];
  /** After all were put: finds out which addresses are usable. */
  refreshUsable(): void;
  accountKeys(): number[];
  all(): Pool[];
  pool(accountKey: number, name: string): Pool | null;
  nameFor(accountKey: number, name: string | null): string | null;
  names(accountKey: number): string[];
  sourcesOf(accountKey: number, name: string): PoolSources;
  addressesOf(accountKey: number): string[];
  mayUse(address: string): boolean;
}

export function createPoolsInMemory(drainListed: boolean | undefined): PoolsInMemory {
  const accounts = new Map<number, AccountPools>();
  let usable = new Set<string>();

  const entriesOf = (account: AccountPools | undefined): Entry[] => [...(account?.byName.values() ?? [])];
  const all = (): Pool[] => [...accounts.values()].flatMap(entriesOf).map(({ pool }) => pool);

  return {
    put(accountKey, pools) {
      const before = entriesOf(accounts.get(accountKey)).map(({ pool }) => pool);
      if (pools.length === 0) accounts.delete(accountKey);
      else
        accounts.set(accountKey, {
          byName: new Map(
            pools.map((pool) => [pool.name, { pool, sources: sourcesOf(pool, drainListed) }] as const),
          ),
          defaultName: pools.find(({ isDefault }) => isDefault)?.name ?? defaultPool,
        });
      return before.filter(({ name }) => !pools.some((pool) => pool.name === name));
    },
    refreshUsable() {
      const now = all().flatMap((pool) => pool.addresses.filter(isUsable));
      usable = new Set(now.map(({ address }) => address));
    },
    accountKeys: () => [...accounts.keys()],
    all,
    pool: (accountKey, name) => accounts.get(accountKey)?.byName.get(name)?.pool ?? null,
    nameFor(accountKey, name) {
      const account = accounts.get(accountKey);
      if (name === null) return account?.defaultName ?? defaultPool;
      return name === defaultPool || account?.byName.has(name) === true ? name : null;
    },
    names: (accountKey) => [...(accounts.get(accountKey)?.byName.keys() ?? [defaultPool])],
    sourcesOf: (accountKey, name) => accounts.get(accountKey)?.byName.get(name)?.sources ?? systemSources,
    addressesOf: (accountKey) =>
      entriesOf(accounts.get(accountKey)).flatMap(({ pool }) => pool.addresses.map(({ address }) => address)),
    mayUse: (address) => usable.has(address),
  };
}

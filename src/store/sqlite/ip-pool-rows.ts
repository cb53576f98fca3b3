// Pools as they are read, by the loop and by the writer alike. The pool `default` exists by nature: every account has
// it, whether a row says something about it or not, and it is the default one where no other is.
import type { Database, Statement } from "better-sqlite3";
import { getTableColumns } from "drizzle-orm";
import { defaultPool, type Pool, type PoolAddress } from "../../model/ip-pool.ts";
import { recordOf, selected, unsaid } from "./columns.ts";
import { ipPools } from "./schema/ip-pools.ts";

const columns = getTableColumns(ipPools);
const { key: _key, accountKey: _account, chosen: _chosen, ...settings } = columns;
/** A pool of which nothing was said, as a row and as a record. */
export const unsaidPool = unsaid(settings);

type PoolRow = typeof ipPools.$inferSelect;

interface AddressRow {
  address: string;
  hostname: string | null;
  weight: number;
  paused: number;
  warmupStartedAt: number | null;
  bindable: number | null;
  ptr: string | null;
  ptrOk: number | null;
  blacklists: string;
  createdAt: number;
  updatedAt: number;
}

const booleanOf = (cell: number | null): boolean | null => (cell === null ? null : cell !== 0);

export function createPoolRows(db: Database) {
  const pools: Statement<[number], PoolRow> = db.prepare(
    `SELECT ${selected(columns)} FROM ip_pools WHERE account_key = ? ORDER BY name`,
  );
  const addresses: Statement<[string, number], AddressRow> = db.prepare(
    `SELECT a.address, a.hostname, a.weight, a.paused, a.warmup_started_at AS warmupStartedAt, n.bindable, a.ptr, a.ptr_ok AS ptrOk, a.blacklists,
       a.created_at AS createdAt, a.updated_at AS updatedAt
     FROM ip_addresses a LEFT JOIN node_addresses n ON n.address = a.address AND n.node = ? WHERE a.pool_key = ?`,
  );
  const made: Statement<[number], { createdAt: number }> = db.prepare(
    "SELECT created_at AS createdAt FROM accounts WHERE key = ?",
  );
  const nextAccount: Statement<[number], { accountKey: number }> = db.prepare(
    "SELECT account_key AS accountKey FROM ip_pools WHERE account_key > ? ORDER BY account_key LIMIT 1",
  );

  const addressesOf = (poolKey: number, node: string): PoolAddress[] =>
    addresses
      .all(node, poolKey)
      .map(({ paused, bindable, ptrOk, blacklists, ...rest }) => ({
        ...rest,
        paused: paused !== 0,
        bindable: booleanOf(bindable),
        ptrOk: booleanOf(ptrOk),
        blacklists: JSON.parse(blacklists) as string[],
      }))
      .toSorted((a, b) => (a.address < b.address ? -1 : 1));

  return {
    /** By name, their addresses as `node` sees them; none where there is no such account. */
    of(accountKey: number, node: string): Pool[] {
      const account = made.get(accountKey);
      if (!account) return [];
      const rows = pools.all(accountKey);
      const chosen = rows.find((row) => row.chosen !== 0)?.name ?? defaultPool;
      const found = rows.map(({ key, chosen: _chosen, ...row }) => ({
        ...recordOf(settings, row),
        isDefault: row.name === chosen,
        addresses: addressesOf(key, node),
      }));
      if (found.some(({ name }) => name === defaultPool)) return found;
      const { createdAt } = account;
      const implied = {
        ...(recordOf(settings, unsaidPool) as Omit<typeof ipPools.$inferSelect, "key" | "chosen">),
        accountKey,
        name: defaultPool,
        isDefault: chosen === defaultPool,
        addresses: [],
        createdAt,
        updatedAt: createdAt,
      };
      return [...found, implied].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },
    /** Accounts whose pools are more than the one that they have by nature. */
    accounts(): number[] {
      const keys: number[] = [];
      for (let next = nextAccount.get(0); next; next = nextAccount.get(next.accountKey))
        keys.push(next.accountKey);
      return keys;
    },
  };
}

// A pool by the name that its account gives it, as the writes of pools and of their addresses need it: the key of its row,
// and the pool as a write answers it. The row of the pool `default` is made when something is first said about it.
import type { Database, Statement } from "better-sqlite3";
import { defaultPool, type Pool, type PoolWrite } from "../../model/ip-pool.ts";
import { createPoolRows } from "./ip-pool-rows.ts";

/** `node`: the one that asks, as which it sees the addresses of the pool that it is answered. */
export interface PoolCall {
  accountKey: number;
  node: string;
  at: number;
}

type PoolOwner = Pick<PoolCall, "accountKey" | "node">;

export type NamedPools = ReturnType<typeof createNamedPools>;

export function createNamedPools(db: Database) {
  const rows = createPoolRows(db);
  const ensureDefault = db.prepare(
    `INSERT INTO ip_pools (account_key, name, chosen, created_at, updated_at)
     SELECT key, '${defaultPool}', 0, created_at, created_at FROM accounts WHERE key = ? ON CONFLICT DO NOTHING`,
  );
  const find: Statement<[number, string], { key: number }> = db.prepare(
    "SELECT key FROM ip_pools WHERE account_key = ? AND name = ?",
  );

  const of = ({ accountKey, node }: PoolOwner): Pool[] => rows.of(accountKey, node);
  const named = (owner: PoolOwner, name: string): Pool | null =>
    of(owner).find((pool) => pool.name === name) ?? null;

  return {
    of,
    named,
    /** The key of a pool, its row made where it is the one that exists by nature. */
    keyOf(accountKey: number, name: string): number | null {
      if (name === defaultPool) ensureDefault.run(accountKey);
      return find.get(accountKey, name)?.key ?? null;
    },
    /** What a write answers that was made. */
    done(owner: PoolOwner, name: string): PoolWrite {
      const pool = named(owner, name);
      return pool ? { ok: true, pool } : refused("no_pool");
    },
  };
}

export function refused(why: Extract<PoolWrite, { ok: false }>["why"]): PoolWrite {
  return { ok: false, why };
}

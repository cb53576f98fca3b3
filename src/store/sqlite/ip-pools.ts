// What changes pools, and the calls of the noun: pools, their addresses (ip-pool-addresses.ts), and whose an address is
// (ip-assignments.ts). A pool goes only when it has no address and no mail waits for it.
import type { Database } from "better-sqlite3";
import { getTableColumns } from "drizzle-orm";
import { defaultPool, type NewPool, type PoolChange, type PoolWrite } from "../../model/ip-pool.ts";
import { everyone } from "../changes.ts";
import type { IpPoolStore } from "../interface/ip-pools.ts";
import { assigned, cellsOf, inserted, only } from "./columns.ts";
import { createAssignmentRows, createAssignmentWrites } from "./ip-assignments.ts";
import { createAddressWrites } from "./ip-pool-addresses.ts";
import { createPoolMail } from "./ip-pool-mail.ts";
import { createNamedPools, refused, type NamedPools, type PoolCall } from "./ip-pool-names.ts";
import { createPoolRows, unsaidPool } from "./ip-pool-rows.ts";
import { none, noun } from "./noun.ts";
import { ipPools as table } from "./schema/ip-pools.ts";

const { key: _key, ...columns } = getTableColumns(table);

function createPoolWrites(db: Database, pools: NamedPools) {
  const hasMail = createPoolMail(db);
  const insertPool = db.prepare(`INSERT INTO ip_pools ${inserted(columns)}`);
  const unchoose = db.prepare(
    "UPDATE ip_pools SET chosen = 0, updated_at = ? WHERE account_key = ? AND chosen = 1",
  );
  const choose = db.prepare(
    `UPDATE ip_pools SET chosen = iif(name = '${defaultPool}', 0, 1), updated_at = ? WHERE key = ?`,
  );
  const removePool = db.prepare("DELETE FROM ip_pools WHERE key = ?");

  const setDefault = (accountKey: number, key: number, at: number): void => {
    unchoose.run(at, accountKey);
    choose.run(at, key);
  };

  return {
    createPool(arg: PoolCall & NewPool & { most?: number }): PoolWrite {
      const { accountKey, name, at, most = Infinity } = arg;
      const before = pools.of(arg);
      if (before.some((pool) => pool.name === name)) return refused("exists");
      if (before.length >= most) return refused("too_many_pools");
      const row = { ...unsaidPool, ...cellsOf(columns, arg), chosen: 0, createdAt: at, updatedAt: at };
      const key = Number(insertPool.run(row).lastInsertRowid);
      if (arg.isDefault === true) setDefault(accountKey, key, at);
      return pools.done(arg, name);
    },
    updatePool(arg: PoolCall & { name: string; change: PoolChange }): PoolWrite {
      const { accountKey, name, change, at } = arg;
      const key = pools.keyOf(accountKey, name);
      const pool = pools.named(arg, name);
      if (key === null || !pool) return refused("no_pool");
      if (change.isDefault === false && pool.isDefault && name === defaultPool) return refused("default");
      const cells = cellsOf(columns, change);
      if (Object.keys(cells).length > 0)
        db.prepare(
          `UPDATE ip_pools SET ${assigned(only(columns, cells))}, updated_at = @at WHERE key = @key`,
        ).run({ ...cells, key, at });
      if (change.isDefault === true) setDefault(accountKey, key, at);
      if (change.isDefault === false && pool.isDefault) unchoose.run(at, accountKey);
      return pools.done(arg, name);
    },
    /** `scheduledQueues`: how the scheduled queues of the pool's mail begin. Answers the pool as it was. */
    deletePool(arg: Omit<PoolCall, "at"> & { name: string; scheduledQueues: string }): PoolWrite {
      const { accountKey, name, scheduledQueues } = arg;
      const pool = pools.named(arg, name);
      if (!pool) return refused("no_pool");
      if (pool.isDefault || name === defaultPool) return refused("default");
      if (pool.addresses.length > 0) return refused("has_addresses");
      if (hasMail(accountKey, scheduledQueues)) return refused("has_mail");
      const key = pools.keyOf(accountKey, name);
      if (key !== null) removePool.run(key);
      return { ok: true, pool };
    },
  };
}

export const ipPools = noun({
  commands(db: Database) {
    const pools = createNamedPools(db);
    return {
      ...createPoolWrites(db, pools),
      ...createAddressWrites(db, pools),
      ...createAssignmentWrites(db),
    };
  },
  touches: {
    createPool: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
    updatePool: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
    deletePool: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
    addAddress: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
    updateAddress: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
    removeAddress: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
    saveLooks: (touch) => touch(everyone, "ip_pools"),
    assignAddress: (touch) => touch(everyone, "ip_pools"),
    unassignAddress: (touch) => touch(everyone, "ip_pools"),
  },
  lookups(db: Database) {
    const pools = createPoolRows(db);
    const assignments = createAssignmentRows(db);
    return {
      poolsOf: pools.of,
      accountsWithPools: pools.accounts,
      assignments: assignments.all,
      isOwnAddress: assignments.isOwn,
    };
  },
  lists: none,
  calls: ({ write, lookups, node }): IpPoolStore => ({
    listPools: async (accountKey) => lookups.poolsOf(accountKey, node),
    accountsWithPools: async () => lookups.accountsWithPools(),
    createPool: (pool) => write.createPool({ ...pool, node }),
    updatePool: (accountKey, name, change, at) => write.updatePool({ accountKey, node, name, change, at }),
    deletePool: (accountKey, name, scheduledQueues) =>
      write.deletePool({ accountKey, node, name, scheduledQueues }),
    addAddress: (accountKey, pool, address, at, rules = {}) =>
      write.addAddress({ accountKey, node, pool, address, at, rules }),
    updateAddress: (accountKey, pool, address, change, at) =>
      write.updateAddress({ accountKey, node, pool, address, change, at }),
    removeAddress: (accountKey, pool, address, at) =>
      write.removeAddress({ accountKey, node, pool, address, at }),
    saveLooks: (looks, at) => write.saveLooks({ node, looks, at }),
    mayHoldAddress: async (accountKey, address) => lookups.isOwnAddress(accountKey, address),
    listAssignments: async () => lookups.assignments(),
    assignAddress: (accountKey, address, at) => write.assignAddress({ accountKey, address, at }),
    unassignAddress: (address, at) => write.unassignAddress({ address, at }),
  }),
});

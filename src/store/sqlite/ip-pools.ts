// What changes pools and their addresses. An address is in one pool of one account; the row of the pool `default` is
// made when something is first said about it. A pool goes only when it has no address and no mail waits for it, which
// one seek in the index of each kind tells.
import type { Database, Statement } from "better-sqlite3";
import { getTableColumns } from "drizzle-orm";
import {
  defaultPool,
  type AddressChange,
  type AddressLook,
  type NewAddress,
  type NewPool,
  type PoolChange,
  type PoolRules,
  type PoolWrite,
} from "../../model/ip-pool.ts";
import { everyone } from "../changes.ts";
import type { IpPoolStore } from "../interface/ip-pools.ts";
import { holderOf, isLeased, operatorHolderOf } from "./held-mail.ts";
import { createAssignmentRows, createAssignmentWrites } from "./ip-assignments.ts";
import { assigned, cellsOf, inserted, only } from "./columns.ts";
import { createPoolRows, unsaidPool } from "./ip-pool-rows.ts";
import { none, noun } from "./noun.ts";
import { ipPools as table } from "./schema/ip-pools.ts";

/** `node`: the one that asks, as which it sees the addresses of the pool that it is answered. */
interface PoolCall {
  accountKey: number;
  node: string;
  at: number;
}

const { key: _key, ...columns } = getTableColumns(table);

export function createPoolWrites(db: Database) {
  const rows = createPoolRows(db);
  const { isAnothers, assignAdded, ...assignments } = createAssignmentWrites(db);
  const ensureDefault = db.prepare(
    `INSERT INTO ip_pools (account_key, name, chosen, created_at, updated_at)
     SELECT key, '${defaultPool}', 0, created_at, created_at FROM accounts WHERE key = ? ON CONFLICT DO NOTHING`,
  );
  const insertPool = db.prepare(`INSERT INTO ip_pools ${inserted(columns)}`);
  const find: Statement<[number, string], { key: number }> = db.prepare(
    "SELECT key FROM ip_pools WHERE account_key = ? AND name = ?",
  );
  const unchoose = db.prepare(
    "UPDATE ip_pools SET chosen = 0, updated_at = ? WHERE account_key = ? AND chosen = 1",
  );
  const choose = db.prepare(
    `UPDATE ip_pools SET chosen = iif(name = '${defaultPool}', 0, 1), updated_at = ? WHERE key = ?`,
  );
  const touch = db.prepare("UPDATE ip_pools SET updated_at = ? WHERE key = ?");
  const removePool = db.prepare("DELETE FROM ip_pools WHERE key = ?");
  const waits: Statement<[string, string], { found: number }> = db.prepare(
    "SELECT 1 AS found FROM recipients INDEXED BY recipients_waiting WHERE due_at IS NOT NULL AND queue_name >= ? AND queue_name < ? LIMIT 1",
  );
  // What is in flight at once is bounded; held mail is not, so one held recipient of the account stands for all.
  const inFlight: Statement<[string, string], { found: number }> = db.prepare(
    `SELECT 1 AS found FROM recipients INDEXED BY recipients_leased WHERE ${isLeased} AND queue_name >= ? AND queue_name < ? LIMIT 1`,
  );
  const onHold: Statement<[string], { found: number }> = db.prepare(
    "SELECT 1 AS found FROM recipients INDEXED BY recipients_leased WHERE lease_owner = ? LIMIT 1",
  );
  const holder: Statement<[string], { poolKey: number }> = db.prepare(
    "SELECT pool_key AS poolKey FROM ip_addresses WHERE address = ?",
  );
  const insertAddress = db.prepare(
    `INSERT INTO ip_addresses (address, pool_key, hostname, weight, paused, warmup_started_at, ptr, ptr_ok, created_at, updated_at)
     VALUES (@address, @poolKey, @hostname, @weight, 0, @warmupStartedAt, NULL, NULL, @at, @at)`,
  );
  const changeAddress = db.prepare(
    `UPDATE ip_addresses SET pool_key = @poolKey, weight = coalesce(@weight, weight), paused = coalesce(@paused, paused),
       hostname = iif(@newHostname, @hostname, hostname),
       ptr_ok = iif(@newHostname, NULL, ptr_ok), 
       warmup_started_at = CASE @warmup WHEN 1 THEN coalesce(warmup_started_at, @at) WHEN 0 THEN NULL ELSE warmup_started_at END, updated_at = @at WHERE address = @address`,
  );
  const removeAddress = db.prepare("DELETE FROM ip_addresses WHERE address = ?");
  const saveLook = db.prepare(
    "UPDATE ip_addresses SET ptr = @ptr, ptr_ok = @ptrOk, updated_at = @at WHERE address = @address",
  );
  const saveBind = db.prepare(
    `INSERT INTO node_addresses (address, node, bindable) SELECT address, @node, @bindable FROM ip_addresses WHERE address = @address
     ON CONFLICT (address, node) DO UPDATE SET bindable = excluded.bindable`,
  );

  /** The key of a pool, its row made where it is the one that exists by nature. */
  const keyOf = (accountKey: number, name: string): number | null => {
    if (name === defaultPool) ensureDefault.run(accountKey);
    return find.get(accountKey, name)?.key ?? null;
  };
  const done = ({ accountKey, node }: Pick<PoolCall, "accountKey" | "node">, name: string): PoolWrite => {
    const pool = rows.of(accountKey, node).find((one) => one.name === name);
    return pool ? { ok: true, pool } : { ok: false, why: "no_pool" };
  };
  const noteBind = (node: string, address: string, bindable: boolean | null): void => {
    if (bindable !== null) saveBind.run({ node, address, bindable: cell(bindable) });
  };
  const refused = (why: Extract<PoolWrite, { ok: false }>["why"]): PoolWrite => ({ ok: false, why });

  const setDefault = (accountKey: number, key: number, at: number): void => {
    unchoose.run(at, accountKey);
    choose.run(at, key);
  };
  const addressesOf = (accountKey: number, node: string): number =>
    rows.of(accountKey, node).reduce((sum, { addresses }) => sum + addresses.length, 0);

  return {
    createPool(arg: PoolCall & NewPool & { most?: number }): PoolWrite {
      const { accountKey, node, name, at, most = Infinity } = arg;
      const pools = rows.of(accountKey, node);
      if (pools.some((pool) => pool.name === name)) return refused("exists");
      if (pools.length >= most) return refused("too_many_pools");
      const row = { ...unsaidPool, ...cellsOf(columns, arg), chosen: 0, createdAt: at, updatedAt: at };
      const key = Number(insertPool.run(row).lastInsertRowid);
      if (arg.isDefault === true) setDefault(accountKey, key, at);
      return done(arg, name);
    },
    updatePool(arg: PoolCall & { name: string; change: PoolChange }): PoolWrite {
      const { accountKey, node, name, change, at } = arg;
      const key = keyOf(accountKey, name);
      const pool = rows.of(accountKey, node).find((one) => one.name === name);
      if (key === null || !pool) return refused("no_pool");
      if (change.isDefault === false && pool.isDefault && name === defaultPool) return refused("default");
      const cells = cellsOf(columns, change);
      if (Object.keys(cells).length > 0)
        db.prepare(
          `UPDATE ip_pools SET ${assigned(only(columns, cells))}, updated_at = @at WHERE key = @key`,
        ).run({ ...cells, key, at });
      if (change.isDefault === true) setDefault(accountKey, key, at);
      if (change.isDefault === false && pool.isDefault) unchoose.run(at, accountKey);
      return done(arg, name);
    },
    /** `scheduledQueues`: how the scheduled queues of the pool's mail begin. Answers the pool as it was. */
    deletePool(arg: Omit<PoolCall, "at"> & { name: string; scheduledQueues: string }): PoolWrite {
      const { accountKey, node, name, scheduledQueues } = arg;
      const pool = rows.of(accountKey, node).find((one) => one.name === name);
      if (!pool) return refused("no_pool");
      if (pool.isDefault || name === defaultPool) return refused("default");
      if (pool.addresses.length > 0) return refused("has_addresses");
      const before = `${scheduledQueues}\u{10ffff}`;
      if (
        waits.get(scheduledQueues, before) ??
        inFlight.get(scheduledQueues, before) ??
        onHold.get(holderOf(accountKey)) ??
        onHold.get(operatorHolderOf(accountKey))
      )
        return refused("has_mail");
      const key = keyOf(accountKey, name);
      if (key !== null) removePool.run(key);
      return { ok: true, pool };
    },
    addAddress(arg: PoolCall & { pool: string; address: NewAddress; rules?: PoolRules }): PoolWrite {
      const { accountKey, node, pool, address, at, rules: { most = Infinity, ownOnly = false } = {} } = arg;
      const poolKey = keyOf(accountKey, pool);
      if (poolKey === null) return refused("no_pool");
      // Before anything is said of the address: whose it is, or whether anybody has it, is not for every account to know.
      if (ownOnly && !assignments.isOwn(accountKey, address.address)) return refused("not_assigned");
      if (holder.get(address.address)) return refused("taken");
      if (isAnothers(accountKey, address.address)) return refused("not_assigned");
      if (addressesOf(accountKey, node) >= most) return refused("too_many_addresses");
      const { bindable, warmup, ...row } = address;
      insertAddress.run({ ...row, poolKey, at, warmupStartedAt: warmup === true ? at : null });
      noteBind(node, address.address, bindable);
      assignAdded(accountKey, address.address, at);
      touch.run(at, poolKey);
      return done(arg, pool);
    },
    /** Answers the pool that has the address then. */
    updateAddress(arg: PoolCall & { pool: string; address: string; change: AddressChange }): PoolWrite {
      const { accountKey, pool, address, change, at } = arg;
      const poolKey = keyOf(accountKey, pool);
      if (poolKey === null) return refused("no_pool");
      if (holder.get(address)?.poolKey !== poolKey) return refused("no_address");
      const to = change.pool ?? pool;
      const toKey = keyOf(accountKey, to);
      if (toKey === null) return refused("no_other_pool");
      changeAddress.run({
        address,
        poolKey: toKey,
        weight: change.weight ?? null,
        paused: cell(change.paused ?? null),
        newHostname: Number(change.hostname !== undefined),
        hostname: change.hostname ?? null,
        warmup: change.warmup === undefined ? null : cell(change.warmup === true),
        at,
      });
      for (const key of new Set([poolKey, toKey])) touch.run(at, key);
      return done(arg, to);
    },
    removeAddress(arg: PoolCall & { pool: string; address: string }): PoolWrite {
      const { accountKey, pool, address, at } = arg;
      const poolKey = keyOf(accountKey, pool);
      if (poolKey === null) return refused("no_pool");
      if (holder.get(address)?.poolKey !== poolKey) return refused("no_address");
      removeAddress.run(address);
      touch.run(at, poolKey);
      return done(arg, pool);
    },
    /** What the node saw of addresses; those that are gone meanwhile are left out. */
    saveLooks({ node, looks, at }: { node: string; looks: AddressLook[]; at: number }): void {
      for (const { address, bindable, ptr, ptrOk } of looks) {
        saveLook.run({ address, ptr, ptrOk: cell(ptrOk), at });
        noteBind(node, address, bindable);
      }
    },
    assignAddress: assignments.assignAddress,
    unassignAddress: assignments.unassignAddress,
  };
}

function cell(value: boolean | null): number | null {
  return value === null ? null : Number(value);
}

export const ipPools = noun({
  commands: createPoolWrites,
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

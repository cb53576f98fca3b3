// What changes the addresses of pools: which pool has one, what its weight and host name are, and what a node saw of it. An
// address is in one pool of one account; whose it is: ip-assignments.ts.
import type { Database, Statement } from "better-sqlite3";
import type { AddressChange, AddressLook, NewAddress, PoolRules, PoolWrite } from "../../model/ip-pool.ts";
import { createAssignmentOfAdded, createAssignmentRows } from "./ip-assignments.ts";
import { refused, type NamedPools, type PoolCall } from "./ip-pool-names.ts";

export function createAddressWrites(db: Database, pools: NamedPools) {
  const assignments = createAssignmentRows(db);
  const assign = createAssignmentOfAdded(db);
  const touch = db.prepare("UPDATE ip_pools SET updated_at = ? WHERE key = ?");
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

  const noteBind = (node: string, address: string, bindable: boolean | null): void => {
    if (bindable !== null) saveBind.run({ node, address, bindable: cell(bindable) });
  };

  return {
    addAddress(arg: PoolCall & { pool: string; address: NewAddress; rules?: PoolRules }): PoolWrite {
      const { accountKey, node, pool, address, at, rules: { most = Infinity, ownOnly = false } = {} } = arg;
      const poolKey = pools.keyOf(accountKey, pool);
      if (poolKey === null) return refused("no_pool");
      // Before anything is said of the address: whose it is, or whether anybody has it, is not for every account to know.
      if (ownOnly && !assignments.isOwn(accountKey, address.address)) return refused("not_assigned");
      if (holder.get(address.address)) return refused("taken");
      if (assignments.isAnothers(accountKey, address.address)) return refused("not_assigned");
      if (pools.of(arg).flatMap(({ addresses }) => addresses).length >= most)
        return refused("too_many_addresses");
      const { bindable, warmup, ...row } = address;
      insertAddress.run({ ...row, poolKey, at, warmupStartedAt: warmup === true ? at : null });
      noteBind(node, address.address, bindable);
      assign(accountKey, address.address, at);
      touch.run(at, poolKey);
      return pools.done(arg, pool);
    },
    /** Answers the pool that has the address then. */
    updateAddress(arg: PoolCall & { pool: string; address: string; change: AddressChange }): PoolWrite {
      const { accountKey, pool, address, change, at } = arg;
      const poolKey = pools.keyOf(accountKey, pool);
      if (poolKey === null) return refused("no_pool");
      if (holder.get(address)?.poolKey !== poolKey) return refused("no_address");
      const to = change.pool ?? pool;
      const toKey = pools.keyOf(accountKey, to);
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
      return pools.done(arg, to);
    },
    removeAddress(arg: PoolCall & { pool: string; address: string }): PoolWrite {
      const { accountKey, pool, address, at } = arg;
      const poolKey = pools.keyOf(accountKey, pool);
      if (poolKey === null) return refused("no_pool");
      if (holder.get(address)?.poolKey !== poolKey) return refused("no_address");
      removeAddress.run(address);
      touch.run(at, poolKey);
      return pools.done(arg, pool);
    },
    /** What the node saw of addresses; those that are gone meanwhile are left out. */
    saveLooks({ node, looks, at }: { node: string; looks: AddressLook[]; at: number }): void {
      for (const { address, bindable, ptr, ptrOk } of looks) {
        saveLook.run({ address, ptr, ptrOk: cell(ptrOk), at });
        noteBind(node, address, bindable);
      }
    },
  };
}

function cell(value: boolean | null): number | null {
  return value === null ? null : Number(value);
}

// What the routes of IP pools and of their addresses share: both spellings of the path, and how a write ends. What
// prevents a write is decided by the store, and becomes a refusal here.
import { limitRefusal, mostOf } from "../../access/account-limits.ts";
import { Refusal } from "../../errors.ts";
import type { Account } from "../../model/account.ts";
import type { Pool, PoolRefusal, PoolWrite } from "../../model/ip-pool.ts";
import type { Pools } from "../../pools/pools.ts";
import type { Call, Reply, Route } from "../route.ts";

/** The same routes at the path of the pools and under its other spelling. */
export function underBoth(routesAt: (base: string) => Route[]): Route[] {
  return [
    ...routesAt("/v1/ip_pools"),
    ...routesAt("/v1/ip-pools").map((entry) => ({ ...entry, alias: true })),
  ];
}

/** Once it is written, mail leaves by what the pools are then. */
export async function thenRead(
  pools: Pools,
  call: Call<unknown, unknown>,
  write: Promise<Reply>,
): Promise<Reply> {
  const reply = await write;
  await pools.changed(call.account.key);
  return reply;
}

/** The pool as it was written, or the refusal that stands against the write; `account`: whose limits the refusal names. */
export function poolOf(done: PoolWrite, account: Pick<Account, "name" | "limits">): Pool {
  if (done.ok) return done.pool;
  switch (done.why) {
    case "no_pool":
      throw noPool();
    case "no_address":
      throw noAddress();
    case "no_other_pool":
      throw new Refusal("validation_failed", "ip_pool names no pool of this account.", {
        errors: [{ field: "ip_pool", code: "validation_failed", issue: "names no pool of this account" }],
      });
    case "not_assigned":
      throw notAssigned(account.name);
    case "too_many_pools":
      throw limitRefusal(account, "ip_pools", mostOf(account.limits, "ip_pools"));
    case "too_many_addresses":
      throw limitRefusal(account, "ip_addresses", mostOf(account.limits, "ip_addresses"));
    default:
      throw new Refusal("conflict", conflicts[done.why]);
  }
}

const conflicts: Record<
  Exclude<
    PoolRefusal,
    "no_pool" | "no_address" | "no_other_pool" | "not_assigned" | "too_many_pools" | "too_many_addresses"
  >,
  string
> = {
  exists: "The account already has a pool of this name.",
  taken: "The address is already in a pool; an address is in one pool only.",
  default:
    "It is the default pool. Make another pool the default first; the pool named default always stays.",
  has_addresses: "The pool has addresses. Remove or move them first.",
  has_mail: "Mail waits for the pool. Wait until it is sent, or cancel it.",
};

export function noPool(): Refusal {
  return new Refusal("resource_not_found", "There is no such IP pool.");
}

/** The same whether this machine has the address, another account has it, or none does. */
export function notAssigned(account: string): Refusal {
  const issue = `is not assigned to the account ${account}; the operator assigns it: svc ips assign ADDRESS --account ${account}`;
  return new Refusal("validation_failed", `ip_address ${issue}`, {
    field: "ip_address",
    errors: [{ field: "ip_address", code: "validation_failed", issue }],
  });
}

export function noAddress(): Refusal {
  return new Refusal("resource_not_found", "The pool has no such address.");
}

// /v1/ip_pools, and the same under /v1/ip-pools: the pools of addresses that a message may name. Their addresses are
// ips.ts's. What stands against a write is the store's to say, and is put into words here.
import { z } from "zod";
import { limitRefusal, mostOf } from "../../access/account-limits.ts";
import { Refusal } from "../../errors.ts";
import type { Account } from "../../model/account.ts";
import type { Pool, PoolRefusal, PoolWrite } from "../../model/ip-pool.ts";
import type { Pools } from "../../pools/pools.ts";
import { lanesOf } from "../../queue/lane.ts";
import { pageFields, present } from "../fields.ts";
import { listBody, namedPageOf, pageRequest } from "../paging.ts";
import { json, route, type Call, type Reply, type Route } from "../route.ts";
import { list } from "../shapes/common.ts";
import { poolBody, poolShape } from "../shapes/pools.ts";
import type { RouteDeps } from "../deps.ts";

const poolName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9_-]{0,63}$/,
    "is 1 to 64 lower-case letters, digits, - and _, the first a letter or a digit",
  );
const description = z.string().max(500, "is longer than 500 characters").nullable();
const newPool = z.strictObject({
  name: poolName,
  description: description.optional(),
  is_default: z.boolean().optional().describe("Messages that name no pool go by it from now on."),
});
const changedPool = z.strictObject({
  description: description.optional(),
  is_default: z.boolean().optional(),
});
const shows = ["name", "description", "is_default"];
const common = { scopes: ["admin"], bucket: "default", doors: "both", query: z.object({}), shows } as const;

/** The same routes at the path of the pools and under its other spelling. */
export function underBoth(routesAt: (base: string) => Route[]): Route[] {
  return [
    ...routesAt("/v1/ip_pools"),
    ...routesAt("/v1/ip-pools").map((entry) => ({ ...entry, alias: true })),
  ];
}

export function ipPoolRoutes(deps: RouteDeps): Route[] {
  return underBoth((base) => poolRoutes(deps, base));
}

function poolRoutes({ store, pools, config, clock }: RouteDeps, base: string): Route[] {
  const shownPool = (pool: Pool) => poolBody(pool, config.hostname);
  const one = { ...common, path: `${base}/{name}` };

  return [
    route({
      ...common,
      method: "GET",
      changes: ["ip_pools"],
      path: base,
      summary: "Lists the account's IP pools",
      answers: { 200: list(poolShape) },
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        const page = namedPageOf(await store.listPools(account.key), pageRequest(query));
        return json(200, listBody(page, shownPool));
      },
    }),
    route({
      ...common,
      method: "POST",
      path: base,
      summary: "Makes an IP pool",
      answers: { 201: poolShape },
      refuses: ["conflict"],
      body: newPool,
      locatedBy: "name",
      handle(call) {
        const { name, description: text = null, is_default: isDefault = false } = call.body;
        const at = clock.now();
        const write = call.once(
          (writing) =>
            writing.createPool({
              accountKey: call.account.key,
              name,
              description: text,
              isDefault,
              at,
              ...(call.door === "admin" ? {} : { most: mostOf(call.account.limits, "ip_pools") }),
            }),
          (done) => json(201, shownPool(poolOf(done, call.account)), { location: `${base}/${name}` }),
        );
        return thenRead(pools, call, write);
      },
    }),
    route({
      ...one,
      method: "GET",
      changes: ["ip_pools"],
      summary: "Shows an IP pool with its addresses",
      answers: { 200: poolShape },
      refuses: ["resource_not_found"],
      body: null,
      async handle({ account, param }) {
        const pool = (await store.listPools(account.key)).find(({ name }) => name === param("name"));
        if (!pool) throw noPool();
        return json(200, shownPool(pool));
      },
    }),
    route({
      ...one,
      method: "PATCH",
      summary: "Changes an IP pool",
      answers: { 200: poolShape },
      refuses: ["resource_not_found", "conflict"],
      body: changedPool,
      handle(call) {
        const change = present({ description: call.body.description, isDefault: call.body.is_default });
        const at = clock.now();
        const write = call.once(
          (writing) => writing.updatePool(call.account.key, call.param("name"), change, at),
          (done) => json(200, shownPool(poolOf(done, call.account))),
        );
        return thenRead(pools, call, write);
      },
    }),
    route({
      ...one,
      method: "DELETE",
      summary: "Deletes an IP pool without addresses, for which no mail waits",
      answers: { 204: null },
      refuses: ["resource_not_found", "conflict"],
      body: null,
      handle(call) {
        const name = call.param("name");
        const write = call.once(
          (writing) => writing.deletePool(call.account.key, name, lanesOf(call.account.key, name)),
          (done) => {
            poolOf(done, call.account);
            return { status: 204 };
          },
        );
        return thenRead(pools, call, write);
      },
    }),
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

/** The pool as it was written, or the refusal that stands against the write; `account` is told of its limits. */
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
  exists: "The account has a pool of this name already.",
  taken: "The address is in a pool already; an address is in one pool only.",
  default:
    "It is the default pool. Make another pool the default first; the pool named default always stays.",
  has_addresses: "The pool has addresses. Remove or move them first.",
  has_mail: "Mail waits for the pool. Let it go out, or cancel it, first.",
};

function noPool(): Refusal {
  return new Refusal("resource_not_found", "There is no such IP pool.");
}

/** The same whether this machine has the address, another account holds it, or nobody does. */
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

// /v1/ip_pools, and the same under /v1/ip-pools: the pools of addresses that a message may name. Their addresses: ips.ts.
import { z } from "zod";
import { mostOf } from "../../access/account-limits.ts";
import type { Pool } from "../../model/ip-pool.ts";
import { queuePrefixOf } from "../../queue/queue-name.ts";
import { timestamp } from "../../value-schemas.ts";
import { inputOf, viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields } from "../fields.ts";
import { flagNotes } from "../flags.ts";
import { listBody, namedPageOf, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import { list } from "../view-fields.ts";
import { ipSchema, ipView, type AddressContext } from "./ips.ts";
import { noPool, poolOf, thenRead, underBoth } from "./pool-writes.ts";

const poolSchema = z
  .strictObject({
    name: z.string(),
    description: z.string().nullable(),
    is_default: z.boolean().describe("Messages that name no pool use it."),
    ips: z
      .array(ipSchema)
      .describe(
        "Without an address, mail of the pool `default` leaves from the address that the system chooses; mail of another pool waits.",
      ),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: "IpPool" });

const poolView = viewOf(poolSchema, {
  ips: ({ name, addresses }: Pool, context: Omit<AddressContext, "pool">) =>
    addresses.map((address) => ipView(address, { pool: name, ...context })),
});

const poolName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9_-]{0,63}$/,
    "is 1 to 64 lower-case letters, digits, - and _, the first a letter or a digit",
  );
const description = z
  .string()
  .max(500, "is longer than 500 characters")
  .nullable()
  .register(flagNotes, { flag: "--description <text>", about: "what it is for" });
const isDefault = z
  .boolean()
  .register(flagNotes, { flag: "--default", about: "messages that name no pool use it" });
const newPool = z.strictObject({
  name: poolName,
  description: description.optional(),
  is_default: isDefault.optional().describe("Messages that name no pool use it from now on."),
});
const changedPool = z.strictObject({
  description: description.optional(),
  is_default: isDefault.optional(),
});
const newInput = inputOf(newPool);
const changeInput = inputOf(changedPool);
const auditFields = ["name", "description", "is_default"];
const common = {
  scopes: ["admin"],
  bucket: "default",
  listeners: "both",
  query: z.object({}),
  auditFields,
} as const;

export function ipPoolRoutes(deps: RouteDeps): Route[] {
  return underBoth((base) => poolRoutes(deps, base));
}

function poolRoutes({ store, pools, config, clock }: RouteDeps, base: string): Route[] {
  const shownPool = (pool: Pool) => poolView(pool, { hostname: config.hostname, warmupOf: pools.warmupOf });
  const one = { ...common, path: `${base}/{name}` };

  return [
    route({
      ...common,
      method: "GET",
      lastModifiedFrom: ["ip_pools"],
      path: base,
      summary: "List IP pools",
      answers: { 200: list(poolSchema) },
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
      summary: "Create an IP pool",
      answers: { 201: poolSchema },
      refuses: ["conflict"],
      body: newPool,
      locatedBy: "name",
      handle(call) {
        const { name } = call.body;
        const at = clock.now();
        const write = call.idempotent(
          (writing) =>
            writing.createPool({
              ...newInput(call.body),
              accountKey: call.account.key,
              at,
              ...(call.listener === "admin" ? {} : { most: mostOf(call.account.limits, "ip_pools") }),
            }),
          (done) => json(201, shownPool(poolOf(done, call.account)), { location: `${base}/${name}` }),
        );
        return thenRead(pools, call, write);
      },
    }),
    route({
      ...one,
      method: "GET",
      lastModifiedFrom: ["ip_pools"],
      summary: "Get an IP pool and its addresses",
      answers: { 200: poolSchema },
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
      summary: "Update an IP pool",
      answers: { 200: poolSchema },
      refuses: ["resource_not_found", "conflict"],
      body: changedPool,
      handle(call) {
        const change = changeInput(call.body);
        const at = clock.now();
        const write = call.idempotent(
          (writing) => writing.updatePool(call.account.key, call.param("name"), change, at),
          (done) => json(200, shownPool(poolOf(done, call.account))),
        );
        return thenRead(pools, call, write);
      },
    }),
    route({
      ...one,
      method: "DELETE",
      summary: "Delete an IP pool that has no addresses and no waiting mail",
      answers: { 204: null },
      refuses: ["resource_not_found", "conflict"],
      body: null,
      handle(call) {
        const name = call.param("name");
        const write = call.idempotent(
          (writing) => writing.deletePool(call.account.key, name, queuePrefixOf(call.account.key, name)),
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

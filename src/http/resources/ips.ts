// The addresses of IP pools, under their pool, and /v1/ips, all of an account. Where several accounts send, a key puts
// only addresses into its pools that the operator assigned to its account, and learns nothing of others; a name for EHLO
// has to resolve to the address. The operator's socket is bound by neither. Whether this machine has an address, and
// what the DNS calls it, is found out by pools/.
import { z } from "zod";
import { mostOf } from "../../access/account-limits.ts";
import { parseHostAddress } from "../../dns/networks.ts";
import { parseDomain } from "../../mail/address.ts";
import { addressStatuses, chosenAddressStatuses, type Pool, type PoolAddress } from "../../model/ip-pool.ts";
import { isListed } from "../../pools/sources.ts";
import { ipAddress, timestamp } from "../../value-schemas.ts";
import { inputOf, viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields } from "../fields.ts";
import { listBody, namedPageOf, pageRequest } from "../paging.ts";
import { json, route, type Call, type Route } from "../route.ts";
import { list } from "../view-fields.ts";
import { noAddress, notAssigned, poolOf, thenRead, underBoth } from "./pool-writes.ts";

export const ipSchema = z
  .strictObject({
    ip_address: ipAddress,
    ip_pool: z.string(),
    hostname: z.string().describe("The name in EHLO; the server's hostname if none was given."),
    weight: z.int().describe("Its share of the pool's mail, relative to the weights of the others."),
    status: z.enum(addressStatuses),
    warmup: z.boolean().nullable(),
    blacklists: z.array(z.string()).describe("The zones of the DNS blocklists that list it."),
    ptr: z.string().nullable().describe("The name that the DNS has for the address."),
    ptr_ok: z
      .boolean()
      .nullable()
      .describe(
        "The PTR name is the hostname, and the hostname resolves to the address; null until the DNS has answered.",
      ),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: "Ip" });

interface AddressContext {
  pool: string;
  hostname: string;
}

/** `hostname`: what is said in EHLO from an address that has no name of its own. */
export const ipView = viewOf(ipSchema, {
  ip_address: ({ address }: PoolAddress) => address,
  ip_pool: (_: PoolAddress, { pool }: AddressContext) => pool,
  hostname: (of: PoolAddress, { hostname }: AddressContext) => of.hostname ?? hostname,
  status: (of: PoolAddress) =>
    of.paused ? "paused" : of.bindable === false ? "unbindable" : isListed(of) ? "listed" : "active",
});

const mostWeight = 1000;
const weightWords = `is a whole number from 1 to ${mostWeight}`;
const weight = z.int(weightWords).min(1, weightWords).max(mostWeight, weightWords);
const hostname = z
  .string()
  .max(1000)
  .transform((text, context) => {
    const name = parseDomain(text.replace(/\.$/, ""));
    if (name.ok) return name.value;
    context.addIssue({ code: "custom", message: name.issue });
    return z.NEVER;
  })
  .nullable()
  .describe("The name in EHLO; null: the server's hostname.");
const warmup = z.boolean().nullable();
export const ipAddressField = z
  .string()
  .max(100)
  .transform((text, context) => {
    const address = parseHostAddress(text);
    if (address.ok) return address.value;
    context.addIssue({ code: "custom", message: address.issue });
    return z.NEVER;
  });

const newIp = z.strictObject({
  ip_address: ipAddressField,
  hostname: hostname.optional(),
  weight: weight.default(1),
  warmup: warmup.optional(),
});
const changedIp = z.strictObject({
  weight: weight.optional(),
  hostname: hostname.optional(),
  status: z
    .enum(chosenAddressStatuses)
    .transform((status) => status === "paused")
    .optional(),
  warmup: warmup.optional(),
  ip_pool: z.string().max(64).optional().describe("Moves it to another pool, with its settings."),
});

const changeInput = inputOf(changedIp, { status: "paused", ip_pool: "pool" });

const auditFields = ["ip_address", "hostname", "weight", "status", "warmup"];
const common = {
  scopes: ["admin"],
  bucket: "default",
  listeners: "both",
  query: z.object({}),
  auditFields,
} as const;

export function ipRoutes(deps: RouteDeps): Route[] {
  return [
    ...underBoth((base) => routesUnder(deps, `${base}/{name}/ips`)),
    route({
      ...common,
      method: "GET",
      lastModifiedFrom: ["ip_pools"],
      path: "/v1/ips",
      summary: "List the IP addresses of all pools",
      answers: { 200: list(ipSchema) },
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        const pools = await deps.store.listPools(account.key);
        const rows = pools
          .flatMap(({ name, addresses }) => addresses.map((address) => ({ pool: name, address })))
          .map((row) => ({ ...row, name: row.address.address }));
        const page = namedPageOf(rows, pageRequest(query));
        return json(
          200,
          listBody(page, ({ pool, address }) => ipView(address, { pool, hostname: deps.config.hostname })),
        );
      },
    }),
  ];
}

function routesUnder({ store, pools, config, clock }: RouteDeps, path: string): Route[] {
  /** Before the DNS or the machine is asked about an address that is not the account's to use. */
  const refuseForeign = async (
    { listener, account }: Call<unknown, unknown>,
    address: string,
  ): Promise<void> => {
    if (listener === "admin" || (await store.mayHoldAddress(account.key, address))) return;
    throw notAssigned(account.name);
  };
  const shown = (pool: Pool, address: string) =>
    ipView(addressIn(pool, address), { pool: pool.name, hostname: config.hostname });
  const one = { ...common, path: `${path}/{ip}` };

  return [
    route({
      ...common,
      method: "POST",
      path,
      act: "ip_pools.ips.create",
      summary: "Add an IP address to an IP pool",
      answers: { 201: ipSchema },
      refuses: ["resource_not_found", "conflict"],
      upstream: true,
      body: newIp,
      locatedBy: "ip_address",
      async handle(call) {
        const { ip_address: address, hostname: name = null, weight: share, warmup: warm = null } = call.body;
        await refuseForeign(call, address);
        if (call.listener === "public" && name !== null) await pools.checkEhloName(name, address);
        const bindable = await pools.canBind(address);
        const at = clock.now();
        const row = { address, hostname: name, weight: share, warmup: warm, bindable };
        const most = mostOf(call.account.limits, "ip_addresses");
        const rules = call.listener === "admin" ? {} : { most, ownOnly: true };
        const write = call.idempotent(
          (writing) => writing.addAddress(call.account.key, call.param("name"), row, at, rules),
          (done) =>
            json(201, shown(poolOf(done, call.account), address), {
              location: `${path.replace("{name}", call.param("name"))}/${address}`,
            }),
        );
        return thenRead(pools, call, write);
      },
    }),
    route({
      ...one,
      method: "PATCH",
      summary: "Update, pause, resume or move an IP address",
      answers: { 200: ipSchema },
      refuses: ["resource_not_found"],
      upstream: true,
      body: changedIp,
      async handle(call) {
        const change = changeInput(call.body);
        const { hostname: name } = change;
        const address = addressOf(call);
        if (call.listener === "public" && typeof name === "string") {
          const held = (await store.listPools(call.account.key)).find(
            (one) => one.name === call.param("name"),
          );
          if (!held?.addresses.some((one) => one.address === address)) throw noAddress();
          await pools.checkEhloName(name, address);
        }
        const at = clock.now();
        const write = call.idempotent(
          (writing) => writing.updateAddress(call.account.key, call.param("name"), address, change, at),
          (done) => json(200, shown(poolOf(done, call.account), address)),
        );
        return thenRead(pools, call, write);
      },
    }),
    route({
      ...one,
      method: "DELETE",
      summary: "Remove an IP address from its pool",
      answers: { 204: null },
      refuses: ["resource_not_found"],
      body: null,
      handle(call) {
        const address = addressOf(call);
        const at = clock.now();
        const write = call.idempotent(
          (writing) => writing.removeAddress(call.account.key, call.param("name"), address, at),
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

/** The path's address in its one form, however it was written. */
function addressOf(call: Call<unknown, unknown>): string {
  const address = parseHostAddress(call.param("ip"));
  if (!address.ok) throw noAddress();
  return address.value;
}

function addressIn(pool: Pool, address: string): PoolAddress {
  const found = pool.addresses.find((one) => one.address === address);
  if (!found) throw new Error("the address that was written is not in its pool");
  return found;
}

// What the API shows of IP pools and their addresses.
import { z } from "zod";
import { isoTime } from "../../clock.ts";
import { addressStatuses, type Pool, type PoolAddress } from "../../model/ip-pool.ts";
import { ipAddress, timestamp } from "./common.ts";

export const ipShape = z
  .strictObject({
    ip_address: ipAddress,
    ip_pool: z.string(),
    hostname: z.string().describe("Said in EHLO; the server's own name where none was given."),
    weight: z.int().describe("Its share of the pool's mail, against the others' weights."),
    status: z.enum(addressStatuses),
    warmup: z.boolean().nullable(),
    blacklists: z.array(z.string()),
    ptr: z.string().nullable().describe("The name that the DNS has for the address."),
    ptr_ok: z
      .boolean()
      .nullable()
      .describe("The name is the hostname, which has the address again; null while the DNS has not told."),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: "Ip" });

export const poolShape = z
  .strictObject({
    name: z.string(),
    description: z.string().nullable(),
    is_default: z.boolean().describe("Messages that name no pool go by it."),
    ips: z
      .array(ipShape)
      .describe(
        "Without any, mail of `default` leaves from where the system chooses; that of another waits.",
      ),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: "IpPool" });

export const assignmentShape = z
  .strictObject({
    ip_address: ipAddress,
    account: z.string().describe("Name of the account that it belongs to."),
    ip_pool: z.string().nullable().describe("The pool that it is in, or was in when it was taken away."),
    assigned_at: timestamp,
  })
  .meta({ id: "IpAssignment" });

/** `hostname`: what is said in EHLO from addresses that have no name of their own. */
export function poolBody(pool: Pool, hostname: string): z.input<typeof poolShape> {
  return {
    name: pool.name,
    description: pool.description,
    is_default: pool.isDefault,
    ips: pool.addresses.map((address) => ipBody(address, pool.name, hostname)),
    created_at: isoTime(pool.createdAt),
    updated_at: isoTime(pool.updatedAt),
  };
}

export function ipBody(of: PoolAddress, pool: string, hostname: string): z.input<typeof ipShape> {
  return {
    ip_address: of.address,
    ip_pool: pool,
    hostname: of.hostname ?? hostname,
    weight: of.weight,
    status: of.paused ? "paused" : of.bindable === false ? "unbindable" : "active",
    warmup: of.warmup,
    blacklists: [],
    ptr: of.ptr,
    ptr_ok: of.ptrOk,
    created_at: isoTime(of.createdAt),
    updated_at: isoTime(of.updatedAt),
  };
}

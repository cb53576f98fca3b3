// /v1/ip_assignments, on the operator's socket only: which account an address belongs to. Where several accounts send, an
// account's key puts only these into its pools (ips.ts). An address has one owner: to give it to another account it is
// taken from the first, which takes it out of that one's pool too; mail that waits for the pool then waits, or leaves by
// the pool's other addresses.
import { z } from "zod";
import { parseHostAddress } from "../../dns/networks.ts";
import { Refusal } from "../../errors.ts";
import type { IpAssignment } from "../../model/ip-assignment.ts";
import { ipAddress, timestamp } from "../../value-schemas.ts";
import { viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields } from "../fields.ts";
import { listBody, namedPageOf, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import { list } from "../view-fields.ts";
import { ipAddressField } from "./ips.ts";

const assignmentSchema = z
  .strictObject({
    ip_address: ipAddress,
    account: z.string().describe("Name of the account that it belongs to."),
    ip_pool: z.string().nullable().describe("The pool that it is in, or was in when it was unassigned."),
    assigned_at: timestamp,
  })
  .meta({ id: "IpAssignment" });

const assignmentView = viewOf(assignmentSchema, {
  ip_address: ({ address }: IpAssignment) => address,
  ip_pool: ({ pool }: IpAssignment) => pool,
});

const common = {
  scopes: ["admin"],
  bucket: "default",
  listeners: "admin",
  query: z.object({}),
  auditFields: ["ip_address"],
} as const;

export function ipAssignmentRoutes({ store, pools, clock }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      path: "/v1/ip_assignments",
      summary: "List the IP addresses that are assigned to accounts",
      lastModifiedFrom: ["ip_pools", "accounts"],
      answers: { 200: list(assignmentSchema) },
      query: z.object(pageFields()),
      body: null,
      async handle({ query }) {
        const rows = (await store.listAssignments()).map((row) => ({ ...row, name: row.address }));
        return json(200, listBody(namedPageOf(rows, pageRequest(query)), assignmentView));
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/ip_assignments",
      summary: "Assign an IP address to the account",
      answers: { 201: assignmentSchema },
      refuses: ["conflict"],
      body: z.strictObject({ ip_address: ipAddressField }),
      locatedBy: "ip_address",
      handle(call) {
        const address = call.body.ip_address;
        const at = clock.now();
        return call.idempotent(
          (writing) => writing.assignAddress(call.account.key, address, at),
          (result) => {
            if (result.ok)
              return json(201, assignmentView(result.assignment), {
                location: `/v1/ip_assignments/${address}`,
              });
            const { why, account } = result;
            throw new Refusal(
              "conflict",
              why === "assigned"
                ? `${address} belongs to the account ${account}. Unassign it first: svc ips unassign ${address}`
                : `${address} is in a pool of the account ${account}. Remove it from the pool first: svc --account ${account} ips remove ${address}`,
            );
          },
        );
      },
    }),
    route({
      ...common,
      method: "DELETE",
      path: "/v1/ip_assignments/{ip}",
      summary: "Unassign an IP address from its account; it is removed from its pool too",
      answers: { 200: assignmentSchema },
      refuses: ["resource_not_found"],
      body: null,
      async handle(call) {
        const address = parseHostAddress(call.param("ip"));
        let owner: number | null = null;
        const reply = await call.idempotent(
          async (writing) => (address.ok ? await writing.unassignAddress(address.value, clock.now()) : null),
          (taken) => {
            if (!taken) throw new Refusal("resource_not_found", "The address is not assigned to an account.");
            owner = taken.accountKey;
            return json(200, assignmentView(taken));
          },
        );
        if (owner !== null) await pools.changed(owner);
        return reply;
      },
    }),
  ];
}

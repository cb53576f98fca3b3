// /v1/lockouts, on the operator's socket only: the source addresses that are locked out after failed authentications, and
// the end of a lock-out. The rule is access/lockout.ts's.
import { z } from "zod";
import { isoTime } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import { count, timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields } from "../fields.ts";
import { listBody, namedPageOf, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import { list } from "../view-fields.ts";

const lockoutSchema = z
  .strictObject({
    source: z.string().describe("An IPv4 address, or the /64 of an IPv6 address."),
    failures: count,
    until: timestamp.describe("When it ends by itself."),
  })
  .meta({ id: "Lockout" });

const common = { scopes: ["admin"], bucket: "default", listeners: "admin", applianceWide: true } as const;

export function lockoutRoutes({ access, clock }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      path: "/v1/lockouts",
      summary: "List the source addresses that are locked out",
      lastModifiedFrom: "always",
      answers: { 200: list(lockoutSchema) },
      query: z.object(pageFields()),
      body: null,
      handle({ query }) {
        const now = clock.now();
        const rows = access.lockouts.list().map((row) => ({ ...row, name: row.source.replace("/64", "") }));
        const page = namedPageOf(rows, pageRequest(query));
        return Promise.resolve(
          json(
            200,
            listBody(page, ({ source, failures, leftMs }) => ({
              source,
              failures,
              until: isoTime(now + leftMs),
            })),
          ),
        );
      },
    }),
    route({
      ...common,
      method: "DELETE",
      path: "/v1/lockouts/{ip}",
      summary: "End the lock-out of a source address",
      answers: { 204: null },
      refuses: ["resource_not_found"],
      act: "lockouts.clear",
      query: z.object({}),
      body: null,
      handle(call) {
        const ip = call.param("ip");
        if (!access.lockouts.clear(ip))
          throw new Refusal("resource_not_found", "No lock-out of this address is in force.");
        return Promise.resolve({ status: 204 });
      },
    }),
  ];
}

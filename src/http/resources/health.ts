// Liveness and readiness, for load balancers without a key, and the status of the server for its operator.
import { z } from "zod";
import { Refusal } from "../../errors.ts";
import type { RouteDeps } from "../deps.ts";
import { json, route, type Route } from "../route.ts";

export const aliveSchema = z.strictObject({ status: z.literal("ok") }).meta({ id: "Alive" });
export const readySchema = z.strictObject({ status: z.literal("ready") }).meta({ id: "Ready" });

/** The operator's; made in status/status.ts. */
export const statusSchema = z.looseObject({ ready: z.boolean().optional() }).meta({ id: "Status" });

const open = {
  method: "GET",
  lastModifiedFrom: "always",
  scopes: "open",
  bucket: "default",
  listeners: "both",
  query: z.object({}),
  body: null,
} as const;

export function healthRoutes(deps: RouteDeps): Route[] {
  return [
    route({
      ...open,
      path: "/healthz",
      summary: "Check that the process is alive",
      answers: { 200: aliveSchema },
      handle: () => Promise.resolve(json(200, { status: "ok" })),
    }),
    route({
      ...open,
      path: "/readyz",
      summary: "Check whether the server can accept mail",
      answers: { 200: readySchema },
      refuses: ["maintenance"],
      async handle() {
        const closed = deps.maintenance.refusal();
        if (closed) throw closed;
        const now = await deps.status();
        if (!("ready" in now) || now.ready !== true)
          throw new Refusal("service_overloaded", "The service cannot accept mail right now.");
        return json(200, { status: "ready" });
      },
    }),
    route({
      ...open,
      path: "/v1/status",
      summary: "Get the status of the server",
      answers: { 200: statusSchema },
      scopes: ["admin"],
      listeners: "admin",
      handle: async () => json(200, await deps.status()),
    }),
  ];
}

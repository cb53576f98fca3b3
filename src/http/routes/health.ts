// Is it alive, may it be given traffic, how does it stand: for load balancers without a key, and for the
// operator in full.
import { z } from "zod";
import { Refusal } from "../../errors.ts";
import { json, route, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { aliveShape, readyShape, statusShape } from "../shapes/health.ts";

const open = {
  method: "GET",
  changes: "always",
  scopes: "open",
  bucket: "default",
  doors: "both",
  query: z.object({}),
  body: null,
} as const;

export function healthRoutes(deps: RouteDeps): Route[] {
  return [
    route({
      ...open,
      path: "/healthz",
      summary: "Says that the process is alive",
      answers: { 200: aliveShape },
      handle: () => Promise.resolve(json(200, { status: "ok" })),
    }),
    route({
      ...open,
      path: "/readyz",
      summary: "Says whether mail can be taken now",
      answers: { 200: readyShape },
      refuses: ["maintenance"],
      async handle() {
        const closed = deps.maintenance.refusal();
        if (closed) throw closed;
        const now = await deps.status();
        if (!("ready" in now) || now.ready !== true)
          throw new Refusal("service_overloaded", "The service cannot take mail right now.");
        return json(200, { status: "ready" });
      },
    }),
    route({
      ...open,
      path: "/v1/status",
      summary: "Says how the service stands",
      answers: { 200: statusShape },
      scopes: ["admin"],
      doors: "admin",
      handle: async () => json(200, await deps.status()),
    }),
  ];
}

// POST /v1/reload, on the operator's socket only: what can be read again while the program runs is, and what needs a
// restart is named. What that is: daemon.ts.
import { z } from "zod";
import { reloadedParts } from "../../model/reload.ts";
import type { RouteDeps } from "../deps.ts";
import { json, route, type Route } from "../route.ts";

export const reloadSchema = z
  .strictObject({
    failed: z
      .array(z.strictObject({ part: z.enum(reloadedParts), faults: z.array(z.string()) }))
      .describe("What could not be used, and why; what was read before stays."),
    restart_needed_for: z
      .array(z.string())
      .describe("Options whose value changed since the start: it holds from the next start."),
  })
  .meta({ id: "Reload" });

export function reloadRoutes(deps: RouteDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/reload",
      summary: "Reload the certificates and the shaping file, and compare the configuration",
      answers: { 200: reloadSchema },
      act: "reload",
      applianceWide: true,
      scopes: ["admin"],
      bucket: "default",
      listeners: "admin",
      query: z.object({}),
      body: null,
      async handle() {
        const { failed, restartFor } = await deps.reload();
        return json(200, { failed, restart_needed_for: restartFor });
      },
    }),
  ];
}

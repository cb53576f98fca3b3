// /v1/maintenance, on the operator's socket only: the service refuses clients, and takes them again. When it refuses is
// decided by maintenance/maintenance.ts.
import { z } from "zod";
import { isoTimeOrNull } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import type { MaintenanceWindow } from "../../model/maintenance.ts";
import { timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { time } from "../fields.ts";
import { json, operatorRoute, route, type Route } from "../route.ts";

export const maintenanceSchema = z
  .strictObject({
    active: z.boolean(),
    since: timestamp.nullable(),
    until: timestamp.nullable().describe("When it ends by itself; null: it lasts until it is ended."),
  })
  .meta({ id: "Maintenance" });

const common = {
  ...operatorRoute,
  path: "/v1/maintenance",
} as const;

export function maintenanceRoutes({ maintenance, clock }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      summary: "Get the maintenance window",
      lastModifiedFrom: "always",
      answers: { 200: maintenanceSchema },
      body: null,
      handle: () => Promise.resolve(json(200, maintenanceBody(maintenance.window()))),
    }),
    route({
      ...common,
      method: "POST",
      summary: "Start maintenance, or change when it ends",
      answers: { 200: maintenanceSchema },
      refuses: ["validation_failed"],
      act: "maintenance.on",
      auditFields: ["until"],
      body: z.strictObject({
        until: time.optional().describe("When it ends by itself; if left out, it lasts until it is ended."),
      }),
      bodyOptional: true,
      async handle({ body: { until = null }, idempotent }) {
        const now = clock.now();
        if (until !== null && until <= now) throw past();
        const window = { since: maintenance.window()?.since ?? now, until };
        const reply = await idempotent(
          (writing) => writing.setMaintenance(window),
          () => json(200, maintenanceBody(window)),
        );
        await maintenance.reload();
        return reply;
      },
    }),
    route({
      ...common,
      method: "DELETE",
      summary: "End maintenance",
      answers: { 204: null },
      act: "maintenance.off",
      body: null,
      async handle({ idempotent }) {
        const reply = await idempotent(
          (writing) => writing.setMaintenance(null),
          () => ({ status: 204 }),
        );
        await maintenance.reload();
        return reply;
      },
    }),
  ];
}

function maintenanceBody(window: MaintenanceWindow | null): z.input<typeof maintenanceSchema> {
  return {
    active: window !== null,
    since: isoTimeOrNull(window?.since ?? null),
    until: isoTimeOrNull(window?.until ?? null),
  };
}

function past(): Refusal {
  const issue = "is past; maintenance must end in the future";
  return new Refusal("validation_failed", `until ${issue}`, {
    errors: [{ field: "until", code: "validation_failed", issue }],
  });
}

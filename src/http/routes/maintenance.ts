// /v1/maintenance, on the operator's socket only: closes the door to clients and opens it again (care/maintenance.ts).
import { z } from "zod";
import { isoTimeOrNull } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import type { MaintenanceWindow } from "../../model/maintenance.ts";
import { time } from "../fields.ts";
import { json, route, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { maintenanceShape } from "../shapes/maintenance.ts";

const common = {
  path: "/v1/maintenance",
  scopes: ["admin"],
  bucket: "default",
  doors: "admin",
  query: z.object({}),
  everybodys: true,
} as const;

export function maintenanceRoutes({ maintenance, clock }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      summary: "Says whether the service is in maintenance",
      changes: "always",
      answers: { 200: maintenanceShape },
      body: null,
      handle: () => Promise.resolve(json(200, maintenanceBody(maintenance.window()))),
    }),
    route({
      ...common,
      method: "POST",
      summary: "Closes the door to clients, or changes until when it is closed",
      answers: { 200: maintenanceShape },
      refuses: ["validation_failed"],
      act: "maintenance.on",
      shows: ["until"],
      body: z.strictObject({
        until: time.optional().describe("It ends by itself then; left out, it lasts until it is ended."),
      }),
      bodyOptional: true,
      async handle({ body: { until = null }, once }) {
        const now = clock.now();
        if (until !== null && until <= now) throw past();
        const window = { since: maintenance.window()?.since ?? now, until };
        const reply = await once(
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
      summary: "Opens the door again",
      answers: { 204: null },
      act: "maintenance.off",
      body: null,
      async handle({ once }) {
        const reply = await once(
          (writing) => writing.setMaintenance(null),
          () => ({ status: 204 }),
        );
        await maintenance.reload();
        return reply;
      },
    }),
  ];
}

function maintenanceBody(window: MaintenanceWindow | null): z.input<typeof maintenanceShape> {
  return {
    active: window !== null,
    since: isoTimeOrNull(window?.since ?? null),
    until: isoTimeOrNull(window?.until ?? null),
  };
}

function past(): Refusal {
  const issue = "is past; maintenance needs a time to come";
  return new Refusal("validation_failed", `until ${issue}`, {
    errors: [{ field: "until", code: "validation_failed", issue }],
  });
}

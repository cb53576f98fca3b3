// /v1/doctor, on the operator's socket only: the checks of the doctor (doctor/doctor.ts).
import { z } from "zod";
import { findingStatuses } from "../../doctor/check.ts";
import { checks } from "../../doctor/doctor.ts";
import { Refusal } from "../../errors.ts";
import type { RouteDeps } from "../deps.ts";
import { json, route, type Route } from "../route.ts";

const checkSchema = z
  .strictObject({
    id: z.string(),
    status: z.enum(findingStatuses).describe("unknown: it could not be checked"),
    saw: z.string(),
    why: z.string().nullable(),
    mend: z.string().nullable(),
  })
  .meta({ id: "DoctorCheck" });

export const doctorSchema = z.strictObject({ checks: z.array(checkSchema) }).meta({ id: "Doctor" });

const ids = z.array(z.string().max(100)).max(100);

export function doctorRoutes({ doctor }: RouteDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/doctor",
      summary: "Check the server and what is around it",
      answers: { 200: doctorSchema },
      refuses: ["conflict", "validation_failed"],
      act: null,
      applianceWide: true,
      scopes: ["admin"],
      bucket: "default",
      listeners: "admin",
      query: z.object({}),
      body: z.strictObject({
        only: ids.optional().describe("Ids of checks; all if left out."),
        skip: ids.optional(),
        domain: z.string().max(253).optional().describe("Of the checks of domains: this one alone."),
      }),
      bodyOptional: true,
      timeoutMs: 55_000,
      async handle({ body: { only = null, skip = [], domain = null } }) {
        const known = new Set(checks.map(({ id }) => id));
        const wrong = [...(only ?? []), ...skip].find((id) => !known.has(id));
        if (wrong !== undefined)
          throw new Refusal(
            "validation_failed",
            `There is no check ${wrong}; there are ${[...known].join(", ")}.`,
          );
        return json(200, { checks: await doctor.run({ only, skip, domain }) });
      },
    }),
  ];
}

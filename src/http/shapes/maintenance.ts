// What /v1/maintenance answers.
import { z } from "zod";
import { timestamp } from "./common.ts";

export const maintenanceShape = z
  .strictObject({
    active: z.boolean(),
    since: timestamp.nullable(),
    until: timestamp.nullable().describe("It ends by itself then; null: it lasts until it is ended."),
  })
  .meta({ id: "Maintenance" });

// What /healthz and /readyz answer, and the status that the operator sees.
import { z } from "zod";

export const aliveShape = z.strictObject({ status: z.literal("ok") }).meta({ id: "Alive" });
export const readyShape = z.strictObject({ status: z.literal("ready") }).meta({ id: "Ready" });

/** The operator's; made in care/status.ts. */
export const statusShape = z.looseObject({ ready: z.boolean().optional() }).meta({ id: "Status" });

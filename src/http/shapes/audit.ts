// What /v1/audit answers.
import { z } from "zod";
import { actorKinds } from "../../model/audit.ts";
import { ipAddress, list, timestamp } from "./common.ts";

export const auditRecordShape = z
  .strictObject({
    at: timestamp,
    account: z
      .string()
      .nullable()
      .describe("The account's name; null for what concerns the whole appliance."),
    actor: z.strictObject({
      kind: z.enum(actorKinds),
      name: z.string().nullable().describe("The operator's name, or the id of the key or credential."),
    }),
    source_ip: z
      .union([ipAddress, z.cidrv6()])
      .nullable()
      .describe("Null for the operator's socket; of an IPv6 source its /64 where several are told in one."),
    request_id: z.string().nullable(),
    action: z.string().meta({ examples: ["keys.create"] }),
    target: z.string().nullable().describe("Id or name of what it was done to."),
    times: z.int().min(1).describe("How often, where several are told in one."),
    detail: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "AuditRecord" });
export const auditListShape = list(auditRecordShape);

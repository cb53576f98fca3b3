// The two shapes of an error (problem.ts): problem details (RFC 9457), and the envelope of 401, 403 and 429.
import { z } from "zod";
import { errorCatalog, type ErrorCode } from "../../errors.ts";
import { keyScopes } from "../../model/api-key.ts";
import { suppressionReasons } from "../../model/suppression.ts";
import { idOf, timestamp } from "./common.ts";

const code = z
  .enum(Object.keys(errorCatalog) as ErrorCode[])
  .meta({ id: "ErrorCode", description: "What to branch on; it is never renamed." });

/** What a refusal carries beside its code (errors.ts, RefusalExtras). */
const extras = {
  field: z.string().optional().describe("The first offending field, parameter or header."),
  errors: z
    .array(
      z.strictObject({
        field: z.string().meta({ examples: ["to[0]"] }),
        code,
        issue: z.string(),
      }),
    )
    .optional()
    .describe("Every problem of the request at once."),
  retry_after_seconds: z.int().min(1).optional(),
  required_scope: z.enum(keyScopes).optional(),
  bucket: z.string().optional().describe("The rate limit that was hit."),
  supported_versions: z.array(z.string()).optional(),
  suppressed_recipients: z
    .array(z.strictObject({ email: z.string(), reason: z.enum(suppressionReasons), created_at: timestamp }))
    .optional(),
  domain: z.string().optional(),
  failing_records: z
    .array(
      z.strictObject({
        purpose: z.string(),
        type: z.string(),
        name: z.string(),
        value: z.string(),
        issue: z.string(),
      }),
    )
    .optional(),
};

export const problemShape = z
  .strictObject({
    type: z.url().describe("A page about the code."),
    title: z.string(),
    status: z.int().min(400).max(599),
    detail: z.string(),
    instance: z.string().describe("The path of the request."),
    code,
    request_id: idOf("req"),
    ...extras,
  })
  .meta({ id: "Problem" });

export const errorEnvelopeShape = z
  .strictObject({
    error: z.strictObject({ code, message: z.string(), request_id: idOf("req"), ...extras }),
  })
  .meta({ id: "ErrorEnvelope" });

// How a refusal is answered, schema and view. Two forms: problem details (RFC 9457), and the envelope `{"error":{…}}` for
// 401, 403 and 429 unless the request's Accept names application/problem+json. Anything thrown that is not a Refusal
// becomes internal_error, and its text stays in the log.
import { z } from "zod";
import { errorCatalog, Refusal, type ErrorCode } from "../errors.ts";
import { keyScopes } from "../model/api-key.ts";
import { suppressionReasons } from "../model/suppression.ts";
import { StoreUnavailable } from "../store/store.ts";
import type { Reply } from "./route.ts";
import { idOf, timestamp } from "../value-schemas.ts";

const code = z
  .enum(Object.keys(errorCatalog) as ErrorCode[])
  .meta({ id: "ErrorCode", description: "The code to branch on; it is never renamed." });

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

export const problemSchema = z
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

export const errorEnvelopeSchema = z
  .strictObject({
    error: z.strictObject({ code, message: z.string(), request_id: idOf("req"), ...extras }),
  })
  .meta({ id: "ErrorEnvelope" });

export interface ProblemContext {
  requestId: string;
  path: string;
  /** Base address without a trailing slash. */
  publicUrl: string;
  acceptsProblem: boolean;
  /** In place of the code's own: 408 and 431, which HTTP itself answers. */
  status?: number;
}

/** Seconds that a client of an overloaded service is asked to wait. */
const overloadedRetrySeconds = 5;

/** The refusal that a thrown thing comes to. */
export function refusalOf(error: unknown, upstream = false): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof StoreUnavailable) {
    return new Refusal("service_overloaded", "The service cannot write to its store right now.", {
      retry_after_seconds: overloadedRetrySeconds,
    });
  }
  return upstream
    ? new Refusal("upstream_error", "A component that this request depends on failed.")
    : new Refusal("internal_error", "An unexpected error occurred; quote the request id to the operator.");
}

export function renderProblem(refusal: Refusal, context: ProblemContext): Reply & { body: string } {
  const status = context.status ?? refusal.status;
  const headers: Record<string, string> = { "cache-control": "no-store" };
  const { allow, ...known } = refusal.extras;
  const extras = { ...known };
  if (extras.errors?.[0] && extras.field === undefined) extras.field = extras.errors[0].field;
  if (status === 429 || status === 503) {
    extras.retry_after_seconds = Math.max(1, Math.ceil(extras.retry_after_seconds ?? overloadedRetrySeconds));
    headers["retry-after"] = String(extras.retry_after_seconds);
  }
  if (status === 401) headers["www-authenticate"] = `Bearer realm="${new URL(context.publicUrl).host}"`;
  if (allow) headers["allow"] = allow.join(", ");

  const envelope = (status === 401 || status === 403 || status === 429) && !context.acceptsProblem;
  headers["content-type"] = envelope ? "application/json" : "application/problem+json";
  const body = envelope
    ? { error: { code: refusal.code, message: refusal.message, request_id: context.requestId, ...extras } }
    : {
        type: `${context.publicUrl}/errors/${refusal.code}`,
        title: errorCatalog[refusal.code].title,
        status,
        detail: refusal.message,
        instance: context.path,
        code: refusal.code,
        request_id: context.requestId,
        ...extras,
      };
  return { status, headers, body: JSON.stringify(body) };
}

// The catalogue of refusals: every code that a client can meet, with its HTTP
// status, what it means and who mends it. Both interfaces render from it: HTTP as problem+json or
// as the envelope form, SMTP as a reply; docs/errors.md is generated from it.

export type Mender = "client" | "operator" | "server";

export interface ErrorEntry {
  status: number;
  title: string;
  meaning: string;
  mender: Mender;
  /** What SMTP answers where the same refusal meets a mail program. */
  smtp: { code: number; enhanced: string };
}

const policy = { code: 550, enhanced: "5.7.1" };
const syntax = { code: 550, enhanced: "5.6.0" };
const busy = { code: 451, enhanced: "4.3.2" };

const entry = (
  status: number,
  title: string,
  meaning: string,
  smtp: ErrorEntry["smtp"] = policy,
  mender: Mender = status < 500 ? "client" : "server",
): ErrorEntry => ({ status, title, meaning, mender, smtp });

export const errorCatalog = {
  invalid_request: entry(
    400,
    "Invalid request",
    "The request is malformed or a required header is missing.",
    syntax,
  ),
  invalid_api_key: entry(401, "Invalid API key", "The key is missing, malformed, expired or revoked.", {
    code: 535,
    enhanced: "5.7.8",
  }),
  scope_insufficient: entry(
    403,
    "Scope insufficient",
    "The key is valid but lacks the scope that this endpoint asks for.",
  ),
  key_disabled: entry(403, "Key disabled", "The key or its account was disabled by the operator.", {
    code: 535,
    enhanced: "5.7.8",
  }),
  ip_not_allowed: entry(
    403,
    "Address not allowed",
    "The key has an IP allowlist and the request came from outside of it.",
  ),
  source_ip_locked: entry(
    403,
    "Source address locked",
    "Too many failed authentications came from this address; it is locked for five minutes.",
    { code: 454, enhanced: "4.7.0" },
  ),
  account_paused: entry(
    403,
    "Account paused",
    "Sending is paused for this account until the operator resumes it.",
    { code: 451, enhanced: "4.7.1" },
    "operator",
  ),
  resource_not_found: entry(404, "Not found", "The resource does not exist or is not visible to this key."),
  method_not_allowed: entry(
    405,
    "Method not allowed",
    "The endpoint does not support this method; Allow lists those it does.",
  ),
  duplicate_idempotency_key: entry(
    409,
    "Idempotency key reused",
    "The same Idempotency-Key was used with a different request.",
  ),
  conflict: entry(409, "Conflict", "The request conflicts with the current state of the resource."),
  message_not_cancelable: entry(
    409,
    "Message not cancelable",
    "No recipient of the message is scheduled or queued any more.",
  ),
  message_too_large: entry(
    413,
    "Message too large",
    "The finished message would be larger than 25 MB (26,214,400 bytes).",
    { code: 552, enhanced: "5.3.4" },
  ),
  unsupported_media_type: entry(
    415,
    "Unsupported media type",
    "Bodies are JSON: Content-Type must be application/json.",
    syntax,
  ),
  validation_failed: entry(
    422,
    "Validation failed",
    "The JSON is well formed but its content is not acceptable; errors lists every problem.",
    syntax,
  ),
  invalid_email_address: entry(
    422,
    "Invalid email address",
    "An address does not have the syntax of RFC 5321.",
    { code: 553, enhanced: "5.1.3" },
  ),
  sender_not_verified: entry(
    422,
    "Sender not verified",
    "The domain of the From address has not completed SPF and DKIM verification.",
  ),
  recipient_suppressed: entry(
    422,
    "Recipient suppressed",
    "One or more recipients are on the suppression list.",
  ),
  ip_pool_not_found: entry(422, "IP pool not found", "The named IP pool does not exist on this account."),
  scheduling_window_exceeded: entry(422, "Too far ahead", "send_at is more than 72 hours in the future."),
  invalid_attachment: entry(
    422,
    "Invalid attachment",
    "An attachment has an executable extension, an invalid MIME type or corrupted base64.",
  ),
  tracking_disabled: entry(
    422,
    "Tracking disabled",
    "Open or click tracking was asked for and is not enabled for this domain.",
  ),
  rate_limit_exceeded: entry(
    429,
    "Rate limit exceeded",
    "The bucket is empty; wait for Retry-After seconds.",
    { code: 451, enhanced: "4.7.1" },
  ),
  internal_error: entry(
    500,
    "Internal error",
    "An unexpected condition; quote the request id to the operator.",
    busy,
  ),
  upstream_error: entry(502, "Upstream error", "A component that the request depends on failed.", busy),
  service_overloaded: entry(
    503,
    "Overloaded",
    "The service cannot store or queue more mail right now; try again after Retry-After.",
    { code: 452, enhanced: "4.3.1" },
  ),
  maintenance: entry(
    503,
    "Maintenance",
    "The service is in maintenance; Retry-After says until when.",
    { code: 421, enhanced: "4.3.2" },
    "operator",
  ),
  upstream_timeout: entry(
    504,
    "Upstream timeout",
    "A component that the request depends on did not answer in time.",
    busy,
  ),
} satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorCatalog;

/** One problem of a request. `field` like `to[0]` or `attachments[2].content`. */
export interface Problem {
  field: string;
  code: ErrorCode;
  issue: string;
}

/** What a refusal may carry beside its code; each becomes an extension field of the error body. */
export interface RefusalExtras {
  field?: string;
  errors?: Problem[];
  retry_after_seconds?: number;
  required_scope?: string;
  bucket?: string;
  allow?: string[];
  supported_versions?: string[];
  suppressed_recipients?: { email: string; reason: string; created_at: string }[];
  domain?: string;
  failing_records?: { purpose: string; type: string; name: string; value: string; issue: string }[];
}

/** An expected refusal. Anything else that is thrown is a bug and becomes internal_error. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly extras: RefusalExtras;
  constructor(code: ErrorCode, detail: string, extras: RefusalExtras = {}) {
    super(detail);
    this.name = "Refusal";
    this.code = code;
    this.extras = extras;
  }
  get status(): number {
    return errorCatalog[this.code].status;
  }
}

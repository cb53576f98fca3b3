// The catalogue of error codes: for each code its HTTP status, its meaning, its SMTP reply and who can correct the
// cause. HTTP renders it as problem+json or in the envelope form, SMTP as a reply; docs/errors.md is generated from it.

export type FixedBy = "client" | "operator" | "server";

export interface ErrorEntry {
  status: number;
  title: string;
  meaning: string;
  fixedBy: FixedBy;
  /** The SMTP reply to the same refusal. */
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
  fixedBy: FixedBy = status < 500 ? "client" : "server",
): ErrorEntry => ({ status, title, meaning, fixedBy, smtp });

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
    "The key is valid but lacks the scope that this endpoint requires.",
  ),
  key_disabled: entry(403, "Key disabled", "The key or its account was disabled by the operator.", {
    code: 535,
    enhanced: "5.7.8",
  }),
  ip_not_allowed: entry(
    403,
    "Address not allowed",
    "The key has an IP allowlist that does not contain the address of the request.",
  ),
  source_ip_locked: entry(
    403,
    "Source address locked",
    "Too many authentications from this address failed; it is locked for five minutes.",
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
    "The endpoint does not support this method; the Allow header lists the supported ones.",
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
    "The message has no scheduled or queued recipient left to cancel.",
  ),
  message_too_large: entry(
    413,
    "Message too large",
    "The composed message would exceed 25 MB (26,214,400 bytes).",
    { code: 552, enhanced: "5.3.4" },
  ),
  unsupported_media_type: entry(
    415,
    "Unsupported media type",
    "The request body must be JSON, with Content-Type application/json.",
    syntax,
  ),
  validation_failed: entry(
    422,
    "Validation failed",
    "The JSON is well formed but has invalid values; the field errors lists every problem.",
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
    "The request enables open or click tracking, which is not enabled for this domain.",
  ),
  rate_limit_exceeded: entry(
    429,
    "Rate limit exceeded",
    "The rate limit is exhausted; wait for Retry-After seconds.",
    { code: 451, enhanced: "4.7.1" },
  ),
  internal_error: entry(
    500,
    "Internal error",
    "An unexpected error occurred; report the request id to the operator.",
    busy,
  ),
  upstream_error: entry(502, "Upstream error", "A component that the request needs failed.", busy),
  service_overloaded: entry(
    503,
    "Overloaded",
    "The service cannot store or queue more mail at present; try again after Retry-After.",
    { code: 452, enhanced: "4.3.1" },
  ),
  maintenance: entry(
    503,
    "Maintenance",
    "The service is in maintenance mode; try again after Retry-After.",
    { code: 421, enhanced: "4.3.2" },
    "operator",
  ),
  upstream_timeout: entry(
    504,
    "Upstream timeout",
    "A component that the request needs did not answer in time.",
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

/** Optional data of a refusal; each is an extension field of the error body. */
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

/** An expected refusal. Any other exception is a bug and is answered with internal_error. */
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

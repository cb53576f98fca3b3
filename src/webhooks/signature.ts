// How a receiver knows that a webhook is ours and fresh: HMAC-SHA256 over the timestamp header's value, a period and
// the raw body bytes, in lower-case hex. The key is the 64 characters of the secret as bytes, undecoded.
// Receivers refuse timestamps more than five minutes off, so both are made again for every attempt.
import { createHmac } from "node:crypto";
import type { Endpoint } from "../model/webhook.ts";

/** `sha256=<hex>` for a body sent at `timestamp` (seconds since 1970). */
export function signature(secret: string | Uint8Array, timestamp: number | string, body: Uint8Array): string {
  const digest = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
  return `sha256=${digest}`;
}

/** The same in the form of Standard Webhooks 1.0: over id, timestamp and body, in base64. */
export function standardSignature(
  secret: string | Uint8Array,
  id: string,
  timestamp: number | string,
  body: Uint8Array,
): string {
  return `v1,${createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}

type Signing = Pick<Endpoint, "secret" | "previousSecret" | "previousSecretUntil" | "format">;

/** The headers that prove a request, in the endpoint's format; during a rotation's overlap the old secret signs too. */
export function signatureHeaders(
  endpoint: Signing,
  event: { id: string; body: Uint8Array },
  nowMs: number,
): Record<string, string> {
  const timestamp = Math.floor(nowMs / 1000);
  const { id, body } = event;
  const { secret, previousSecret, previousSecretUntil, format } = endpoint;
  const previous = previousSecretUntil !== null && nowMs < previousSecretUntil ? previousSecret : null;
  const headers: Record<string, string> = {};
  if (format !== "standard") {
    headers["X-Svc-Timestamp"] = String(timestamp);
    headers["X-Svc-Signature"] = signature(secret, timestamp, body);
    if (previous !== null) headers["X-Svc-Signature-Previous"] = signature(previous, timestamp, body);
  }
  if (format !== "svc") {
    const secrets = previous === null ? [secret] : [secret, previous];
    headers["webhook-id"] = id;
    headers["webhook-timestamp"] = String(timestamp);
    headers["webhook-signature"] = secrets
      .map((one) => standardSignature(one, id, timestamp, body))
      .join(" ");
  }
  return headers;
}

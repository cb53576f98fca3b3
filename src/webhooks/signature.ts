// How a receiver knows that a webhook is ours and fresh: HMAC-SHA256 over the timestamp header's value, a period and
// the raw body bytes, in lower-case hex. The key is the 64 characters of the secret as bytes, undecoded.
// Receivers refuse timestamps more than five minutes off, so both are made anew for every attempt.
import { createHmac } from "node:crypto";
import type { Endpoint } from "../store/store.ts";

/** `sha256=<hex>` for a body sent at `timestamp` (seconds since 1970). */
export function signature(secret: string, timestamp: number, body: Uint8Array): string {
  const digest = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
  return `sha256=${digest}`;
}

/** The headers that prove a request; during a rotation's overlap the old secret signs too. */
export function signatureHeaders(
  endpoint: Pick<Endpoint, "secret" | "previousSecret" | "previousSecretUntil">,
  body: Uint8Array,
  nowMs: number,
): Record<string, string> {
  const timestamp = Math.floor(nowMs / 1000);
  const headers: Record<string, string> = {
    "X-Svc-Timestamp": String(timestamp),
    "X-Svc-Signature": signature(endpoint.secret, timestamp, body),
  };
  const { previousSecret, previousSecretUntil } = endpoint;
  if (previousSecret !== null && previousSecretUntil !== null && nowMs < previousSecretUntil) {
    headers["X-Svc-Signature-Previous"] = signature(previousSecret, timestamp, body);
  }
  return headers;
}

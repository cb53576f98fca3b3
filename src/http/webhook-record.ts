// A webhook endpoint as the API shows it, and an attempt at it. Its secret is shown at creation and rotation only.
import type { z } from "zod";
import { isoTime, isoTimeOrNull } from "../clock.ts";
import { eventTypesOf, isEveryType } from "../events/subscriptions.ts";
import type { DeliveryAttempt } from "../model/webhook-delivery.ts";
import type { Endpoint } from "../model/webhook.ts";
import type { webhookCreatedShape, webhookDeliveryShape, webhookShape } from "./shapes/webhooks.ts";

/** At creation and rotation only. */
export function withSecret(endpoint: Endpoint): z.input<typeof webhookCreatedShape> {
  return { ...endpointBody(endpoint), secret: endpoint.secret };
}

export function endpointBody(endpoint: Endpoint): z.input<typeof webhookShape> {
  return {
    id: endpoint.id,
    url: endpoint.url,
    events: eventTypesOf(endpoint.eventMask),
    all_events: isEveryType(endpoint.eventMask),
    description: endpoint.description,
    active: endpoint.active,
    format: endpoint.format,
    secret_hint: endpoint.secret.slice(-4),
    created_at: isoTime(endpoint.createdAt),
    updated_at: isoTime(endpoint.updatedAt),
    last_success_at: isoTimeOrNull(endpoint.lastSuccessAt),
    last_failure_at: isoTimeOrNull(endpoint.lastFailureAt),
    consecutive_failures: endpoint.consecutiveFailures,
  };
}

export function deliveryBody(attempt: DeliveryAttempt): z.input<typeof webhookDeliveryShape> {
  return {
    event_id: attempt.eventId,
    attempt: attempt.attempt,
    status: attempt.status,
    response_status: attempt.responseStatus,
    response_body: attempt.responseBody,
    error: attempt.error,
    duration_ms: attempt.durationMs,
    attempted_at: isoTime(attempt.attemptedAt),
    next_attempt_at: isoTimeOrNull(attempt.nextAttemptAt),
  };
}

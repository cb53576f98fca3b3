// A webhook endpoint as the API shows it. Its secret is shown at creation and rotation only.
import type { z } from "zod";
import { isoTime, isoTimeOrNull } from "../clock.ts";
import { eventTypesOf } from "../events/catalog.ts";
import type { Endpoint } from "../store/store.ts";
import type { webhookCreatedShape, webhookShape } from "./shapes/webhooks.ts";

/** At creation and rotation only. */
export function withSecret(endpoint: Endpoint): z.input<typeof webhookCreatedShape> {
  return { ...endpointBody(endpoint), secret: endpoint.secret };
}

export function endpointBody(endpoint: Endpoint): z.input<typeof webhookShape> {
  return {
    id: endpoint.id,
    url: endpoint.url,
    events: eventTypesOf(endpoint.eventMask),
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

// What /v1/webhooks answers.
import { z } from "zod";
import { eventTypes } from "../../events/catalog.ts";
import { deliveryAttemptStatuses } from "../../model/webhook-delivery.ts";
import { webhookFormats } from "../../model/webhook.ts";
import { count, idOf, list, timestamp } from "./common.ts";

const fields = {
  id: idOf("whk"),
  url: z.string(),
  events: z.array(z.enum(eventTypes)).describe("The types that it gets."),
  all_events: z.boolean().describe("It gets every type: those of later versions too."),
  description: z.string().nullable(),
  active: z.boolean(),
  format: z
    .enum(webhookFormats)
    .describe("The headers that it gets: X-Svc-*, those of Standard Webhooks, or both."),
  secret_hint: z.string().describe("The last four characters of the secret."),
  created_at: timestamp,
  updated_at: timestamp,
  last_success_at: timestamp.nullable(),
  last_failure_at: timestamp.nullable(),
  consecutive_failures: count,
};
const secret = z
  .string()
  .length(64)
  .describe("Shown at creation and rotation only. Its 64 bytes, as they stand here, are the HMAC key.");

export const webhookShape = z.strictObject(fields).meta({ id: "Webhook" });
export const webhookListShape = list(webhookShape);

export const webhookCreatedShape = z.strictObject({ ...fields, secret }).meta({ id: "WebhookCreated" });

export const webhookRotatedShape = z
  .strictObject({
    ...fields,
    secret,
    previous_secret_until: timestamp
      .nullable()
      .describe("Until then X-Svc-Signature-Previous is made with the secret before."),
  })
  .meta({ id: "WebhookSecretRotated" });

export const webhookDeliveryShape = z
  .strictObject({
    event_id: idOf("evt"),
    attempt: z
      .int()
      .min(1)
      .describe("As X-Svc-Delivery-Attempt said; it starts anew where an event is replayed."),
    status: z
      .enum(deliveryAttemptStatuses)
      .describe("failed: another attempt followed or is to; dead_lettered: it was the last one."),
    response_status: z.int().nullable().describe("What the receiver answered; null where it did not."),
    response_body: z
      .string()
      .nullable()
      .describe(
        "How the answer to a failed attempt begins, at most 4 KB; of many failures in a row not every one.",
      ),
    error: z.string().nullable().describe("Why there was no answer."),
    duration_ms: z.int().min(0).nullable(),
    attempted_at: timestamp,
    next_attempt_at: timestamp.nullable().describe("As it was planned when the attempt failed."),
  })
  .meta({ id: "WebhookDelivery" });
export const webhookDeliveryListShape = list(webhookDeliveryShape);

export const webhookReplayedShape = z.strictObject({ queued: count }).meta({ id: "WebhookReplayed" });

export const webhookTestedShape = z
  .strictObject({
    delivered: z.boolean(),
    status: z.int().nullable().describe("What the receiver answered; null where it did not."),
    duration_ms: z.number().min(0),
    event_id: idOf("evt"),
    error: z.string().nullable().describe("Why there was no answer."),
  })
  .meta({ id: "WebhookTested" });

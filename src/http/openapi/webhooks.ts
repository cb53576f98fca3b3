// The requests that webhooks are: the envelope of each event type, as it is posted to an endpoint.
import { eventCatalog, eventTypes } from "../../events/catalog.ts";
import { envelopeSchema } from "../../events/envelope.ts";
import { pascal } from "./responses.ts";
import type { Json, Schemas } from "./schemas.ts";

export function webhooksOf(schemas: Schemas): Json {
  return Object.fromEntries(
    eventTypes.map((type) => [
      type,
      {
        post: {
          operationId: `on${pascal(type)}`,
          tags: ["webhooks"],
          summary: `Tells of ${type}`,
          description: eventCatalog[type].meaning,
          security: [],
          parameters: Object.entries(headers).map(([name, [description, schema]]) => ({
            name,
            in: "header",
            required: name !== "X-Svc-Signature-Previous",
            description,
            schema,
          })),
          requestBody: {
            required: true,
            content: { "application/json": { schema: schemas.of(envelopeSchema(type), "output") } },
          },
          responses: {
            "2XX": { description: "Taken, within 10 seconds. Nothing is sent again." },
            "4XX": {
              description: "Not taken; like any other answer it is sent again, up to ten times in all.",
            },
          },
        },
      },
    ]),
  );
}

/** Of `format` svc and both (webhooks/signature.ts). */
const headers: Record<string, [string, Json]> = {
  "X-Svc-Signature": [
    "HMAC-SHA256 over the timestamp, a period and the bytes of the body, with the endpoint's secret.",
    { type: "string", pattern: "^sha256=[0-9a-f]{64}$" },
  ],
  "X-Svc-Signature-Previous": [
    "The same with the secret before, while both hold.",
    { type: "string", pattern: "^sha256=[0-9a-f]{64}$" },
  ],
  "X-Svc-Timestamp": ["When it was sent, in seconds since 1970.", { type: "string", pattern: "^[0-9]+$" }],
  "X-Svc-Event-Id": ["The event_id; the same in every attempt.", { type: "string" }],
  "X-Svc-Delivery-Attempt": ["1 for the first.", { type: "string", pattern: "^([1-9]|10)$" }],
};

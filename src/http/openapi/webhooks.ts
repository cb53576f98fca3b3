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
          summary: `Receive ${type}`,
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
            "2XX": { description: "The event is delivered if the answer comes within 10 seconds." },
            "4XX": {
              description:
                "The attempt failed. As after any other answer, the event is sent again, up to ten attempts.",
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
    "HMAC-SHA256 of the timestamp, a period and the bytes of the body, with the secret of the endpoint.",
    { type: "string", pattern: "^sha256=[0-9a-f]{64}$" },
  ],
  "X-Svc-Signature-Previous": [
    "The same with the previous secret, during the overlap of a rotation.",
    { type: "string", pattern: "^sha256=[0-9a-f]{64}$" },
  ],
  "X-Svc-Timestamp": ["When it was sent, in seconds since 1970.", { type: "string", pattern: "^[0-9]+$" }],
  "X-Svc-Event-Id": ["The event_id; it is the same in every attempt.", { type: "string" }],
  "X-Svc-Delivery-Attempt": [
    "The number of the attempt, from 1.",
    { type: "string", pattern: "^([1-9]|10)$" },
  ],
};

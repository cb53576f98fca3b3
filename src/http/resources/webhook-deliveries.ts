// /v1/webhooks/{id}/deliveries and replay: the attempts at a webhook endpoint, and the events that are sent to it again.
import { z } from "zod";
import { eventTypesOf } from "../../events/subscriptions.ts";
import { deliveryAttemptStatuses } from "../../model/webhook-delivery.ts";
import type { ReplayRequest } from "../../model/webhook.ts";
import { count, idOf, timestamp } from "../../value-schemas.ts";
import { inputOf, viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields, textFilter, time, wordList } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import { list } from "../view-fields.ts";
import { endpointOf, noEndpoint } from "./webhooks.ts";

const webhookDeliverySchema = z
  .strictObject({
    event_id: idOf("evt"),
    attempt: z.int().min(1).describe("The number in X-Svc-Delivery-Attempt; a replay starts at 1 again."),
    status: z
      .enum(deliveryAttemptStatuses)
      .describe("failed: another attempt follows; dead_lettered: it was the last one."),
    response_status: z
      .int()
      .nullable()
      .describe("The status of the receiver's answer; null if there was none."),
    response_body: z
      .string()
      .nullable()
      .describe(
        "The beginning of the answer to a failed attempt, at most 4 KB; of many failures in a row, not every answer is kept.",
      ),
    error: z.string().nullable().describe("Why there was no answer."),
    duration_ms: z.int().min(0).nullable(),
    attempted_at: timestamp,
    next_attempt_at: timestamp
      .nullable()
      .describe("When the next attempt was due, as planned at the failure."),
  })
  .meta({ id: "WebhookDelivery" });

const webhookReplayedSchema = z.strictObject({ queued: count }).meta({ id: "WebhookReplayed" });

const deliveryView = viewOf(webhookDeliverySchema);

const filters = z.object({
  status: wordList(deliveryAttemptStatuses).optional(),
  event_id: textFilter,
  ...pageFields(),
});
const filterOf = inputOf(filters, { status: "statuses", limit: null, cursor: null });

const mostReplayed = 1000;
const replayed = z
  .strictObject({
    event_ids: z
      .array(z.string())
      .min(1, "is empty")
      .max(mostReplayed, `has more than ${mostReplayed} ids`)
      .optional(),
    since: time.optional(),
    until: time.optional(),
    status: z.enum(["dead_lettered", "all"]).optional(),
  })
  .refine(
    ({ event_ids: ids, since, until, status }) =>
      ids === undefined || (since === undefined && until === undefined && status === undefined),
    { path: ["event_ids"], message: "cannot be combined with since, until or status" },
  );

const common = { scopes: ["admin"], bucket: "default", listeners: "both" } as const;

export function webhookDeliveryRoutes({ store, webhooks, clock }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      path: "/v1/webhooks/{id}/deliveries",
      summary: "List the deliveries of a webhook endpoint, newest event first",
      answers: { 200: list(webhookDeliverySchema) },
      refuses: ["resource_not_found"],
      lastModifiedFrom: ["events"],
      query: filters,
      body: null,
      async handle({ account, query, param }) {
        const page = await store.listDeliveries(
          account.key,
          param("id"),
          filterOf(query),
          pageRequest(query),
        );
        if (!page) throw noEndpoint();
        return json(200, listBody(page, deliveryView));
      },
    }),
    route({
      ...common,
      query: z.object({}),
      method: "POST",
      path: "/v1/webhooks/{id}/replay",
      summary: "Replay events to a webhook endpoint",
      answers: { 202: webhookReplayedSchema },
      refuses: ["resource_not_found"],
      body: replayed,
      bodyOptional: true,
      async handle(call) {
        const endpoint = await endpointOf(store, call);
        const { event_ids: ids, since = null, until = null, status } = call.body;
        const types = eventTypesOf(endpoint.eventMask);
        const which: ReplayRequest =
          ids === undefined
            ? { kind: "range", since, until, deadLettered: status !== "all", types }
            : { kind: "events", ids };
        const reply = await call.idempotent(
          (writing) => writing.replayDeliveries(call.account.key, endpoint.id, which, clock.now()),
          (queued) => {
            if (queued === null) throw noEndpoint();
            return json(202, { queued });
          },
        );
        webhooks.retryNow(endpoint.key);
        return reply;
      },
    }),
  ];
}

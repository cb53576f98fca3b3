// GET /v1/events: the pull form of the event stream. A record is the envelope byte for byte as webhooks
// get it, with its deliveries spliced in: the stored text is never parsed and written again. The cursor
// runs on commit order, so polling the last one for ever is the way to tail.
import { z } from "zod";
import { isoTimeOrNull } from "../../clock.ts";
import { eventTypes, type EventType } from "../../events/catalog.ts";
import { envelopeFields, schemaName } from "../../events/envelope.ts";
import type { Account } from "../../model/account.ts";
import { eventOrders, type EventFilter, type EventRecord } from "../../model/event.ts";
import type { PageRequest } from "../../model/page.ts";
import { deliveryStatuses } from "../../model/webhook-delivery.ts";
import { count, idOf, timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import {
  canonicalEmail,
  pageFields,
  patternFields,
  patternsOf,
  present,
  textFilter,
  time,
  wordList,
} from "../fields.ts";
import { pageRequest } from "../paging.ts";
import { route, type Reply, type Route } from "../route.ts";
import { list } from "../view-fields.ts";

const deliverySchema = z
  .strictObject({
    webhook_id: idOf("whk"),
    status: z.enum(deliveryStatuses),
    attempts: count,
    last_attempt_at: timestamp.nullable(),
    last_status: z
      .int()
      .nullable()
      .describe("The HTTP status of the last attempt; null where there was none."),
  })
  .meta({ id: "EventDelivery" });

const recordSchema = (type: EventType) =>
  z
    .strictObject({ ...envelopeFields(type), deliveries: z.array(deliverySchema) })
    .meta({ id: `${schemaName(type)}Record` });

export const eventSchema = z.union(eventTypes.map(recordSchema)).meta({ id: "Event" });

export const eventList = wordList(eventTypes);

const filters = z.object({
  event: eventList.optional(),
  event_id: textFilter,
  message_id: textFilter,
  to: canonicalEmail.optional(),
  tag: textFilter,
  ip_address: textFilter,
  webhook_id: textFilter,
  delivery_status: z.enum([...deliveryStatuses, "none"]).optional(),
  occurred_after: time.optional(),
  occurred_before: time.optional(),
  order: z.enum(eventOrders).default("asc"),
  ...pageFields(100, 1000),
});

const listed = {
  method: "GET",
  path: "/v1/events",
  summary: "List events in the order in which they were recorded",
  answers: { 200: list(eventSchema) },
  lastModifiedFrom: ["events"],
  scopes: ["reporting"],
  bucket: "events-read",
  body: null,
} as const;

export function eventRoutes({ store }: RouteDeps): Route[] {
  const page = async (account: Account, filter: EventFilter, at: PageRequest): Promise<Reply> => {
    const { rows, hasMore, next } = await store.listEvents(account.key, filter, at);
    const data = rows.map(eventText).join(",");
    return {
      status: 200,
      body: `{"data":[${data}],"has_more":${hasMore},"next_cursor":${JSON.stringify(next)}}`,
    };
  };

  return [
    route({
      ...listed,
      listeners: "public",
      query: filters,
      handle: ({ account, query }) => page(account, filterOf(query), pageRequest(query)),
    }),
    route({
      ...listed,
      listeners: "admin",
      query: filters.extend(patternFields),
      handle({ account, query: { to, tag, ...query } }) {
        const filter = { ...filterOf(query), ...patternsOf({ ...query, to, tag }) };
        return page(account, filter, pageRequest(query));
      },
    }),
  ];
}

/** The JSON text of a record. */
export function eventText(event: EventRecord): string {
  const deliveries = event.deliveries.map((delivery) => ({
    webhook_id: delivery.webhookId,
    status: delivery.status,
    attempts: delivery.attempts,
    last_attempt_at: isoTimeOrNull(delivery.lastAttemptAt),
    last_status: delivery.lastStatus,
  }));
  return `${event.body.slice(0, event.body.lastIndexOf("}"))},"deliveries":${JSON.stringify(deliveries)}}`;
}

function filterOf(query: Omit<z.output<typeof filters>, "limit">): EventFilter {
  return present({
    types: query.event,
    eventId: query.event_id,
    messageId: query.message_id,
    to: query.to,
    tag: query.tag,
    ipAddress: query.ip_address,
    webhookId: query.webhook_id,
    deliveryStatus: query.delivery_status,
    occurredAfter: query.occurred_after,
    occurredBefore: query.occurred_before,
    order: query.order,
  });
}

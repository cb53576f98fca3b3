// What an event holds: the nine types with their data, as webhooks get them and as GET /v1/events shows them. The bodies
// are written by events/record.ts, by hand and once; the tests hold what it writes to these shapes.
import { z } from "zod";
import { eventCatalog, type EventType } from "../../events/catalog.ts";
import { bounceCategories, type Classification } from "../../model/classification.ts";
import { bounceSources, bounceTypes, complaintTypes } from "../../model/bounce.ts";
import { deliveryStatuses } from "../../model/webhook-delivery.ts";
import {
  count,
  emailAddress,
  idOf,
  ipAddress,
  list,
  smtpCode,
  smtpStatus,
  timestamp,
  tlsSchema,
} from "../view-fields.ts";

const classifications = Object.keys(bounceCategories) as Classification[];
const categories = [...new Set(Object.values(bounceCategories))];

/** Of every message.* event. */
const ofMessage = {
  message_id: idOf("msg"),
  to: emailAddress,
  from: emailAddress,
  subject: z.string(),
  tags: z.array(z.string()),
  metadata: z.record(z.string(), z.string()),
  test: z.literal(true).optional().describe("Of mail sent with a test key, and of a webhook's test."),
};
const reply = {
  smtp_code: smtpCode,
  smtp_status: smtpStatus,
  smtp_response: z
    .string()
    .describe("The receiving server's words; of a failure without a reply ours, which begin with [local]."),
  receiving_mta: z.string().nullable(),
  sending_ip: ipAddress.nullable(),
};
const tried = { attempt: count, delivery_time_ms: count, tls: tlsSchema.nullable() };
const cause = {
  bounce_classification: z.enum(classifications),
  bounce_category: z.enum(categories),
};
const visit = {
  ip_address: ipAddress,
  user_agent: z.string(),
  first: z.boolean(),
  machine: z.boolean().describe("A proxy or a scanner, as far as it can be told from a person."),
};
const listing = {
  ip_address: ipAddress,
  blacklist_name: z.string(),
  blacklist_zone: z.string(),
  affected_pools: z.array(z.string()),
  test: z.literal(true).optional(),
};

/** The data of each type. */
const dataShapes = {
  "message.delivered": z.strictObject({ ...ofMessage, ...reply, ...tried }).meta({ id: "DeliveredData" }),
  "message.deferred": z
    .strictObject({
      ...ofMessage,
      ...reply,
      ...tried,
      next_attempt_at: timestamp,
      bounce_type: z.literal("soft"),
      ...cause,
    })
    .meta({ id: "DeferredData" }),
  "message.bounced": z
    .strictObject({
      ...ofMessage,
      ...reply,
      bounce_type: z
        .enum(bounceTypes)
        .describe("Permanent; temporary until its time was up; or a report that does not say."),
      ...cause,
      attempt: count,
      source: z.enum(bounceSources),
      suppressed: z.boolean().describe("This event put the recipient on the suppression list."),
      reported_at: timestamp.nullable().optional().describe("The report's own date, of source dsn."),
    })
    .meta({ id: "BouncedData" }),
  "message.opened": z.strictObject({ ...ofMessage, ...visit }).meta({ id: "OpenedData" }),
  "message.clicked": z.strictObject({ ...ofMessage, ...visit, url: z.string() }).meta({ id: "ClickedData" }),
  "message.complained": z
    .strictObject({
      ...ofMessage,
      complaint_source: z.string().describe("The feedback loop, else generic_arf."),
      complaint_type: z.enum(complaintTypes),
      feedback_type: z.string().describe("The report's own word (RFC 5965), in lower case."),
      reported_at: timestamp,
      sending_ip: ipAddress.nullable(),
    })
    .meta({ id: "ComplainedData" }),
  "message.unsubscribed": z
    .strictObject({ ...ofMessage, method: z.enum(["one_click", "link", "mailto"]) })
    .meta({ id: "UnsubscribedData" }),
  "ip.blacklisted": z
    .strictObject({
      ...listing,
      listing_reason: z.string(),
      detected_at: timestamp,
      return_code: z.string(),
      removal_url: z.string(),
    })
    .meta({ id: "BlacklistedData" }),
  "ip.delisted": z
    .strictObject({ ...listing, listed_at: timestamp, delisted_at: timestamp, duration_seconds: count })
    .meta({ id: "DelistedData" }),
} satisfies Record<EventType, z.ZodType>;

const deliveryShape = z
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

const envelopeOf = <T extends EventType>(type: T) => ({
  event: z.literal(type).describe(eventCatalog[type].meaning),
  event_id: idOf("evt"),
  occurred_at: timestamp.describe("When it happened: what events are ordered by."),
  received_at: timestamp.describe("When it was recorded."),
  data: dataShapes[type],
});

/** `MessageDelivered` of `message.delivered`. */
const nameOf = (type: EventType): string =>
  type.replace(/(?:^|\.)([a-z])/g, (_, first: string) => first.toUpperCase());

/** What webhooks get. */
export const envelopeShape = (type: EventType) =>
  z.strictObject(envelopeOf(type)).meta({ id: `${nameOf(type)}Event` });

const recordShape = (type: EventType) =>
  z
    .strictObject({ ...envelopeOf(type), deliveries: z.array(deliveryShape) })
    .meta({ id: `${nameOf(type)}Record` });

const types = Object.keys(dataShapes) as EventType[];

/** What GET /v1/events shows: the envelope, and how it was delivered. */
export const eventShape = z.union(types.map(recordShape)).meta({ id: "Event" });

export const eventListShape = list(eventShape);

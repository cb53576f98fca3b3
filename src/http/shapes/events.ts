// What GET /v1/events shows of an event: its envelope (events/envelope.ts), and how it was delivered.
import { z } from "zod";
import { eventTypes, type EventType } from "../../events/catalog.ts";
import { envelopeFields, schemaName } from "../../events/envelope.ts";
import { deliveryStatuses } from "../../model/webhook-delivery.ts";
import { count, idOf, list, timestamp } from "./common.ts";

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

const recordShape = (type: EventType) =>
  z
    .strictObject({ ...envelopeFields(type), deliveries: z.array(deliveryShape) })
    .meta({ id: `${schemaName(type)}Record` });

export const eventShape = z.union(eventTypes.map(recordShape)).meta({ id: "Event" });

export const eventListShape = list(eventShape);

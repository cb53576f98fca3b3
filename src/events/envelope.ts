// The schema of an event of each type, as webhooks get it. The bodies are written by record.ts, by hand and once; the
// tests check what it writes against these schemas.
import { z } from "zod";
import { idOf, timestamp } from "../value-schemas.ts";
import { eventCatalog, eventTypes, type EventType } from "./catalog.ts";
import type { EventEntry } from "./entry.ts";
import { ofMessage } from "./fields.ts";

/** `MessageDelivered` of `message.delivered`. */
export const schemaName = (type: string): string =>
  type.replace(/(?:^|[._])([a-z])/g, (_, first: string) => first.toUpperCase());

/** Named `DeliveredData` of `message.delivered`. */
function dataSchema(type: EventType) {
  const { about, data }: EventEntry = eventCatalog[type];
  const id = `${schemaName(type.slice(type.indexOf(".") + 1))}Data`;
  return z.strictObject(about === "recipient" ? { ...ofMessage, ...data } : data).meta({ id });
}
const dataSchemas = new Map(eventTypes.map((type) => [type, dataSchema(type)]));

export function envelopeFields(type: EventType) {
  return {
    event: z.literal(type).describe(eventCatalog[type].meaning),
    event_id: idOf("evt"),
    occurred_at: timestamp.describe("When it happened; events are sorted by it."),
    received_at: timestamp.describe("When it was recorded."),
    data: dataSchemas.get(type) ?? dataSchema(type),
  };
}

/** What webhooks get. */
export const envelopeSchema = (type: EventType) =>
  z.strictObject(envelopeFields(type)).meta({ id: `${schemaName(type)}Event` });

// An event as it is written once, and as it is listed. Which types there are, and what each means: events/catalog.ts.
import type { Patterns } from "./patterns.ts";
import type { DeliveryStatus } from "./webhook-delivery.ts";

/** By `seq`. */
export const eventOrders = ["asc", "desc"] as const;
export type EventOrder = (typeof eventOrders)[number];

/** Its body is what webhooks get and what the API shows, byte for byte. */
export interface NewEvent {
  id: string; // evt_…
  accountKey: number;
  /** One of events/catalog.ts. */
  type: string;
  /** Bit of the type in an endpoint's `eventMask`. */
  typeBit: number;
  occurredAt: number;
  receivedAt: number;
  messageKey: number | null;
  /** Canonical recipient address, for filters. */
  recipient: string | null;
  /** The counters that it raises (counterMask), by its facts (facts.ts); 0: none. */
  counters: number;
  facts: string;
  /** The JSON envelope {event, event_id, occurred_at, received_at, data}. */
  body: string;
}

export interface EventFilter extends Patterns {
  types?: string[];
  eventId?: string;
  messageId?: string;
  to?: string; // canonical
  tag?: string;
  ipAddress?: string;
  webhookId?: string;
  deliveryStatus?: DeliveryStatus | "none";
  occurredAfter?: number;
  occurredBefore?: number;
  order?: EventOrder;
}

export interface EventRecord {
  seq: number;
  id: string;
  type: string;
  body: string;
  deliveries: {
    webhookId: string;
    status: DeliveryStatus;
    attempts: number;
    lastAttemptAt: number | null;
    lastStatus: number | null;
  }[];
}

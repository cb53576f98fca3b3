// The delivery of one event to one endpoint, and its attempts. When the next is due: webhooks/schedule.ts.

export const deliveryStatuses = ["pending", "delivered", "dead_lettered"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** `failed`: another attempt followed, or is to. */
export const deliveryAttemptStatuses = ["delivered", "failed", "dead_lettered"] as const;
export type DeliveryAttemptStatus = (typeof deliveryAttemptStatuses)[number];

/** One event at one endpoint, leased to the boot `owner` for one attempt. */
export interface LeasedDelivery {
  accountKey: number;
  endpointKey: number;
  eventSeq: number;
  owner: string;
  attempt: number; // 1–10
}

/** What is due; the attempt number and the lease are on disk before this is returned. */
export interface DueDelivery extends LeasedDelivery {
  eventId: string;
  body: string;
}

export interface DeliveryResult extends LeasedDelivery {
  at: number;
  /** HTTP status of the answer; null where there was none. */
  status: number | null;
  durationMs: number;
  /** Of a failure: why there was no answer, and the start of the one that there was. */
  error: string | null;
  responseBody: string | null;
  result: { kind: "delivered" } | { kind: "retry"; dueAt: number } | { kind: "dead_lettered" };
}

/** One attempt at an endpoint that has ended. */
export interface DeliveryAttempt {
  eventId: string;
  attempt: number;
  status: DeliveryAttemptStatus;
  responseStatus: number | null;
  /** The first 4 KB of what was answered; of failures, and not of all where they are many. */
  responseBody: string | null;
  /** Why there was no answer. */
  error: string | null;
  durationMs: number | null;
  attemptedAt: number;
  /** When the next attempt was due, as planned at the failure. */
  nextAttemptAt: number | null;
}

export interface DeliveryAttemptFilter {
  statuses?: DeliveryAttemptStatus[];
  eventId?: string;
}

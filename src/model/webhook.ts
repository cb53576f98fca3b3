// A webhook endpoint: where events are posted to, and how they are signed. Deliveries to it: webhook-delivery.ts.

/** Which signatures a webhook carries: our own, those of Standard Webhooks, or both. */
export const webhookFormats = ["svc", "standard", "both"] as const;
/** As a person reads them. */
export const webhookFormatLabels = webhookFormats.map((name) =>
  name === "standard" ? `${name} (Standard Webhooks)` : name,
);
export type WebhookFormat = (typeof webhookFormats)[number];

/** The `eventMask` of an endpoint that gets every type of event: all bits are set, those of types to come too. */
export const everyEvent = -1;

/** An endpoint is failing after so many attempts in a row that failed: until one succeeds, its events wait and one is tried at a time. */
export const failingAfter = 10;

export interface Endpoint {
  key: number;
  id: string; // whk_…
  accountKey: number;
  url: string;
  /** Bits of the subscribed event types (events/catalog.ts), or `everyEvent`. */
  eventMask: number;
  description: string | null;
  active: boolean;
  /** 64 printable ASCII characters; their bytes are the HMAC key. */
  secret: string;
  previousSecret: string | null;
  previousSecretUntil: number | null;
  createdAt: number;
  updatedAt: number;
  lastSuccessAt: number | null;
  lastFailureAt: number | null;
  consecutiveFailures: number;
  /** When those became `failingAfter`; null: it is not failing. */
  failingSince: number | null;
  format: WebhookFormat;
}

/** What its owner may change. */
export type EndpointChange = Partial<
  Pick<Endpoint, "url" | "eventMask" | "description" | "active" | "format">
> & { updatedAt: number };

/** `since` to before `until`: by when they occurred. `types`: what counts of all, whether it was sent there before or not. */
export type ReplayRequest =
  | { kind: "events"; ids: string[] }
  | { kind: "range"; since: number | null; until: number | null; deadLettered: boolean; types: string[] };

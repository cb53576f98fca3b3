// /v1/webhooks: the endpoints that events are sent to. The secret is shown at creation and at rotation only. Whether a URL
// may be an endpoint (HTTPS, no private network) is decided by webhooks/. The attempts at an endpoint:
// webhook-deliveries.ts. Over 300 lines: schema, view and eight routes of one resource.
import { z } from "zod";
import { mostOf, withinLimit } from "../../access/account-limits.ts";
import { isoTimeOrNull } from "../../clock.ts";
import { Refusal, type Problem } from "../../errors.ts";
import { eventTypes } from "../../events/catalog.ts";
import { eventMask, eventTypesOf, isEveryType, subscribable } from "../../events/subscriptions.ts";
import { failingAfter, webhookFormatLabels, webhookFormats, type Endpoint } from "../../model/webhook.ts";
import { inputOf, viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields } from "../fields.ts";
import { flagNotes } from "../flags.ts";
import { listBody, pageOf, pageRequest } from "../paging.ts";
import type { Store } from "../../store/store.ts";
import { newSecret, secretLength } from "../../webhooks/secret.ts";
import type { TestResult } from "../../webhooks/webhooks.ts";
import { count, idOf, timestamp } from "../../value-schemas.ts";
import { orList } from "../../word-list.ts";
import { json, route, type Call, type Route } from "../route.ts";
import { list } from "../view-fields.ts";

const fields = {
  id: idOf("whk"),
  url: z.string(),
  events: z.array(z.enum(eventTypes)).describe("The event types that it receives."),
  all_events: z.boolean().describe("It receives every type, including those of later versions."),
  description: z.string().nullable(),
  active: z.boolean(),
  format: z
    .enum(webhookFormats)
    .describe("The headers that it receives: X-Svc-*, those of Standard Webhooks, or both."),
  secret_hint: z.string().describe("The last four characters of the secret."),
  created_at: timestamp,
  updated_at: timestamp,
  last_success_at: timestamp.nullable(),
  last_failure_at: timestamp.nullable(),
  consecutive_failures: count,
  failing_since: timestamp
    .nullable()
    .describe(
      `Since then ${failingAfter} attempts or more have failed in a row: events wait, and one is tried every few seconds until one succeeds.`,
    ),
};
const secret = z
  .string()
  .length(secretLength)
  .describe("Shown only at creation and rotation. Its 64 characters, as shown, are the HMAC key.");

export const webhookSchema = z.strictObject(fields).meta({ id: "Webhook" });
export const webhookListSchema = list(webhookSchema);

export const webhookCreatedSchema = z.strictObject({ ...fields, secret }).meta({ id: "WebhookCreated" });

export const webhookRotatedSchema = z
  .strictObject({
    ...fields,
    secret,
    previous_secret_until: timestamp
      .nullable()
      .describe("Until then X-Svc-Signature-Previous is made with the previous secret."),
  })
  .meta({ id: "WebhookSecretRotated" });

export const webhookTestedSchema = z
  .strictObject({
    delivered: z.boolean(),
    status: z.int().nullable().describe("The status of the receiver's answer; null if there was none."),
    duration_ms: z.number().min(0),
    event_id: idOf("evt"),
    error: z.string().nullable().describe("Why there was no answer."),
  })
  .meta({ id: "WebhookTested" });

const shown = {
  events: ({ eventMask: mask }: Endpoint) => eventTypesOf(mask),
  all_events: ({ eventMask: mask }: Endpoint) => isEveryType(mask),
  secret_hint: ({ secret }: Endpoint) => secret.slice(-4),
};
const endpointView = viewOf(webhookSchema, shown);
const createdView = viewOf(webhookCreatedSchema, shown);
const rotatedView = viewOf(webhookRotatedSchema, {
  ...shown,
  previous_secret_until: (_: Endpoint, until: number | null) => isoTimeOrNull(until),
});

const testedView = viewOf(webhookTestedSchema, { error: ({ failure }: TestResult) => failure });

/** A receiver has 10 s; the answer then still has to come back. */
const testTimeoutMs = 12_000;

const url = z.string().min(1, "is empty").max(2048, "is longer than 2048 characters");
const events = z
  .array(z.enum(subscribable))
  .min(1, "names no event type")
  .describe("Event types. `*`, the default at creation: every type, including those of later versions.");
const description = z
  .string()
  .max(500, "is longer than 500 characters")
  .nullable()
  .register(flagNotes, { flag: "--description <text>", about: "what it is for" });
const format = z
  .enum(webhookFormats)
  .register(flagNotes, { flag: "--format <name>", about: `signatures: ${orList(webhookFormatLabels)}` });
const mostOverlapSeconds = 604_800;
const overlap = `is a whole number from 0 to ${mostOverlapSeconds}`;
const rotated = z.strictObject({
  overlap_seconds: z.int(overlap).min(0, overlap).max(mostOverlapSeconds, overlap).default(86_400),
});
const created = z.strictObject({
  url,
  events: events.optional(),
  description: description.optional(),
  format: format.optional(),
  active: z.boolean().optional(),
});
const changed = z.strictObject({
  url: url.optional(),
  events: events.transform(eventMask).optional(),
  description: description.optional(),
  format: format.optional(),
  active: z.boolean().optional(),
  backlog: z.literal("discard").optional(),
});
const tested = z.strictObject({ event: z.enum(eventTypes).optional() });
const changeInput = inputOf(changed, { events: "eventMask", backlog: null });

const auditFields = ["events", "active", "format", "backlog", "overlap_seconds", "event"];
const common = {
  scopes: ["admin"],
  bucket: "default",
  listeners: "both",
  query: z.object({}),
  auditFields,
} as const;

export function webhookRoutes({ store, webhooks, clock, mint }: RouteDeps): Route[] {
  const problems = async (body: Record<string, unknown>): Promise<Problem[]> => {
    if (!url.safeParse(body["url"]).success) return []; // the schema says so
    try {
      await webhooks.checkUrl(String(body["url"]));
      return [];
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== "validation_failed") throw error;
      return error.extras.errors ?? [{ field: "url", code: "validation_failed", issue: error.message }];
    }
  };

  return [
    route({
      ...common,
      method: "POST",
      path: "/v1/webhooks",
      summary: "Create a webhook endpoint",
      answers: { 201: webhookCreatedSchema },
      bucket: "webhooks-write",
      body: created,
      problems,
      refuses: ["conflict"],
      handle({ listener, account, body, idempotent }) {
        const now = clock.now();
        const endpoint = {
          id: mint("whk", now),
          accountKey: account.key,
          url: body.url,
          eventMask: eventMask(body.events),
          description: body.description ?? null,
          active: body.active ?? true,
          secret: newSecret(),
          previousSecret: null,
          previousSecretUntil: null,
          createdAt: now,
          updatedAt: now,
          lastSuccessAt: null,
          lastFailureAt: null,
          consecutiveFailures: 0,
          failingSince: null,
          format: body.format ?? ("svc" as const),
        };
        return idempotent(
          (writing) =>
            listener === "admin"
              ? writing.createEndpoint(endpoint)
              : withinLimit(account, "webhooks", () =>
                  writing.createEndpoint(endpoint, mostOf(account.limits, "webhooks")),
                ),
          (created) => json(201, createdView(created), { location: `/v1/webhooks/${created.id}` }),
        );
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/webhooks",
      summary: "List webhook endpoints",
      answers: { 200: webhookListSchema },
      lastModifiedFrom: ["webhooks"],
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        const page = pageOf(await store.listEndpoints(account.key), pageRequest(query));
        return json(200, listBody(page, endpointView));
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/webhooks/{id}",
      summary: "Get a webhook endpoint",
      answers: { 200: webhookSchema },
      refuses: ["resource_not_found"],
      lastModifiedFrom: ["webhooks"],
      body: null,
      async handle(call) {
        const endpoint = await endpointOf(store, call);
        const { updatedAt, lastSuccessAt, lastFailureAt } = endpoint;
        const lastModified = Math.max(updatedAt, lastSuccessAt ?? 0, lastFailureAt ?? 0);
        return { ...json(200, endpointView(endpoint)), lastModified };
      },
    }),
    route({
      ...common,
      method: "PATCH",
      path: "/v1/webhooks/{id}",
      summary: "Update, pause or resume a webhook endpoint",
      answers: { 200: webhookSchema },
      refuses: ["resource_not_found"],
      body: changed,
      problems,
      async handle(call) {
        const { active, backlog } = call.body;
        let repaired: number | null = null;
        const reply = await call.idempotent(
          (writing) =>
            writing.updateEndpoint(
              call.account.key,
              call.param("id"),
              { ...changeInput(call.body), updatedAt: clock.now() },
              { discardBacklog: backlog === "discard" },
            ),
          (endpoint) => {
            if (!endpoint) throw noEndpoint();
            if (active || call.body.url !== undefined) repaired = endpoint.key;
            return json(200, endpointView(endpoint));
          },
        );
        if (repaired !== null) webhooks.retryNow(repaired); // what waited goes out now
        return reply;
      },
    }),
    route({
      ...common,
      method: "DELETE",
      path: "/v1/webhooks/{id}",
      summary: "Delete a webhook endpoint",
      answers: { 204: null },
      refuses: ["resource_not_found"],
      body: null,
      async handle(call) {
        return call.idempotent(
          (writing) => writing.deleteEndpoint(call.account.key, call.param("id")),
          (deleted) => {
            if (!deleted) throw noEndpoint();
            return { status: 204 };
          },
        );
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/webhooks/{id}/rotate_secret",
      summary: "Rotate the secret of a webhook endpoint; the old one signs too until its overlap ends",
      answers: { 200: webhookRotatedSchema },
      refuses: ["resource_not_found"],
      body: rotated,
      bodyOptional: true,
      async handle(call) {
        const at = clock.now();
        const seconds = call.body.overlap_seconds;
        const previousUntil = seconds === 0 ? null : at + seconds * 1000;
        const secret = newSecret();
        return call.idempotent(
          (writing) =>
            writing.rotateSecret(call.account.key, call.param("id"), { secret, previousUntil, at }),
          (endpoint) => {
            if (!endpoint) throw noEndpoint();
            return json(200, rotatedView(endpoint, previousUntil));
          },
        );
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/webhooks/{id}/test",
      summary: "Send a test event to a webhook endpoint",
      answers: { 200: webhookTestedSchema },
      refuses: ["resource_not_found"],
      body: tested,
      bodyOptional: true,
      timeoutMs: testTimeoutMs,
      upstream: true,
      async handle(call) {
        const result = await webhooks.test(await endpointOf(store, call), call.body.event);
        return call.idempotent(
          () => Promise.resolve(result),
          (kept) => json(200, testedView(kept)),
        );
      },
    }),
  ];
}

/** The endpoint that the path names. Throws Refusal resource_not_found. */
export async function endpointOf(
  store: Store,
  { account, param }: Call<unknown, unknown>,
): Promise<Endpoint> {
  const endpoint = await store.endpoint(account.key, param("id"));
  if (!endpoint) throw noEndpoint();
  return endpoint;
}

export function noEndpoint(): Refusal {
  return new Refusal("resource_not_found", "There is no such webhook.");
}

// /v1/webhooks: endpoints that events are sent to. The secret is shown once, when it is made. Whether a
// URL may be an endpoint (HTTPS, no private network) is the webhooks room's to say. Over 300 lines: nine routes, an entry each.
import { randomInt } from "node:crypto";
import { z } from "zod";
import { mostOf, withinLimit } from "../../access/account-limits.ts";
import { isoTimeOrNull } from "../../clock.ts";
import { Refusal, type Problem } from "../../errors.ts";
import { eventTypes } from "../../events/catalog.ts";
import { eventMask, eventTypesOf, subscribable } from "../../events/subscriptions.ts";
import { deliveryAttemptStatuses } from "../../model/webhook-delivery.ts";
import { webhookFormats, type Endpoint, type ReplayRequest } from "../../model/webhook.ts";
import { pageFields, present, textFilter, time, wordList } from "../fields.ts";
import { listBody, pageOf, pageRequest } from "../paging.ts";
import { json, route, type Call, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { deliveryBody, endpointBody, withSecret } from "../webhook-record.ts";
import {
  webhookCreatedShape,
  webhookDeliveryListShape,
  webhookListShape,
  webhookReplayedShape,
  webhookRotatedShape,
  webhookShape,
  webhookTestedShape,
} from "../shapes/webhooks.ts";

const secretAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const secretLength = 64;
/** A receiver has 10 s; the answer then still has to come back. */
const testTimeoutMs = 12_000;

const url = z.string().min(1, "is empty").max(2048, "is longer than 2048 characters");
const events = z
  .array(z.enum(subscribable))
  .min(1, "names no event type")
  .describe(
    "Types of event; `*`, as where it is left out at creation: every type, those of later versions too.",
  );
const description = z.string().max(500, "is longer than 500 characters").nullable();
const format = z.enum(webhookFormats);
const mostOverlapSeconds = 604_800;
const overlap = `is a whole number from 0 to ${mostOverlapSeconds}`;
const rotated = z.strictObject({
  overlap_seconds: z.int(overlap).min(0, overlap).max(mostOverlapSeconds, overlap).default(86_400),
});
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
    { path: ["event_ids"], message: "stands alone, without since, until or status" },
  );
const created = z.strictObject({
  format: format.optional(),
  url,
  events: events.optional(),
  description: description.optional(),
  active: z.boolean().optional(),
});
const changed = z.strictObject({
  format: format.optional(),
  url: url.optional(),
  events: events.optional(),
  description: description.optional(),
  active: z.boolean().optional(),
  backlog: z.literal("discard").optional(),
});
const tested = z.strictObject({ event: z.enum(eventTypes).optional() });
const shows = ["events", "active", "format", "backlog", "overlap_seconds", "event"];
const common = { scopes: ["admin"], bucket: "default", doors: "both", query: z.object({}), shows } as const;

export function webhookRoutes({ store, webhooks, clock, mint }: RouteDeps): Route[] {
  const find = async (call: Call<unknown, unknown>): Promise<Endpoint> => {
    const endpoint = await store.endpoint(call.account.key, call.param("id"));
    if (!endpoint) throw noEndpoint();
    return endpoint;
  };
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
      summary: "Makes an endpoint that events are sent to",
      answers: { 201: webhookCreatedShape },
      bucket: "webhooks-write",
      body: created,
      problems,
      refuses: ["conflict"],
      handle({ door, account, body, once }) {
        const now = clock.now();
        const endpoint = {
          id: mint("whk", now),
          accountKey: account.key,
          url: body.url,
          eventMask: eventMask(body.events),
          description: body.description ?? null,
          active: body.active ?? true,
          secret: makeSecret(),
          previousSecret: null,
          previousSecretUntil: null,
          createdAt: now,
          updatedAt: now,
          lastSuccessAt: null,
          lastFailureAt: null,
          consecutiveFailures: 0,
          format: body.format ?? ("svc" as const),
        };
        return once(
          (writing) =>
            door === "admin"
              ? writing.createEndpoint(endpoint)
              : withinLimit(account, "webhooks", () =>
                  writing.createEndpoint(endpoint, mostOf(account.limits, "webhooks")),
                ),
          (created) => json(201, withSecret(created), { location: `/v1/webhooks/${created.id}` }),
        );
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/webhooks",
      summary: "Lists the endpoints",
      answers: { 200: webhookListShape },
      changes: ["webhooks"],
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        const page = pageOf(await store.listEndpoints(account.key), pageRequest(query));
        return json(200, listBody(page, endpointBody));
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/webhooks/{id}",
      summary: "Reads an endpoint",
      answers: { 200: webhookShape },
      refuses: ["resource_not_found"],
      changes: ["webhooks"],
      body: null,
      async handle(call) {
        const endpoint = await find(call);
        const { updatedAt, lastSuccessAt, lastFailureAt } = endpoint;
        const lastModified = Math.max(updatedAt, lastSuccessAt ?? 0, lastFailureAt ?? 0);
        return { ...json(200, endpointBody(endpoint)), lastModified };
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/webhooks/{id}/deliveries",
      summary: "Lists the attempts at an endpoint, those of the newest event first",
      answers: { 200: webhookDeliveryListShape },
      refuses: ["resource_not_found"],
      changes: ["events"],
      query: z.object({
        status: wordList(deliveryAttemptStatuses).optional(),
        event_id: textFilter,
        ...pageFields(),
      }),
      body: null,
      async handle({ account, query, param }) {
        const filter = present({ statuses: query.status, eventId: query.event_id });
        const page = await store.listDeliveries(account.key, param("id"), filter, pageRequest(query));
        if (!page) throw noEndpoint();
        return json(200, listBody(page, deliveryBody));
      },
    }),
    route({
      ...common,
      method: "PATCH",
      path: "/v1/webhooks/{id}",
      summary: "Changes, pauses or resumes an endpoint",
      answers: { 200: webhookShape },
      refuses: ["resource_not_found"],
      body: changed,
      problems,
      async handle(call) {
        const { url: newUrl, events: types, description: text, active, backlog, format: form } = call.body;
        const mask = types === undefined ? undefined : eventMask(types);
        const change = present({ url: newUrl, eventMask: mask, description: text, active, format: form });
        const reply = await call.once(
          (writing) =>
            writing.updateEndpoint(
              call.account.key,
              call.param("id"),
              { ...change, updatedAt: clock.now() },
              { discardBacklog: backlog === "discard" },
            ),
          (endpoint) => {
            if (!endpoint) throw noEndpoint();
            return json(200, endpointBody(endpoint));
          },
        );
        if (active) webhooks.kick(); // what waited while it was paused goes out now
        return reply;
      },
    }),
    route({
      ...common,
      method: "DELETE",
      path: "/v1/webhooks/{id}",
      summary: "Deletes an endpoint",
      answers: { 204: null },
      refuses: ["resource_not_found"],
      body: null,
      async handle(call) {
        return call.once(
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
      summary: "Makes a new secret; the old one signs along for a while",
      answers: { 200: webhookRotatedShape },
      refuses: ["resource_not_found"],
      body: rotated,
      bodyOptional: true,
      async handle(call) {
        const at = clock.now();
        const seconds = call.body.overlap_seconds;
        const previousUntil = seconds === 0 ? null : at + seconds * 1000;
        const secret = makeSecret();
        return call.once(
          (writing) =>
            writing.rotateSecret(call.account.key, call.param("id"), { secret, previousUntil, at }),
          (endpoint) => {
            if (!endpoint) throw noEndpoint();
            const rotated: z.input<typeof webhookRotatedShape> = {
              ...withSecret(endpoint),
              previous_secret_until: isoTimeOrNull(previousUntil),
            };
            return json(200, rotated);
          },
        );
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/webhooks/{id}/replay",
      summary: "Sends events again",
      answers: { 202: webhookReplayedShape },
      refuses: ["resource_not_found"],
      body: replayed,
      bodyOptional: true,
      async handle(call) {
        const endpoint = await find(call);
        const { event_ids: ids, since = null, until = null, status } = call.body;
        const types = eventTypesOf(endpoint.eventMask);
        const which: ReplayRequest =
          ids === undefined
            ? { kind: "range", since, until, deadLettered: status !== "all", types }
            : { kind: "events", ids };
        const reply = await call.once(
          (writing) => writing.replayDeliveries(call.account.key, endpoint.id, which, clock.now()),
          (queued) => {
            if (queued === null) throw noEndpoint();
            return json(202, { queued });
          },
        );
        webhooks.kick();
        return reply;
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/webhooks/{id}/test",
      summary: "Sends one made-up event now",
      answers: { 200: webhookTestedShape },
      refuses: ["resource_not_found"],
      body: tested,
      bodyOptional: true,
      timeoutMs: testTimeoutMs,
      upstream: true,
      async handle(call) {
        const result = await webhooks.test(await find(call), call.body.event);
        const { delivered, status, durationMs, eventId, failure } = result;
        const told: z.input<typeof webhookTestedShape> = {
          delivered,
          status,
          duration_ms: durationMs,
          event_id: eventId,
          error: failure,
        };
        return call.once(
          () => Promise.resolve(told),
          (kept) => json(200, kept),
        );
      },
    }),
  ];
}

/** 64 printable ASCII characters of 6 random bits each; their bytes are the HMAC key. */
function makeSecret(): string {
  return Array.from({ length: secretLength }, () =>
    secretAlphabet.charAt(randomInt(secretAlphabet.length)),
  ).join("");
}

function noEndpoint(): Refusal {
  return new Refusal("resource_not_found", "There is no such webhook.");
}

// /v1/messages: what is sent and what became of it. The fields of a send are submission's to judge, behind
// both doors alike; here it is parsed JSON that is passed on.
import { z } from "zod";
import { quotasOf } from "../../access/quotas.ts";
import { Refusal } from "../../errors.ts";
import type { Account } from "../../model/account.ts";
import {
  messageSources,
  messageStatuses,
  type MessageFilter,
  type MessageRecord,
} from "../../model/message.ts";
import type { PageRequest } from "../../model/page.ts";
import type { Arrival, Sender } from "../../submission/submission.ts";
import {
  canonicalEmail,
  domainName,
  pageFields,
  patternFields,
  patternsOf,
  present,
  textFilter,
  time,
} from "../fields.ts";
import { contentOf } from "../message-content.ts";
import { attemptBody, lastChangeOf, messageBody } from "../message-record.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Call, type Reply, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import {
  attemptsShape,
  batchRequestShape,
  batchShape,
  contentShape,
  messageAcceptedShape,
  messageListShape,
  messageRequestShape,
  messageShape,
  rawMessage,
  validShape,
} from "../shapes/messages.ts";

const filters = z.object({
  status: z.enum(messageStatuses).optional(),
  from: textFilter,
  to: canonicalEmail.optional(),
  to_domain: domainName.optional(),
  tag: textFilter,
  subject: textFilter,
  ip_pool: textFilter,
  source: z.enum(messageSources).optional(),
  created_after: time.optional(),
  created_before: time.optional(),
  ...pageFields(),
});

export const mostInBatch = 100;
const none = z.object({});
const noBody = z.strictObject({});
/** What one of them may hold is submission's to judge, each by itself. */
const batched = z.strictObject({
  messages: z
    .array(z.custom<unknown>())
    .min(1, "is empty")
    .max(mostInBatch, `has more than ${mostInBatch} messages`),
});
const read = { scopes: ["send", "reporting"], bucket: "messages-read", doors: "both", body: null } as const;
/** What submission finds wrong with a message. */
const unsendable = [
  "invalid_email_address",
  "sender_not_verified",
  "recipient_suppressed",
  "ip_pool_not_found",
  "scheduling_window_exceeded",
  "invalid_attachment",
  "tracking_disabled",
] as const;
const listed = {
  method: "GET",
  path: "/v1/messages",
  summary: "Lists messages, newest first",
  answers: { 200: messageListShape },
  changes: ["messages"],
  ...read,
} as const;
const write = { scopes: ["send"], bucket: "messages-write", doors: "both" } as const;

export function messageRoutes(deps: RouteDeps): Route[] {
  const { store, clock, submission } = deps;

  const find = async (call: Call<unknown, unknown>): Promise<MessageRecord> => {
    const message = await store.message(call.account.key, call.param("id"));
    if (!message) throw noMessage();
    return message;
  };
  const page = async (account: Account, filter: MessageFilter, at: PageRequest): Promise<Reply> =>
    json(200, listBody(await store.listMessages(account.key, filter, at), messageBody));

  return [
    route({
      method: "POST",
      path: "/v1/messages",
      summary: "Sends a message",
      answers: { 202: messageAcceptedShape },
      refuses: ["account_paused", ...unsendable],
      ...write,
      query: none,
      asks: messageRequestShape,
      sends: "message",
      body: z.custom<Record<string, unknown>>(), // as it came: a copy by zod would lose a `__proto__` without a word
      async handle(call) {
        const accepted = await submission.send(senderOf(call), call.body, arrivalOf(call), call.idempotency);
        const headers: Record<string, string> = accepted.replayed ? { "idempotency-replayed": "true" } : {};
        const id = accepted.id ?? (JSON.parse(accepted.body) as { id?: string }).id;
        if (id !== undefined) headers["location"] = `/v1/messages/${id}`;
        return { status: accepted.status, headers, body: accepted.body };
      },
    }),
    route({
      method: "POST",
      path: "/v1/messages/batch",
      act: "messages.batch",
      mostValues: mostInBatch * 2000,
      summary: "Sends up to 100 messages, each accepted or refused by itself",
      answers: { 200: batchShape },
      refuses: ["account_paused"],
      ...write,
      query: none,
      asks: batchRequestShape,
      sends: "batch",
      body: batched,
      tokens: ({ messages }) => messages.length,
      async handle(call) {
        const { messages } = call.body;
        const done = await submission.sendBatch(senderOf(call), messages, arrivalOf(call), call.idempotency);
        const headers: Record<string, string> = done.replayed ? { "idempotency-replayed": "true" } : {};
        return { status: done.status, headers, body: done.body };
      },
    }),
    route({
      method: "POST",
      path: "/v1/messages/validate",
      act: null,
      summary: "Says whether a message would be taken, and sends nothing",
      answers: { 200: validShape },
      refuses: ["account_paused", ...unsendable],
      ...write,
      query: none,
      asks: messageRequestShape,
      sends: "message",
      body: z.custom<Record<string, unknown>>(),
      async handle(call) {
        await submission.check(senderOf(call), call.body, arrivalOf(call));
        return json(200, { valid: true });
      },
    }),
    route({
      ...listed,
      doors: "public",
      query: filters,
      handle: ({ account, query }) => page(account, filterOf(query), pageRequest(query)),
    }),
    route({
      ...listed,
      doors: "admin",
      query: filters.extend(patternFields),
      handle({ account, query: { to, from, tag, ...query } }) {
        const filter = { ...filterOf(query), ...patternsOf({ ...query, to, from, tag }) };
        return page(account, filter, pageRequest(query));
      },
    }),
    route({
      method: "GET",
      path: "/v1/messages/{id}",
      summary: "Reads a message and what became of each recipient",
      answers: { 200: messageShape },
      refuses: ["resource_not_found"],
      changes: ["messages"],
      ...read,
      query: none,
      async handle(call) {
        const message = await find(call);
        return { ...json(200, messageBody(message)), lastModified: lastChangeOf(message, call.now) };
      },
    }),
    route({
      method: "GET",
      path: "/v1/messages/{id}/attempts",
      summary: "Lists every attempt at delivery, with its dialogue",
      answers: { 200: attemptsShape },
      refuses: ["resource_not_found"],
      changes: ["messages"],
      ...read,
      query: none,
      async handle(call) {
        const { id } = await find(call);
        return json(200, { data: (await store.attempts(call.account.key, id)).map(attemptBody) });
      },
    }),
    route({
      method: "GET",
      path: "/v1/messages/{id}/content",
      summary: "Shows what a message says",
      answers: { 200: { "application/json": contentShape, "message/rfc822": rawMessage } },
      refuses: ["resource_not_found", "conflict", "rate_limit_exceeded", "upstream_error"],
      changes: ["messages"],
      ...read,
      scopes: ["send"],
      query: none,
      async handle(call) {
        const message = await find(call);
        const shown = await contentOf(deps, message, call);
        return { ...shown, lastModified: message.createdAt }; // never edited; once it is gone, 404
      },
    }),
    route({
      method: "POST",
      path: "/v1/messages/{id}/cancel",
      summary: "Cancels what is not on its way yet",
      answers: { 200: messageShape },
      refuses: ["resource_not_found", "message_not_cancelable"],
      ...write,
      query: none,
      body: noBody,
      bodyOptional: true,
      async handle(call) {
        return call.once(
          async (writing) => {
            const result = await writing.cancelMessage(call.account.key, call.param("id"), clock.now());
            if (!result) throw noMessage();
            if (result.canceled > 0) return result.message;
            throw new Refusal(
              "message_not_cancelable",
              "No recipient of the message is scheduled or queued any more.",
            );
          },
          (message) => json(200, messageBody(message)),
        );
      },
    }),
  ];
}

function senderOf({ account, principal }: Call<unknown, unknown>): Sender {
  const key = principal.kind === "key" ? principal.key : null;
  return {
    account,
    test: key?.test ?? false,
    apiKey: key?.key ?? null,
    quotas: key ? quotasOf(account, key) : [],
  };
}

function arrivalOf({ ip }: Call<unknown, unknown>): Arrival {
  return { ip, helo: null, protocol: "HTTP" };
}

function filterOf(query: Omit<z.output<typeof filters>, "limit">): MessageFilter {
  return present({
    status: query.status,
    from: query.from,
    to: query.to,
    toDomain: query.to_domain,
    tag: query.tag,
    subject: query.subject,
    ipPool: query.ip_pool,
    source: query.source,
    createdAfter: query.created_after,
    createdBefore: query.created_before,
  });
}

function noMessage(): Refusal {
  return new Refusal("resource_not_found", "There is no such message.");
}

// POST /v1/messages, one, in a batch, and as a dry run. The fields of a send are validated by submission, behind both
// interfaces alike (submission/shape.ts, fields.ts): here parsed JSON is passed on, and the limits are written down for
// the API's description only.
import { z } from "zod";
import { quotasOf } from "../../access/quotas.ts";
import { acceptedStates, recipientTypes } from "../../model/recipient.ts";
import { messageFields } from "../../submission/shape.ts";
import type { Acceptance, Arrival, SendAnswer, Sender } from "../../submission/submission.ts";
import { emailAddress, idOf, timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { json, route, type Call, type Reply, type Route } from "../route.ts";
import { messageOf } from "./messages.ts";

const address = {
  examples: ["Shop <info@shop.example>", { email: "info@shop.example", name: "Shop" }],
};
const several = (words: string) => ({ description: words, examples: ["someone@example.net"] });

/** The body of a send. */
export const messageRequestSchema = z
  .strictObject({
    from: messageFields.from.meta({
      description: "The sender; its domain must be verified. `a@x`, `Name <a@x>` or `{email, name}`.",
      ...address,
    }),
    to: messageFields.to.meta(
      several("At least one. At most 50 recipients over to, cc and bcc; duplicates are merged."),
    ),
    cc: messageFields.cc.meta(several("Recipients of a copy, named in the header.")).optional(),
    bcc: messageFields.bcc.meta(several("Recipients of a copy that no header names.")).optional(),
    reply_to: messageFields.reply_to.meta(several("At most 50.")).optional(),
    subject: messageFields.subject.meta({ description: "No CR, LF or NUL.", maxLength: 998 }),
    html: messageFields.html.meta({ description: "One of html and text is required." }).optional(),
    text: messageFields.text.meta({ description: "One of html and text is required." }).optional(),
    auto_text: messageFields.auto_text
      .meta({ description: "If text is missing, it is derived from html.", default: true })
      .optional(),
    headers: messageFields.headers
      .meta({
        description: "At most 50 fields, 8 KB; not those that the service writes itself.",
        maxProperties: 50,
      })
      .optional(),
    attachments: messageFields.attachments
      .meta({
        description:
          "`content` is base64. With a content_id it is shown in the text (`cid:`). Executable extensions are refused.",
        maxItems: 50,
      })
      .optional(),
    ip_pool: messageFields.ip_pool.meta({ description: "The name of a pool of the account." }).optional(),
    tags: messageFields.tags
      .meta({ description: "At most 10 of 128 characters.", maxItems: 10, examples: [["newsletter"]] })
      .optional(),
    metadata: messageFields.metadata
      .meta({
        description: "At most 20 strings; they come back in every event of the message.",
        maxProperties: 20,
        examples: [{ order: "4711" }],
      })
      .optional(),
    send_at: messageFields.send_at
      .meta({
        description: "ISO 8601 with a zone, at most 72 hours ahead; in the past: immediately.",
        format: "date-time",
        examples: ["2026-12-01T08:00:00Z"],
      })
      .optional(),
    track_opens: messageFields.track_opens.meta({ description: "The same as tracking.opens." }).optional(),
    track_clicks: messageFields.track_clicks.meta({ description: "The same as tracking.clicks." }).optional(),
    tracking: messageFields.tracking
      .meta({
        description: "`tracking_disabled`: tracking is off for the domain. The default is the domain's.",
      })
      .optional(),
    unsubscribe: messageFields.unsubscribe
      .meta({
        description:
          "Adds List-Unsubscribe (RFC 8058). true: the page is this server's; else your own https URL, an address, or both.",
      })
      .optional(),
  })
  .meta({
    id: "MessageRequest",
    // One of html and text; as an anyOf, generators of types would lose the fields over it.
    not: {
      allOf: ["html", "text"].map((name) => ({ not: { properties: { [name]: {} }, required: [name] } })),
    },
    examples: [
      {
        from: "Shop <info@shop.example>",
        to: ["someone@example.net"],
        subject: "Your order 4711",
        html: "<p>It is on its way.</p>",
        tags: ["order"],
      },
    ],
  });

export const batchRequestSchema = z
  .strictObject({
    messages: z
      .array(messageRequestSchema)
      .min(1)
      .max(100)
      .meta({ description: "Each is accepted or refused on its own." }),
  })
  .meta({ id: "MessageBatchRequest" });

export const mostInBatch = 100;

const acceptedFields = {
  id: idOf("msg"),
  status: z.enum(acceptedStates),
  created_at: timestamp,
  send_at: timestamp.nullable(),
  recipients: z.array(z.strictObject({ email: emailAddress, type: z.enum(recipientTypes) })),
  message_id_header: z.string().meta({ description: "The Message-ID of the mail, with its angle brackets." }),
};
export const messageAcceptedSchema = z
  .strictObject(acceptedFields)
  .meta({ id: "MessageAccepted" }) satisfies z.ZodType<SendAnswer>;

/** One result of a batch: what the message alone would have been answered. */
export const batchSchema = z
  .strictObject({
    data: z
      .array(
        z.union([
          z.strictObject({ ...acceptedFields, status: z.literal(202) }).meta({ id: "BatchAccepted" }),
          z
            .strictObject({
              status: z.int().min(400).max(499),
              error: z.looseObject({ code: z.string(), message: z.string() }).meta({
                description: "The members of a problem: errors, suppressed_recipients and so on.",
              }),
            })
            .meta({ id: "BatchRefused" }),
        ]),
      )
      .meta({ description: "In the order of the request." }),
  })
  .meta({ id: "MessageBatch" });

export const validSchema = z.strictObject({ valid: z.literal(true) }).meta({ id: "MessageValid" });

/** Submission checks each of them by itself. */
const batched = z.strictObject({
  messages: z
    .array(z.custom<unknown>())
    .min(1, "is empty")
    .max(mostInBatch, `has more than ${mostInBatch} messages`),
});

const resent = z.strictObject({
  to: z
    .array(z.string())
    .min(1, "is empty")
    .max(50, "has more than 50 addresses")
    .optional()
    .describe("Recipients of the message; all of them where it is not given."),
});

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

const common = {
  scopes: ["send"],
  bucket: "messages-write",
  listeners: "both",
  query: z.object({}),
} as const;

export function sendingRoutes({ submission, store }: RouteDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/messages",
      summary: "Send a message",
      answers: { 202: messageAcceptedSchema },
      refuses: ["account_paused", ...unsendable],
      ...common,
      requestSchema: messageRequestSchema,
      sends: "message",
      body: z.custom<Record<string, unknown>>(), // as it came: a copy by zod would lose a `__proto__` without a word
      async handle(call) {
        return accepted(await submission.send(senderOf(call), call.body, arrivalOf(call), call.idempotency));
      },
    }),
    route({
      method: "POST",
      path: "/v1/messages/batch",
      act: "messages.batch",
      mostValues: mostInBatch * 2000,
      summary: "Send up to 100 messages; each is accepted or refused on its own",
      answers: { 200: batchSchema },
      refuses: ["account_paused"],
      ...common,
      requestSchema: batchRequestSchema,
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
      summary: "Validate a message without sending it",
      answers: { 200: validSchema },
      refuses: ["account_paused", ...unsendable],
      ...common,
      requestSchema: messageRequestSchema,
      sends: "message",
      body: z.custom<Record<string, unknown>>(),
      async handle(call) {
        await submission.check(senderOf(call), call.body, arrivalOf(call));
        return json(200, { valid: true });
      },
    }),
    route({
      method: "POST",
      path: "/v1/messages/{id}/resend",
      summary: "Send the stored content of a message again, as a new message",
      answers: { 202: messageAcceptedSchema },
      refuses: [
        "account_paused",
        "resource_not_found",
        "conflict",
        "invalid_email_address",
        "sender_not_verified",
        "recipient_suppressed",
        "ip_pool_not_found",
        "invalid_attachment",
      ],
      ...common,
      scopes: ["admin"],
      listeners: "admin",
      takesKey: true,
      body: resent,
      bodyOptional: true,
      async handle(call) {
        const first = await messageOf(store, call);
        const { to = null } = call.body;
        return accepted(
          await submission.resend(senderOf(call), first, to, arrivalOf(call), call.idempotency),
        );
      },
    }),
  ];
}

function accepted({ status, body, id: made, replayed }: Acceptance): Reply {
  const headers: Record<string, string> = replayed ? { "idempotency-replayed": "true" } : {};
  const id = made ?? (JSON.parse(body) as { id?: string }).id;
  if (id !== undefined) headers["location"] = `/v1/messages/${id}`;
  return { status, headers, body };
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

// /v1/messages: what became of what was sent. A message has no state of its own: its status is what its recipients have
// in common. How it is sent: sending.ts; its attempts and its content: attempts.ts, message-content.ts.
import { z } from "zod";
import { isoTime } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import type { Account } from "../../model/account.ts";
import {
  messageSources,
  messageStatuses,
  type MessageFilter,
  type MessageRecord,
  type MessageStatus,
} from "../../model/message.ts";
import type { PageRequest } from "../../model/page.ts";
import { finalStates, recipientStates, recipientTypes, type RecipientRecord } from "../../model/recipient.ts";
import type { Store } from "../../store/store.ts";
import {
  count,
  emailAddress,
  idOf,
  ipAddress,
  smtpCode,
  smtpStatus,
  timestamp,
  tlsSchema,
} from "../../value-schemas.ts";
import { inputOf, viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
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
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Call, type Reply, type Route } from "../route.ts";
import { list, replyCode } from "../view-fields.ts";

const recipientSchema = z
  .strictObject({
    email: emailAddress,
    type: z.enum(recipientTypes),
    status: z.enum(recipientStates),
    attempts: count,
    last_attempt_at: timestamp.nullable(),
    next_attempt_at: timestamp.nullable(),
    smtp_code: smtpCode.nullable(),
    smtp_status: smtpStatus.nullable(),
    smtp_response: z.string().nullable(),
    receiving_mta: z.string().nullable(),
    sending_ip: ipAddress.nullable(),
    tls: tlsSchema.nullable(),
    updated_at: timestamp,
    opened_at: timestamp.nullable(),
    open_count: count,
    clicked_at: timestamp.nullable(),
    click_count: count,
    complained_at: timestamp.nullable(),
    unsubscribed_at: timestamp.nullable(),
  })
  .meta({ id: "Recipient" });

const messageSchema = z
  .strictObject({
    id: idOf("msg"),
    status: z.enum(messageStatuses).meta({
      description:
        "The status that all recipients have; if they differ, partially_delivered when all are final, else processing.",
    }),
    from: emailAddress,
    from_name: z.string().nullable(),
    subject: z.string(),
    message_id_header: z.string(),
    tags: z.array(z.string()),
    metadata: z.record(z.string(), z.string()),
    ip_pool: z.string(),
    source: z.enum(messageSources),
    test: z.boolean(),
    size_bytes: count,
    created_at: timestamp,
    send_at: timestamp.nullable(),
    resend_of: idOf("msg").nullable().describe("The message that it sends again."),
    updated_at: timestamp,
    recipients: z.array(recipientSchema),
  })
  .meta({ id: "Message" });

/** The common state; `partially_delivered` where all are final and differ, else `processing`. */
function messageStatus(recipients: readonly RecipientRecord[]): MessageStatus {
  const states = new Set(recipients.map((recipient) => recipient.state));
  const [first] = states;
  if (states.size === 1 && first) return first;
  return [...states].every((state) => finalStates.includes(state)) ? "partially_delivered" : "processing";
}

/** When what the record shows last changed: the last write to one of its recipients, or that the time of one has come. */
function lastChangeOf({ createdAt, recipients }: MessageRecord, now: number): number {
  return recipients.reduce((latest, { updatedAt, nextAttemptAt }) => {
    const due = nextAttemptAt !== null && nextAttemptAt <= now ? nextAttemptAt : 0;
    return Math.max(latest, updatedAt, due);
  }, createdAt);
}

function lastWriteOf({ createdAt, recipients }: MessageRecord): number {
  return recipients.reduce((latest, { updatedAt }) => Math.max(latest, updatedAt), createdAt);
}

const recipientView = viewOf(recipientSchema, {
  email: ({ to }: RecipientRecord) => to,
  status: ({ state }: RecipientRecord) => state,
  smtp_code: replyCode,
});

const messageView = viewOf(messageSchema, {
  status: ({ recipients }: MessageRecord) => messageStatus(recipients),
  updated_at: (message: MessageRecord) => isoTime(lastWriteOf(message)),
  recipients: ({ recipients }: MessageRecord) => recipients.map((recipient) => recipientView(recipient)),
});

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

/** What a message is known by elsewhere, on the operator's socket: a look-up walks, newest first. */
const traceFields = {
  message_id_header: textFilter.describe("The Message-ID, with its angle brackets."),
  remote_id: z
    .string()
    .regex(/^[\x21-\x7e]{4,100}$/, "is not 4 to 100 visible characters")
    .optional()
    .describe("The receiver's queue id, as it stands in a reply."),
};

const filterOf = inputOf(filters, { limit: null, cursor: null });

/** The scopes and the rate limit of what is read of a message. */
export const messageRead = {
  scopes: ["send", "reporting"],
  bucket: "messages-read",
  listeners: "both",
  query: z.object({}),
  body: null,
} as const;
const listed = {
  method: "GET",
  path: "/v1/messages",
  summary: "List messages, newest first",
  answers: { 200: list(messageSchema) },
  lastModifiedFrom: ["messages"],
  ...messageRead,
} as const;

export function messageRoutes({ store, clock }: RouteDeps): Route[] {
  const page = async (account: Account, filter: MessageFilter, at: PageRequest): Promise<Reply> =>
    json(200, listBody(await store.listMessages(account.key, filter, at), messageView));

  return [
    route({
      ...listed,
      listeners: "public",
      query: filters,
      handle: ({ account, query }) => page(account, filterOf(query), pageRequest(query)),
    }),
    route({
      ...listed,
      listeners: "admin",
      query: filters.extend({ ...patternFields, ...traceFields }),
      handle({
        account,
        query: { to, from, tag, message_id_header: messageIdHeader, remote_id: remoteId, ...query },
      }) {
        const traced = present({ messageIdHeader, remoteId });
        const filter = { ...filterOf(query), ...patternsOf({ ...query, to, from, tag }), ...traced };
        return page(account, filter, pageRequest(query));
      },
    }),
    route({
      method: "GET",
      path: "/v1/messages/{id}",
      summary: "Get a message and the status of each recipient",
      answers: { 200: messageSchema },
      refuses: ["resource_not_found"],
      lastModifiedFrom: ["messages"],
      ...messageRead,
      async handle(call) {
        const message = await messageOf(store, call);
        return { ...json(200, messageView(message)), lastModified: lastChangeOf(message, call.now) };
      },
    }),
    route({
      method: "POST",
      path: "/v1/messages/{id}/cancel",
      summary: "Cancel a message for the recipients that are still scheduled, queued or deferred",
      answers: { 200: messageSchema },
      refuses: ["resource_not_found", "message_not_cancelable"],
      scopes: ["send"],
      bucket: "messages-write",
      listeners: "both",
      query: z.object({}),
      body: z.strictObject({}),
      bodyOptional: true,
      async handle(call) {
        return call.idempotent(
          async (writing) => {
            const result = await writing.cancelMessage(call.account.key, call.param("id"), clock.now());
            if (!result) throw noMessage();
            if (result.canceled > 0) return result.message;
            throw new Refusal(
              "message_not_cancelable",
              "The message has no scheduled or queued recipient left.",
            );
          },
          (message) => json(200, messageView(message)),
        );
      },
    }),
  ];
}

/** The message that the path names. Throws Refusal resource_not_found. */
export async function messageOf(
  store: Store,
  { account, param }: Call<unknown, unknown>,
): Promise<MessageRecord> {
  const message = await store.message(account.key, param("id"));
  if (!message) throw noMessage();
  return message;
}

function noMessage(): Refusal {
  return new Refusal("resource_not_found", "There is no such message.");
}

// /v1/queue, on the operator's socket only: what the account has in the queue, counted and listed with why it is there, and
// what the operator does with it. An act answers within ten seconds and says where the rest begins.
import { z } from "zod";
import { isoTimeOrNull } from "../../clock.ts";
import {
  queueGroupings,
  queueHolders,
  queueParts,
  queueStatuses,
  type QueueEntry,
  type QueueFilter,
} from "../../model/queue-entry.ts";
import { pauseScopes, type QueuePause } from "../../model/queue-pause.ts";
import { queueActs, type QueueAct, type QueueCount } from "../../queue/queue-admin.ts";
import {
  count,
  emailAddress,
  idOf,
  ipAddress,
  smtpCode,
  smtpStatus,
  timestamp,
} from "../../value-schemas.ts";
import { viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields, pattern, patternFields, patternsOf, present } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import { list, replyCode } from "../view-fields.ts";

const entrySchema = z
  .strictObject({
    message_id: idOf("msg"),
    email: emailAddress,
    from: emailAddress,
    domain: z.string(),
    ip_pool: z.string(),
    provider: z
      .string()
      .nullable()
      .describe("The provider, or the domain of the mail hosts, of the last attempt; null before the first."),
    status: z.enum(queueStatuses),
    held_by: z
      .enum(queueHolders)
      .nullable()
      .describe("account: its sending is paused; operator: until it is released."),
    attempts: count,
    queued_at: timestamp,
    last_attempt_at: timestamp.nullable(),
    next_attempt_at: timestamp.nullable(),
    sending_ip: ipAddress.nullable(),
    smtp_code: smtpCode.nullable(),
    smtp_status: smtpStatus.nullable(),
    smtp_response: z.string().nullable(),
    paused_by: z
      .enum(pauseScopes)
      .nullable()
      .describe("A pause that stops it; that of a provider shows once it was tried there."),
    paused_until: timestamp.nullable().describe("null: it is not paused, or until the pause is ended."),
  })
  .meta({ id: "QueueEntry" });

const groupSchema = z
  .strictObject({
    value: z.string().nullable().describe("null: no attempt was made yet."),
    recipients: count,
    held: count,
    next_attempt_at: timestamp
      .nullable()
      .describe("The earliest; in the past where it is due and waits for a slot."),
  })
  .meta({ id: "QueueGroup" });

const countSchema = z
  .strictObject({
    by: z.enum(queueGroupings),
    recipients: count,
    held: count,
    groups: z.array(groupSchema).describe("The largest first."),
    complete: z.boolean().describe("False: the queue is too long to be counted in ten seconds."),
  })
  .meta({ id: "QueueCount" });

const changeSchema = z
  .strictObject({
    recipients: count.describe("How many were changed."),
    has_more: z.boolean(),
    next_cursor: z.string().nullable().describe("Repeat the request with it as `cursor`."),
  })
  .meta({ id: "QueueChange" });

const filterFields = {
  ...patternFields,
  provider: pattern.optional(),
  status: z.enum(queueStatuses).optional(),
};

const entryView = viewOf(entrySchema, {
  email: ({ to }: QueueEntry) => to,
  smtp_code: replyCode,
  paused_by: (_entry: QueueEntry, { pause }: { pause: QueuePause | null }) => pause?.scope ?? null,
  paused_until: (_entry: QueueEntry, { pause }: { pause: QueuePause | null }) =>
    isoTimeOrNull(pause?.until ?? null),
});
const groupView = viewOf(groupSchema);
const countView = viewOf(countSchema, {
  groups: ({ groups }: QueueCount) => groups.map((group) => groupView(group)),
});

function filterOf(given: z.output<z.ZodObject<typeof filterFields>>): QueueFilter {
  const { provider, status } = given;
  return { ...patternsOf(given), ...present({ provider, status }) };
}

const common = {
  scopes: ["admin"],
  bucket: "default",
  listeners: "admin",
} as const;

const summaries: Record<QueueAct, string> = {
  retry: "Make recipients due now that wait for another attempt",
  hold: "Hold recipients until they are released",
  release: "Release recipients that the operator holds",
  fail: "Bounce recipients without another attempt, with an event",
  delete: "Cancel recipients, without an event",
};

export function queueRoutes({ store, queueAdmin, queuePauses, log }: RouteDeps): Route[] {
  const acts = queueActs.map((act) =>
    route({
      ...common,
      method: "POST",
      path: `/v1/queue/${act}`,
      summary: summaries[act],
      answers: { 200: changeSchema },
      act: `queue.${act}`,
      auditFields: Object.keys(filterFields),
      query: z.object({}),
      body: z.strictObject({ ...filterFields, cursor: z.string().max(1000).optional() }),
      bodyOptional: true,
      async handle({ account, body: { cursor = null, ...given } }) {
        const { recipients, next } = await queueAdmin.act(act, account.key, filterOf(given), cursor);
        log.info({ account: account.id, act, recipients }, "changed recipients in the queue");
        return json(200, { recipients, has_more: next !== null, next_cursor: next });
      },
    }),
  );

  return [
    route({
      ...common,
      method: "GET",
      path: "/v1/queue",
      summary:
        "List the recipients in the queue: those that wait by domain and time, then those that are held or being sent",
      answers: { 200: list(entrySchema) },
      lastModifiedFrom: "always",
      query: z.object({ ...filterFields, ...pageFields() }),
      body: null,
      async handle({ account, query: { limit, cursor, ...given } }) {
        const page = pageRequest({ limit, cursor });
        const found = await store.listQueue(account.key, filterOf(given), queueParts, page);
        const shown = (entry: QueueEntry) => {
          const { ipPool, domain, provider } = entry;
          return entryView(entry, { pause: queuePauses.of(account.key, ipPool, domain, provider) });
        };
        return json(200, listBody(found, shown));
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/queue/count",
      summary: "Count the recipients in the queue by domain, provider, pool, address, error or status",
      answers: { 200: countSchema },
      lastModifiedFrom: "always",
      query: z.object({
        ...filterFields,
        by: z.enum(queueGroupings).default("domain"),
        limit: pageFields().limit,
      }),
      body: null,
      async handle({ account, query: { by, limit, ...given } }) {
        const counted = await queueAdmin.count(account.key, by, filterOf(given));
        return json(200, countView({ ...counted, by, groups: counted.groups.slice(0, limit) }));
      },
    }),
    ...acts,
  ];
}

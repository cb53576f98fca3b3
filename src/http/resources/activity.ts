// GET /v1/activity, on the operator's socket only: what the appliance does now, in all accounts, as `svc top` shows it.
// How it is counted: activity/activity.ts.
import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import {
  mailCounts,
  rateNames,
  webhookCounts,
  type ActivityNow,
  type AttemptsNow,
} from "../../activity/activity.ts";
import type { LimiterState } from "../../queue/egress.ts";
import { count, timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { json, route, type Route } from "../route.ts";

const countsOf = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, count])) as Record<Name, typeof count>;
const minute = "Counted in the last minute.";
const attempts = count.describe("Attempts that run now.");

const activitySchema = z
  .strictObject({
    at: timestamp,
    started_at: timestamp.describe("When the server started."),
    per_second: z
      .strictObject(
        Object.fromEntries(rateNames.map((name) => [name, z.array(count)])) as Record<
          (typeof rateNames)[number],
          z.ZodArray<typeof count>
        >,
      )
      .describe("What was counted in each of the last 60 whole seconds, oldest first."),
    queue: z.strictObject({
      scheduled: count,
      queued: count,
      deferred: count,
      sending: count,
      held: count,
      oldest_due_at: timestamp.nullable(),
    }),
    connections: count.describe("Connections to receivers that are open, idle ones included."),
    attempts,
    unwritten: count.describe("Outcomes that wait to be written."),
    providers: z
      .array(z.strictObject({ provider: z.string(), ...countsOf(mailCounts), attempts }))
      .describe(`The busiest groups of MX hosts, a hundred at most. ${minute}`),
    ips: z
      .array(z.strictObject({ ip_address: z.string(), ...countsOf(mailCounts), attempts }))
      .describe(`The busiest sending addresses, a hundred at most. ${minute}`),
    webhooks: z
      .array(z.strictObject({ id: z.string(), url: z.string(), ...countsOf(webhookCounts) }))
      .describe(`The busiest webhook endpoints, a hundred at most. ${minute}`),
    backing_off: z
      .array(
        z.strictObject({
          group: z.string(),
          sending_ip: z.string().nullable().describe("null: the system chooses the address."),
          factor: z.number().describe("What is left of the limits there."),
          attempts_limit: count,
          per_second: z.number().nullable().describe("null: no limit."),
          since: timestamp.nullable(),
          reply: z.string().nullable().describe("The last reply that slowed it down."),
        }),
      )
      .describe("Where a receiver has slowed us down, the latest first, a hundred at most."),
  })
  .meta({ id: "Activity" });

export function activityRoutes({ activity }: RouteDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/activity",
      summary: "Get what the server does now",
      answers: { 200: activitySchema },
      lastModifiedFrom: "always",
      scopes: ["admin"],
      bucket: "default",
      listeners: "admin",
      query: z.object({}),
      body: null,
      handle: async () => json(200, view(await activity.now())),
    }),
  ];
}

function view(now: ActivityNow): z.input<typeof activitySchema> {
  const { oldestDueAt, scheduled, queued, deferred, sending, held } = now.queue;
  return {
    at: isoTime(now.at),
    started_at: isoTime(now.startedAt),
    per_second: now.seconds,
    queue: { scheduled, queued, deferred, sending, held, oldest_due_at: isoTimeOrNull(oldestDueAt) },
    connections: now.connections,
    attempts: now.attempts,
    unwritten: now.unwritten,
    providers: now.providers.map((row) => ({ provider: row.key, ...mailRow(row) })),
    ips: now.ips.map((row) => ({ ip_address: row.key, ...mailRow(row) })),
    webhooks: now.webhooks.map(({ key, url, counts }) => ({ id: key, url, ...counts })),
    backing_off: now.slowed.map(slowedView),
  };
}

const mailRow = ({ counts, attempts }: AttemptsNow) => ({ ...counts, attempts });

function slowedView(state: LimiterState) {
  const { group, address, factor, limit, perSecond, slowed } = state;
  return {
    group,
    sending_ip: address,
    factor,
    attempts_limit: limit,
    per_second: Number.isFinite(perSecond) ? perSecond : null,
    since: isoTimeOrNull(slowed?.since ?? null),
    reply: slowed?.reply ?? null,
  };
}

// /v1/queue/pauses, on the operator's socket only: the parts of the queue that get no attempts. A pool is the account's own;
// a domain, a provider and an address are paused for every account.
import { z } from "zod";
import { Refusal } from "../../errors.ts";
import { parseHostAddress } from "../../dns/networks.ts";
import { parseDomain } from "../../mail/address.ts";
import type { Account } from "../../model/account.ts";
import { pauseScopes, type PauseOf, type PauseScope, type QueuePause } from "../../model/queue-pause.ts";
import { timestamp } from "../../value-schemas.ts";
import { viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { time } from "../fields.ts";
import { json, route, type Route } from "../route.ts";

const pauseSchema = z
  .strictObject({
    scope: z.enum(pauseScopes),
    name: z.string(),
    since: timestamp,
    until: timestamp.nullable().describe("null: until it is ended."),
  })
  .meta({ id: "QueuePause" });

const pausesSchema = z.strictObject({ data: z.array(pauseSchema) }).meta({ id: "QueuePauseList" });

const pauseView = viewOf(pauseSchema);

const paused = {
  scope: z
    .enum(pauseScopes)
    .describe("A recipient domain, a provider, a pool of the account, or an address that mail leaves from."),
  name: z.string().min(1, "is empty").max(300, "is longer than 300 characters"),
};

const common = {
  scopes: ["admin"],
  bucket: "default",
  listeners: "admin",
  query: z.object({}),
} as const;

export function queuePauseRoutes({ queuePauses, clock }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      path: "/v1/queue/pauses",
      summary: "List the domains, providers, pools and addresses whose mail is paused",
      answers: { 200: pausesSchema },
      lastModifiedFrom: "always",
      body: null,
      async handle({ account: { key } }) {
        const shown = queuePauses
          .list()
          .filter(({ accountKey }) => accountKey === null || accountKey === key);
        return json(200, { data: shown.map((pause) => pauseView(pause)) });
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/queue/pause",
      summary: "Make no attempts for a domain, provider, pool or address, or change until when",
      answers: { 200: pauseSchema },
      refuses: ["validation_failed"],
      act: "queue.pause",
      auditFields: ["scope", "name", "until"],
      body: z.strictObject({
        ...paused,
        until: time.optional().describe("When it ends by itself; if left out, it lasts until it is ended."),
      }),
      async handle({ account, body: { until = null, ...wanted }, idempotent }) {
        const now = clock.now();
        const of = pauseOf(account, wanted);
        if (until !== null && until <= now) throw wrong("until", "is past; a pause must end in the future");
        const since = queuePauses.list().find((one) => isOf(one, of))?.since ?? now;
        const pause = { ...of, since, until };
        const reply = await idempotent(
          (writing) => writing.putQueuePause(pause, now),
          () => json(200, pauseView(pause)),
        );
        await queuePauses.reload();
        return reply;
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/queue/resume",
      summary: "End the pause of a domain, provider, pool or address",
      answers: { 204: null },
      refuses: ["resource_not_found", "validation_failed"],
      act: "queue.resume",
      auditFields: ["scope", "name"],
      body: z.strictObject(paused),
      async handle({ account, body, idempotent }) {
        const of = pauseOf(account, body);
        const reply = await idempotent(
          (writing) => writing.removeQueuePause(of),
          (removed) => {
            if (removed) return { status: 204 };
            throw new Refusal("resource_not_found", `The ${of.scope} ${of.name} is not paused.`);
          },
        );
        await queuePauses.reload();
        return reply;
      },
    }),
  ];
}

/** What is to be paused, its name as it is compared. Throws Refusal: validation_failed. */
function pauseOf({ key }: Account, { scope, name }: { scope: PauseScope; name: string }): PauseOf {
  if (scope === "provider") return { scope, accountKey: null, name: name.toLowerCase() };
  if (scope === "pool") return { scope, accountKey: key, name: name.toLowerCase() };
  const parsed = scope === "ip" ? parseHostAddress(name) : parseDomain(name);
  if (!parsed.ok) throw wrong("name", parsed.issue);
  return { scope, accountKey: null, name: parsed.value };
}

function isOf(pause: QueuePause, { scope, accountKey, name }: PauseOf): boolean {
  return pause.scope === scope && pause.accountKey === accountKey && pause.name === name;
}

function wrong(field: string, issue: string): Refusal {
  return new Refusal("validation_failed", `${field} ${issue}`, {
    errors: [{ field, code: "validation_failed", issue }],
  });
}

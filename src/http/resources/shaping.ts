// /v1/shaping, on the operator's socket only: how hard providers and domains are pushed, what holds there now and why, and
// the rules that the operator sets while the program runs. What the limits do is queue/shaping.ts; limits of accounts are
// another thing (limits.ts).
import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import { ruleFields, ruleName, tlsRefusal } from "../../config/shaping-file.ts";
import { Refusal } from "../../errors.ts";
import { shapingOrigins, type SetShapingRule } from "../../model/shaping.ts";
import { outboundTlsModes } from "../../model/tls.ts";
import { originOf, type LimiterNow, type RuleNow, type RuleState } from "../../queue/shaping-rules.ts";
import type { Explained } from "../../queue/shaping.ts";
import { timestamp } from "../../value-schemas.ts";
import { inputOf, viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields } from "../fields.ts";
import { listBody, namedPageOf, pageRequest } from "../paging.ts";
import { json, operatorRoute, route, type Route } from "../route.ts";
import { list } from "../view-fields.ts";

const from = z
  .strictObject({
    rule: z.string().describe("The rule that says it: of this name, of the domain's MX group, or default."),
    origin: z
      .enum(shapingOrigins)
      .describe(
        "set: `svc limits set`; shaping_file: outbound.shaping_file; built_in: the program's own table.",
      ),
  })
  .describe("Where the value comes from.");

const held = {
  name: z.string().describe("A provider, default, smart-host, or a domain."),
  connections: z.int().describe("Connections at once, from one sending address."),
  per_second: z
    .number()
    .nullable()
    .describe("Messages that are begun in a second, from one sending address; null: no limit."),
  messages_per_connection: z.int(),
  tls: z.enum(outboundTlsModes).nullable().describe("null: outbound.tls holds."),
  origin: z
    .enum(shapingOrigins)
    .nullable()
    .describe("The strongest origin of its own rule; null: it has none."),
  from: z.strictObject({
    connections: from,
    per_second: from,
    messages_per_connection: from,
    tls: from.nullable(),
  }),
  slowed: z.int().describe("How many sending addresses a receiver has slowed down there."),
};

const stateSchema = z.strictObject(held).meta({ id: "Shaping" });

const nowSchema = z.strictObject({
  group: z
    .string()
    .describe("Whose limits count: an MX group, or a domain with limits of its own within its MX group."),
  sending_ip: z.string().nullable().describe("null: the system chooses the address."),
  connections_open: z.int().describe("Connections that are open, idle ones included."),
  attempts: z.int().describe("Attempts that run."),
  attempts_limit: z.int().describe("How many may run now."),
  per_second: z.number().nullable().describe("Messages that may begin in a second now; null: no limit."),
  factor: z
    .number()
    .describe(
      "What is left of the limits: 1, all; halved at each refusal, a tenth comes back each minute, slower where less than a tenth is left.",
    ),
  next_in_seconds: z.number().describe("When the next message may begin, for the rate; 0: at once."),
  slowed_since: timestamp.nullable(),
  slowed_at: timestamp.nullable().describe("When a reply last slowed it down."),
  slowed_by: z.string().nullable().describe("That reply."),
});

const showSchema = z
  .strictObject({
    ...held,
    mx_group: z
      .string()
      .nullable()
      .describe("Of a domain: the provider, or the registered domain, of its MX hosts."),
    now: z.array(nowSchema).describe("What each sending address may do there now; a hundred at most."),
  })
  .meta({ id: "ShapingNow" });

const ruleSchema = z
  .strictObject({
    name: z.string(),
    connections: z.int().nullable(),
    per_second: z.number().nullable(),
    messages_per_connection: z.int().nullable(),
    tls: z.enum(outboundTlsModes).nullable(),
    updated_at: timestamp,
  })
  .meta({ id: "ShapingRule" });

const ruleView = viewOf(ruleSchema);

const finite = (value: number | null): number | null => (Number.isFinite(value) ? value : null);

const fromOf = ({ rule, origin }: Explained["tls" | "connections"]): z.input<typeof from> => ({
  rule,
  origin,
});

function stateView({ name, limits, slowed }: RuleState): z.input<typeof stateSchema> {
  const { connections, perSecond, messagesPerConnection, tls } = limits;
  return {
    name,
    connections: connections.value ?? 0,
    per_second: finite(perSecond.value),
    messages_per_connection: messagesPerConnection.value ?? 0,
    tls: tls.value,
    origin: originOf(name, limits),
    from: {
      connections: fromOf(connections),
      per_second: fromOf(perSecond),
      messages_per_connection: fromOf(messagesPerConnection),
      tls: tls.value === null ? null : fromOf(tls),
    },
    slowed,
  };
}

function nowView(state: LimiterNow): z.input<typeof nowSchema> {
  const { slowed } = state;
  return {
    group: state.group,
    sending_ip: state.address,
    connections_open: state.open,
    attempts: state.taken,
    attempts_limit: state.limit,
    per_second: finite(state.perSecond),
    factor: Math.round(state.factor * 1000) / 1000,
    next_in_seconds: state.waitMs / 1000,
    slowed_since: isoTimeOrNull(slowed?.since ?? null),
    slowed_at: slowed && isoTime(slowed.at),
    slowed_by: slowed && slowed.reply,
  };
}

const showView = (state: RuleNow): z.input<typeof showSchema> => ({
  ...stateView(state),
  mx_group: state.mxGroup,
  now: state.now.map(nowView),
});

const change = z.strictObject({
  connections: ruleFields.connections.nullable().optional().describe("null: the rule says nothing of it."),
  per_second: ruleFields.per_second.nullable().optional(),
  messages_per_connection: ruleFields.messages_per_connection.nullable().optional(),
  tls: ruleFields.tls.nullable().optional(),
});
const changeInput = inputOf(change);

export function shapingRoutes({ shapingRules, clock }: RouteDeps): Route[] {
  const one = { ...operatorRoute, path: "/v1/shaping/{name}" };
  return [
    route({
      ...operatorRoute,
      method: "GET",
      path: "/v1/shaping",
      summary: "List how hard providers and domains are pushed",
      lastModifiedFrom: "always",
      answers: { 200: list(stateSchema) },
      query: z.object(pageFields()),
      body: null,
      async handle({ query }) {
        return json(200, listBody(namedPageOf(shapingRules.list(), pageRequest(query)), stateView));
      },
    }),
    route({
      ...one,
      method: "GET",
      summary: "Get the limits of a provider or a domain, and what holds there now",
      lastModifiedFrom: "always",
      answers: { 200: showSchema },
      refuses: ["validation_failed"],
      body: null,
      async handle(call) {
        return json(200, showView(await shapingRules.show(nameOf(call.param("name")))));
      },
    }),
    route({
      ...one,
      method: "PATCH",
      summary: "Set limits of a provider or a domain, or its TLS; they hold at once",
      answers: { 200: ruleSchema },
      refuses: ["validation_failed"],
      auditFields: ["connections", "per_second", "messages_per_connection", "tls"],
      body: change,
      async handle(call) {
        const name = nameOf(call.param("name"));
        const refusal = call.body.tls == null ? null : tlsRefusal(name);
        if (refusal !== null) throw invalid("tls", `of ${name} is not set here: ${refusal}`);
        const at = clock.now();
        const none = { name, connections: null, perSecond: null, messagesPerConnection: null, tls: null };
        const reply = await call.idempotent(
          (writing) => writing.setShapingRule(name, changeInput(call.body), at),
          (rule: SetShapingRule | null) => json(200, ruleView(rule ?? { ...none, updatedAt: at })),
        );
        await shapingRules.reload();
        return reply;
      },
    }),
    route({
      ...one,
      method: "DELETE",
      summary:
        "Unset the limits of a provider or a domain: the shaping file and the built-in table hold again",
      answers: { 204: null },
      refuses: ["validation_failed", "resource_not_found"],
      body: null,
      async handle(call) {
        const name = nameOf(call.param("name"));
        const reply = await call.idempotent(
          (writing) => writing.unsetShapingRule(name),
          (done) => {
            if (!done) throw new Refusal("resource_not_found", `Nothing is set for ${name}.`);
            return { status: 204 };
          },
        );
        await shapingRules.reload();
        return reply;
      },
    }),
  ];
}

/** The name of a rule in its one form. */
function nameOf(text: string): string {
  const name = ruleName.safeParse(text);
  if (name.success) return name.data;
  throw invalid("name", `is not ${name.error.issues[0]?.message ?? "a name"}`);
}

function invalid(field: string, issue: string): Refusal {
  return new Refusal("validation_failed", `${field} ${issue}`, {
    errors: [{ field, code: "validation_failed", issue }],
  });
}

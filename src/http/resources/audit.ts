// GET /v1/audit, on the operator's socket only: who did what, from where, in all accounts, newest first.
import { z } from "zod";
import { isoTime } from "../../clock.ts";
import type { Cell } from "../../csv.ts";
import { Refusal } from "../../errors.ts";
import { actorKinds, type AuditRecord } from "../../model/audit.ts";
import { ipAddress, timestamp } from "../../value-schemas.ts";
import { csvReply } from "../csv.ts";
import { viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields, present, textFilter, time } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import { list } from "../view-fields.ts";

export const auditRecordSchema = z
  .strictObject({
    at: timestamp,
    account: z.string().nullable().describe("The account's name; null for an action on the whole appliance."),
    actor: z.strictObject({
      kind: z.enum(actorKinds),
      name: z.string().nullable().describe("The operator's name, or the id of the key or credential."),
    }),
    source_ip: z
      .union([ipAddress, z.cidrv6()])
      .nullable()
      .describe(
        "Null for a request over the admin socket. For an IPv6 source, its /64 if the entry counts several.",
      ),
    request_id: z.string().nullable(),
    action: z.string().meta({ examples: ["keys.create"] }),
    target: z.string().nullable().describe("The id or name of the resource acted on."),
    times: z.int().min(1).describe("How often it happened, if the entry counts several."),
    detail: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "AuditRecord" });
export const auditListSchema = list(auditRecordSchema);

const auditView = viewOf(auditRecordSchema, {
  actor: ({ actorKind, actor }: AuditRecord) => ({ kind: actorKind, name: actor }),
});

const filters = z.object({
  account: textFilter.describe("The account's name."),
  action: textFilter.describe("`keys.revoke`, or `keys.*` for all actions that begin with `keys.`."),
  actor: textFilter.describe("The operator's name, or the id of a key or credential."),
  target: textFilter,
  since: time.optional(),
  until: time.optional(),
  ...pageFields(100, 1000),
});

export function auditRoutes({ store }: RouteDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/audit",
      lastModifiedFrom: "always",
      summary: "List the audit log of all accounts, newest first",
      answers: { 200: { "application/json": auditListSchema, "text/csv": z.string() } },
      scopes: ["admin"],
      bucket: "default",
      listeners: "admin",
      query: filters,
      body: null,
      async handle({ query, prefers }) {
        const { account, action, actor, target, since, until } = query;
        const named = account === undefined ? undefined : await store.accountByName(account);
        if (named === null)
          throw new Refusal("invalid_request", `There is no account "${account}".`, { field: "account" });
        const filter = present({ accountKey: named?.key, action, actor, target, since, until });
        if (prefers("text/csv"))
          return csvReply("audit", csvColumns, (page) => store.listAudit(filter, page), csvCells);
        return json(200, listBody(await store.listAudit(filter, pageRequest(query)), auditView));
      },
    }),
  ];
}

const csvColumns = [
  "at",
  "account",
  "actor_kind",
  "actor",
  "source_ip",
  "request_id",
  "action",
  "target",
  "times",
  "detail",
];

function csvCells(record: AuditRecord): Cell[] {
  const { account, actorKind, actor, sourceIp, requestId, action, target, times, detail } = record;
  const text = JSON.stringify(detail);
  return [isoTime(record.at), account, actorKind, actor, sourceIp, requestId, action, target, times, text];
}

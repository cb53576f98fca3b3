// GET /v1/audit, on the operator's socket only: who did what, from where, in all accounts, newest first.
import { z } from "zod";
import { isoTime } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import type { AuditRecord } from "../../model/audit.ts";
import { csvReply } from "../csv.ts";
import type { Cell } from "../../csv.ts";
import { pageFields, present, textFilter, time } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { auditListShape, type auditRecordShape } from "../shapes/audit.ts";

const filters = z.object({
  account: textFilter.describe("The account's name."),
  action: textFilter.describe("`keys.revoke`, or `keys.*` for all that begin so."),
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
      changes: "always",
      summary: "Lists the audit log of all accounts, newest first",
      answers: { 200: { "application/json": auditListShape, "text/csv": z.string() } },
      scopes: ["admin"],
      bucket: "default",
      doors: "admin",
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
        return json(200, listBody(await store.listAudit(filter, pageRequest(query)), auditBody));
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

function auditBody(record: AuditRecord): z.input<typeof auditRecordShape> {
  return {
    at: isoTime(record.at),
    account: record.account,
    actor: { kind: record.actorKind, name: record.actor },
    source_ip: record.sourceIp,
    request_id: record.requestId,
    action: record.action,
    target: record.target,
    times: record.times,
    detail: record.detail,
  };
}

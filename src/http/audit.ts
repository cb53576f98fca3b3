// What the audit log records of a request: every success of the operator's socket, and of a key on a route that only
// admins may use, where something changes. No route asks for it: the row is made of the route and its answer, and is
// written with the effect (`call.idempotent`), or behind it where the handler writes by itself. Of a body it has the names
// of its members, and the values of those that the route says may be read for months.
import type { AuditEntry } from "../model/audit.ts";
import type { Exchange } from "./exchange.ts";
import type { Reply, Route } from "./route.ts";

/** Makes the row of an answer; null for a request that is none of the log's business. */
export function actOf(x: Exchange, now: number): ((reply: Reply) => AuditEntry) | null {
  if (x.match.kind !== "route" || !x.principal) return null;
  const { route } = x.match;
  const { principal } = x;
  if (route.method === "GET" || route.act === null) return null;
  if (principal.kind === "key" && (route.scopes === "open" || route.scopes[0] !== "admin")) return null;
  const action = route.act ?? actionOf(route);
  return (reply) => ({
    at: now,
    accountKey: route.applianceWide ? null : principal.account.key,
    actorKind: principal.kind,
    actor: principal.kind === "key" ? principal.key.id : principal.name,
    sourceIp: principal.kind === "key" ? x.ip : null,
    requestId: x.id,
    action,
    target: targetOf(x, route, reply),
    times: 1,
    detail: detailOf(x.json, route.auditFields ?? []),
  });
}

/** `webhooks.create`, `keys.revoke`, `domains.dkim.rotate`, `ip_pools.update`. */
function actionOf({ method, path }: Route): string {
  const parts = path.split("/").slice(2);
  const words = parts
    .filter((part) => !part.startsWith("{"))
    .join(".")
    .replaceAll("-", "_");
  if (method === "PATCH") return `${words}.update`;
  if (method === "DELETE") return `${words}.delete`;
  return parts.some((part) => part.startsWith("{")) ? words : `${words}.create`;
}

/** What the path names; of what was created, the name or id that it got. */
function targetOf(x: Exchange, route: Route, reply: Reply): string | null {
  const named = Object.values(x.params).map((part) => decodeURIComponent(part));
  if (named.length > 0) return named.join("/");
  if (typeof reply.body !== "string" || reply.body === "") return null;
  const made = (JSON.parse(reply.body) as Record<string, unknown>)[route.locatedBy ?? "id"];
  return typeof made === "string" ? made : null;
}

const longestDetail = 2000;

function detailOf(json: unknown, shows: readonly string[]): Record<string, unknown> {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return {};
  const fields = Object.keys(json);
  if (fields.length === 0) return {};
  const shown = Object.entries(json).filter(([name]) => shows.includes(name));
  const detail = { fields, ...Object.fromEntries(shown) };
  return JSON.stringify(detail).length > longestDetail ? { fields } : detail;
}

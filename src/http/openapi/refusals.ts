// Which refusals a route can be answered with: those of the middleware that its traits call for (middleware.ts), and those that
// it names as its own.
import { errorCatalog, type ErrorCode } from "../../errors.ts";
import { takesKey } from "../idempotency.ts";
import type { ListenerKind, Route } from "../route.ts";

/** The codes by status, in the order of the statuses. */
export function refusalsOf(route: Route, listener: ListenerKind): Map<number, ErrorCode[]> {
  const codes = new Set<ErrorCode>([...ofMiddleware(route, listener), ...(route.refuses ?? [])]);
  const byStatus = Map.groupBy(codes, (code) => errorCatalog[code].status);
  return new Map([...byStatus].toSorted(([a], [b]) => a - b));
}

/** What stands against a request before its handler runs, or wherever a handler is. */
export function ofMiddleware(route: Route, listener: ListenerKind): ErrorCode[] {
  const keyed = listener === "public" && route.scopes !== "open";
  return [
    "invalid_request", // HTTPS, headers, query
    "method_not_allowed",
    ...(keyed ? ofKeys : []),
    ...(listener === "public" ? (["rate_limit_exceeded"] as const) : []),
    ...(listener === "admin" ? (["resource_not_found"] as const) : []), // the account that X-Svc-Account names
    ...(takesKey(route) ? (["duplicate_idempotency_key"] as const) : []),
    ...(route.body ? ofBodies : []),
    "internal_error",
    ...(route.upstream ? (["upstream_error"] as const) : []),
    "service_overloaded",
    ...(listener === "public" && route.scopes !== "open" ? (["maintenance"] as const) : []),
    "upstream_timeout",
  ];
}

const ofKeys = [
  "invalid_api_key",
  "scope_insufficient",
  "key_disabled",
  "ip_not_allowed",
  "source_ip_locked",
] as const;

const ofBodies = ["message_too_large", "unsupported_media_type", "validation_failed"] as const;

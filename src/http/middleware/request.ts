// The request but its body: its target, its headers, its query.
import { Refusal, type Problem } from "../../errors.ts";
import { shapeWords } from "../../errors/zod-messages.ts";
import { checkBodyHeaders, hasBody } from "../body.ts";
import { headerOf, routeOf } from "../exchange.ts";
import { problemsOf } from "../fields.ts";
import { readIdempotencyKey, takesKey } from "../idempotency.ts";
import type { Middleware } from "./types.ts";

export const apiVersion = "2026-11";

export const checkHeaders: Middleware = (x) => {
  if (x.match.kind === "target")
    throw new Refusal("invalid_request", "The request target is not a path of this service.");
  if (x.match.kind === "malformed")
    throw new Refusal("invalid_request", "The path is not valid percent-encoded UTF-8.");
  if (x.req.httpVersionMajor < 1) throw new Refusal("invalid_request", "The request is not HTTP/1.1.");
  if (x.req.headers.host === undefined && x.req.httpVersion === "1.1") {
    throw new Refusal("invalid_request", "The request has no Host header.", { field: "Host" }); // RFC 9112 §3.2
  }
  const expectation = headerOf(x, "expect");
  if (expectation !== undefined && expectation.toLowerCase() !== "100-continue") {
    throw new Refusal("invalid_request", "Expect may be 100-continue only.", { field: "Expect" }); // RFC 9110 §10.1.1
  }
  const version = headerOf(x, "x-api-version");
  if (version !== undefined && version !== apiVersion) {
    throw new Refusal("invalid_request", "This X-API-Version does not exist.", {
      field: "X-API-Version",
      supported_versions: [apiVersion],
    });
  }
  const route = routeOf(x);
  if (route && takesKey(route)) readIdempotencyKey(x.req.headers["idempotency-key"]);
  if (route?.body && (hasBody(x.req) || !route.bodyOptional)) checkBodyHeaders(x.req);
};

export const readQuery: Middleware = (x) => {
  const route = routeOf(x);
  if (!route) return;
  const known = route.query.shape;
  const given: Record<string, string> = {};
  for (const name of new Set(x.search.keys())) {
    if (Object.hasOwn(known, name)) given[name] = x.search.getAll(name).join(",");
    else if (x.listener === "admin")
      throw new Refusal("invalid_request", `${name} is not a parameter of this path.`, { field: name });
  }
  const parsed = route.query.safeParse(given, { error: shapeWords });
  if (!parsed.success) {
    const errors = problemsOf(parsed.error).map((problem): Problem => ({
      ...problem,
      code: "invalid_request",
    }));
    throw new Refusal(
      "invalid_request",
      `${errors[0]?.field ?? "The query"} ${errors[0]?.issue ?? "is not acceptable"}.`,
      { errors },
    );
  }
  x.query = parsed.data;
};

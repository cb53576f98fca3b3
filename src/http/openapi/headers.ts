// The headers of answers, each described once, and those that a request may carry.
import { rateTable } from "../../access/buckets.ts";
import { apiVersion } from "../middleware/request.ts";
import type { ListenerKind } from "../route.ts";
import type { Json } from "./schemas.ts";

interface Header {
  description: string;
  required: boolean;
  schema: Json;
}

const header = (description: string, schema: Json, required = true): Header => ({
  description,
  required,
  schema,
});

/** By name, as answers carry them. */
const answerHeaders: Record<string, Header> = {
  "X-Request-Id": header("Identifies the request in the server's log; also in the body of an error.", {
    type: "string",
    pattern: "^req_[0-7][0-9a-hjkmnp-tv-z]{25}$",
  }),
  "X-API-Version-Used": header("The version of the API that processed the request.", {
    type: "string",
    enum: [apiVersion],
  }),
  "X-RateLimit-Limit": header("The burst capacity of the bucket.", { type: "integer", minimum: 0 }),
  "X-RateLimit-Remaining": header("The tokens left in the bucket.", { type: "integer", minimum: 0 }),
  "X-RateLimit-Reset": header("When the bucket is full again, in seconds since 1970.", {
    type: "integer",
    minimum: 0,
  }),
  "X-RateLimit-Bucket": header("The bucket that the request took its token from.", {
    type: "string",
    examples: Object.keys(rateTable).slice(0, 1),
  }),
  "Last-Modified": header("When anything that the answer shows last changed; an HTTP date.", {
    type: "string",
  }),
  Location: header("The path of the created resource.", { type: "string" }),
  "Idempotency-Replayed": header(
    "The answer was stored under this Idempotency-Key; the request was not executed again.",
    { type: "string", enum: ["true"] },
    false,
  ),
  "WWW-Authenticate": header("Bearer, and the realm.", { type: "string" }),
  Allow: header("The methods that the path supports.", { type: "string", examples: ["GET, HEAD, POST"] }),
  "Retry-After": header("Seconds to wait.", { type: "integer", minimum: 1 }),
};

const always = ["X-Request-Id", "X-API-Version-Used"];
const limits = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Bucket"];

/** Not all that the operator makes has a path of its own. */
export function headersFor(listener: ListenerKind): Record<string, Header> {
  const { Location, ...others } = answerHeaders;
  return listener === "public" || !Location
    ? answerHeaders
    : { ...others, Location: { ...Location, required: false } };
}

/** References to these headers and to those that every answer carries; on the operator's socket nothing is limited. */
export function headersOf(listener: ListenerKind, names: readonly string[]): Json {
  const all = [...always, ...(listener === "public" ? limits : []), ...names];
  return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

export const requestHeaders: Record<string, Json> = {
  ApiVersion: {
    name: "X-API-Version",
    in: "header",
    description: "Pins the version of the API; the default is the newest.",
    schema: { type: "string", enum: [apiVersion] },
  },
  IfModifiedSince: {
    name: "If-Modified-Since",
    in: "header",
    description:
      "The Last-Modified of an earlier answer. If nothing has changed since, the answer is 304 and costs no token.",
    schema: { type: "string" },
  },
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "Unique for each operation, for example a UUID. For 24 hours the same request with the same key gets the stored answer and is not executed again; a different request with the key is refused with 409.",
    schema: { type: "string", pattern: "^[\\x20-\\x7e]{1,255}$" },
  },
  Account: {
    name: "X-Svc-Account",
    in: "header",
    description: "The name of the account; the default is `default`.",
    schema: { type: "string" },
  },
  Operator: {
    name: "X-Svc-Operator",
    in: "header",
    description: "The name of the operator, for the audit log.",
    schema: { type: "string", maxLength: 64 },
  },
};

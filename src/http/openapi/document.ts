// The API's description (OpenAPI 3.1), made of the routes that serve it: nothing in it is written twice. What an operation
// holds: operation.ts; how answers look: responses.ts; shapes as JSON Schema: schemas.ts.
import { keyScopes } from "../../model/api-key.ts";
import { orList } from "../../word-list.ts";
import { apiVersion } from "../middleware/request.ts";
import type { ListenerKind, Route } from "../route.ts";
import { headersFor, requestHeaders } from "./headers.ts";
import { operationIdOf, operationOf } from "./operation.ts";
import { createResponses } from "./responses.ts";
import { createSchemas, type Json } from "./schemas.ts";
import { tagList, tagOf } from "./tags.ts";
import { webhooksOf } from "./webhooks.ts";

export interface DescribedListener {
  listener: ListenerKind;
  /** Base address without a trailing slash. */
  publicUrl: string;
}

/** Throws where two operations or two shapes would share a name. */
export function createDocument(routes: readonly Route[], { listener, publicUrl }: DescribedListener): Json {
  const shown = routes.filter((route) => route.listeners === "both" || route.listeners === listener);
  const schemas = createSchemas();
  const responses = createResponses(listener, schemas);
  const twice = [...Map.groupBy(shown, operationIdOf)].find(([, own]) => own.length > 1);
  if (twice) throw new Error(`two operations of the API are called ${twice[0]}`);

  const byPath = Map.groupBy(shown, ({ path }) => path);
  const paths = Object.fromEntries(
    [...byPath].map(([path, own]) => [
      path,
      Object.fromEntries(
        own.map((route) => [route.method.toLowerCase(), operationOf(route, listener, schemas, responses)]),
      ),
    ]),
  );
  const webhooks = listener === "public" ? webhooksOf(schemas) : {};
  const usedHeaders = new Set(
    JSON.stringify([paths, responses.named()]).match(/(?<=components\/headers\/)[\w-]+/g),
  );
  const usedParameters = new Set(JSON.stringify(paths).match(/(?<=components\/parameters\/)\w+/g));
  return {
    openapi: "3.1.0",
    info: { title: "svc", version: apiVersion, license: { name: "MIT", identifier: "MIT" }, description },
    servers: [{ url: listener === "public" ? publicUrl : "/" }],
    tags: tagList(new Set(shown.map(({ path }) => tagOf(path)))),
    paths,
    webhooks,
    components: {
      ...(listener === "public"
        ? {
            securitySchemes: {
              apiKey: { type: "http", scheme: "bearer", description: "An API key: svc_live_… or svc_test_…" },
            },
          }
        : {}),
      parameters: only(requestHeaders, usedParameters),
      headers: only(headersFor(listener), usedHeaders),
      responses: responses.named(),
      schemas: schemas.named(),
    },
  };
}

function only(all: Record<string, unknown>, used: ReadonlySet<string>): Json {
  return Object.fromEntries(Object.entries(all).filter(([name]) => used.has(name)));
}

const description = `Sends email, reports its delivery, and keeps the suppression list.

**Keys.** Every request to /v1 carries \`Authorization: Bearer <key>\`. A key has one scope: ${orList(keyScopes)}, which may do everything. Mail of a test key never leaves the machine.

**Bodies** are JSON in UTF-8. Times are ISO 8601 in UTC with milliseconds. An unknown field is refused; an unknown query parameter is ignored.

**Errors.** Branch on \`code\`, never on titles or details. 401, 403 and 429 have the envelope form, unless Accept names application/problem+json; all others are problem details (RFC 9457). A 422 lists every problem of the request at once in \`errors\`.

**Retries.** Every POST, PATCH and DELETE takes an Idempotency-Key. Retry on 429 and 503 after Retry-After, and on 500, 502 and 504 with a growing delay, with the same key, at most 5 times; do not retry on any other 4xx.

**Rate limits** are token buckets, one for each key and bucket; every answer carries the state of the bucket that it drew on.

**Lists** are \`{data, has_more, next_cursor}\`. A page may have fewer rows than \`limit\`, even none, while has_more is true.

**HEAD** is GET without the body.`;

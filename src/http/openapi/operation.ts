// One route as an operation: its name, parameters, body, answers, and who may call it how often.
import { z } from "zod";
import { takesKey } from "../idempotency.ts";
import type { ListenerKind, Route } from "../route.ts";
import { contentOf, pascal, readsConditionally, type Responses } from "./responses.ts";
import type { Json, Schemas } from "./schemas.ts";
import { tagOf } from "./tags.ts";

export function operationOf(
  route: Route,
  listener: ListenerKind,
  schemas: Schemas,
  responses: Responses,
): Json {
  const { scopes, summary } = route;
  const keyed = listener === "public" && scopes !== "open";
  return {
    operationId: operationIdOf(route),
    tags: [tagOf(route.path)],
    summary,
    ...(keyed ? { description: `Scope: ${[...new Set([...scopes, "admin"])].join(" or ")}.` } : {}),
    parameters: parametersOf(route, listener, schemas),
    ...(route.body ? { requestBody: requestBodyOf(route, schemas) } : {}),
    responses: responses.of(route),
    security: keyed ? [{ apiKey: [] }] : [],
    ...(keyed ? { "x-required-scope": scopes[0], "x-rate-limit-bucket": route.bucket } : {}),
  };
}

function parametersOf(route: Route, listener: ListenerKind, schemas: Schemas): Json[] {
  const path = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const { properties = {}, required = [] } = schemas.of(route.query, "input") as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  const query = Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    ...(description === undefined ? {} : { description }),
    ...(required.includes(name) ? { required: true } : {}),
    ...(schema["type"] === "array" ? { explode: false } : {}),
    schema,
  }));
  const headers = [
    "ApiVersion",
    ...(readsConditionally(route) ? ["IfModifiedSince"] : []),
    ...(takesKey(route) ? ["IdempotencyKey"] : []),
    ...(listener === "admin" ? ["Account", "Operator"] : []),
  ].map((name) => ({ $ref: `#/components/parameters/${name}` }));
  return [...path, ...query, ...headers];
}

function requestBodyOf(route: Route, schemas: Schemas): Json {
  const shape = route.requestSchema ?? route.body ?? z.never();
  return {
    required: route.bodyOptional !== true,
    content: { "application/json": { schema: schemas.of(shape, "input") } },
  };
}

/**
 * `listMessages`, `getMessage`, `cancelMessage`, `rotateWebhookSecret`: a verb and the words of the path. A segment that
 * a parameter follows stands in the singular; what comes last of a POST to one thing is what is done to it.
 */
export function operationIdOf(route: Route): string {
  return route.alias === true ? `${nameOf(route)}Alias` : nameOf(route);
}

function nameOf(route: Route): string {
  const segments = route.path
    .replace(/^\/v1\//, "/")
    .split("/")
    .slice(1);
  const nouns = segments.flatMap((segment, i) =>
    segment.startsWith("{") ? [] : [pascal(segments[i + 1]?.startsWith("{") ? singular(segment) : segment)],
  );
  const [last = ""] = segments.slice(-1);
  const things = last.startsWith("{");
  if (route.method !== "POST") {
    const verb = route.method === "GET" ? (isList(route) ? "list" : "get") : verbs[route.method];
    return verb + nouns.join("");
  }
  if (segments.length === 1 || things || Object.hasOwn(route.answers, 201))
    return `create${[...nouns.slice(0, -1), singular(nouns.at(-1) ?? "")].join("")}`;
  const [verb = "", ...objects] = last.split("_");
  return verb + [...nouns.slice(0, -1), ...objects.map(pascal)].join("");
}

const verbs = { PATCH: "update", DELETE: "delete" } as const;

function singular(noun: string): string {
  return noun.replace(/s$/, "");
}

function isList(route: Route): boolean {
  return Object.values(route.answers).some((answer) =>
    Object.values(contentOf(answer)).some((shape) => shape.meta()?.id?.endsWith("List")),
  );
}

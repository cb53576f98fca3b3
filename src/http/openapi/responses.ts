// Answers as the description shows them: successes with their shapes, refusals with the codes that can stand in them, and
// the headers of each. What several routes are refused with alike stands once under components/responses.
import { STATUS_CODES } from "node:http";
import { z } from "zod";
import { errorCatalog, type ErrorCode } from "../../errors.ts";
import { takesKey } from "../idempotency.ts";
import type { Answer, ListenerKind, Route } from "../route.ts";
import { errorEnvelopeSchema, problemSchema } from "../problem.ts";
import { headersOf } from "./headers.ts";
import { ofMiddleware, refusalsOf } from "./refusals.ts";
import type { Json, Schemas } from "./schemas.ts";

export interface Responses {
  /** Every answer of a route by its status. */
  of(route: Route): Json;
  /** The shared ones met so far. */
  named(): Record<string, Json>;
}

export function createResponses(listener: ListenerKind, schemas: Schemas): Responses {
  const named = new Map<string, Json>();

  const refusal = (route: Route, status: number, codes: ErrorCode[]): Json => {
    const guarded = ofMiddleware(route, listener);
    const [first] = codes;
    const own = codes.some((code) => !guarded.includes(code));
    const response = refusalResponse(listener, schemas, status, codes);
    if (!first || (own && codes.length > 1)) return response;
    const name = codes.length === 1 ? pascal(first) : pascal(STATUS_CODES[status] ?? String(status));
    named.set(name, response);
    return { $ref: `#/components/responses/${name}` };
  };

  return {
    of(route) {
      const successes = Object.entries(route.answers).map(([status, answer]) => [
        status,
        success(listener, schemas, route, Number(status), answer),
      ]);
      const refusals = [...refusalsOf(route, listener)].map(([status, codes]) => [
        String(status),
        refusal(route, status, codes),
      ]);
      const unchanged = readsConditionally(route) ? [["304", notModified(listener)]] : [];
      return Object.fromEntries([...successes, ...unchanged, ...refusals]) as Json;
    },
    named: () => Object.fromEntries([...named].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

function success(
  listener: ListenerKind,
  schemas: Schemas,
  route: Route,
  status: number,
  answer: Answer,
): Json {
  const names = [
    ...(isLocated(route, status, answer) ? ["Location"] : []),
    ...(takesKey(route) ? ["Idempotency-Replayed"] : []),
    ...(route.method === "GET" ? ["Last-Modified"] : []),
  ];
  const content = Object.entries(contentOf(answer)).map(([type, shape]) => [
    type,
    { schema: schemas.of(shape, "output") },
  ]);
  return {
    description: successWords[status] ?? STATUS_CODES[status] ?? "",
    headers: headersOf(listener, names),
    ...(content.length > 0 ? { content: Object.fromEntries(content) as Json } : {}),
  };
}

/** As conditional.ts answers. */
export function readsConditionally(route: Route): boolean {
  return route.method === "GET" && route.lastModifiedFrom !== "always";
}

function notModified(listener: ListenerKind): Json {
  return {
    description: "Nothing has changed since If-Modified-Since.",
    headers: headersOf(listener, ["Last-Modified"]),
  };
}

const successWords: Record<number, string> = {
  200: "OK.",
  201: "Created.",
  202: "Accepted; done in the background.",
  204: "Done; there is no body.",
};

export function contentOf(answer: Answer): Record<string, z.ZodType> {
  if (answer === null) return {};
  return answer instanceof z.ZodType ? { "application/json": answer } : answer;
}

/** As app.ts names what was made. */
function isLocated(route: Route, status: number, answer: Answer): boolean {
  return (
    (status === 201 || status === 202) &&
    answer instanceof z.ZodObject &&
    Object.hasOwn(answer.shape, route.locatedBy ?? "id")
  );
}

function refusalResponse(listener: ListenerKind, schemas: Schemas, status: number, codes: ErrorCode[]): Json {
  const ofCodes = { type: "string", enum: codes };
  const problem = {
    schema: { allOf: [schemas.of(problemSchema, "output"), { properties: { code: ofCodes } }] },
  };
  const envelope = {
    schema: {
      allOf: [
        schemas.of(errorEnvelopeSchema, "output"),
        { properties: { error: { properties: { code: ofCodes } } } },
      ],
    },
  };
  const enveloped = status === 401 || status === 403 || status === 429;
  return {
    description: codes.map((code) => `\`${code}\`: ${errorCatalog[code].meaning}`).join("\n\n"),
    headers: headersOf(listener, headersOfRefusal[status] ?? []),
    content: {
      ...(enveloped ? { "application/json": envelope } : {}),
      "application/problem+json": problem,
    },
  };
}

/** As problem.ts writes them. */
const headersOfRefusal: Record<number, string[]> = {
  401: ["WWW-Authenticate"],
  405: ["Allow"],
  429: ["Retry-After"],
  503: ["Retry-After"],
};

/** `ResourceNotFound` of `resource_not_found`. */
export function pascal(words: string): string {
  return words
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

// The answer to what never became a request: not HTTP, too late, too large, or one connection too many. It has the form and the
// headers of every other answer, and counts as a request without a key.
import type { Buckets } from "../access/buckets.ts";
import type { Clock } from "../clock.ts";
import { Refusal } from "../errors.ts";
import type { IdMint } from "../ids.ts";
import { strictTransport } from "./app.ts";
import { rawResponse } from "./listener.ts";
import { emptyBucket } from "./middleware/rates.ts";
import { apiVersion } from "./middleware/request.ts";
import { renderProblem } from "./problem.ts";

export interface MalformedDeps {
  buckets: Pick<Buckets, "takeSource">;
  clock: Clock;
  mint: IdMint;
  publicUrl: string;
  hasTls: boolean;
}

/** The function gives the whole response, to be written to the socket. */
export function createMalformed({
  buckets,
  clock,
  mint,
  publicUrl,
  hasTls,
}: MalformedDeps): (status: number, ip: string) => string {
  return (status, ip) => {
    const requestId = mint("req", clock.now());
    const limit = buckets.takeSource("unauthenticated", ip);
    const refusal = limit.allowed ? refusalOfStatus(status) : emptyBucket(limit);
    const reply = renderProblem(refusal, {
      requestId,
      path: "",
      publicUrl,
      acceptsProblem: limit.allowed,
      status: limit.allowed ? status : refusal.status,
    });
    const headers = {
      ...reply.headers,
      "x-request-id": requestId,
      "x-api-version-used": apiVersion,
      "x-content-type-options": "nosniff",
      ...(hasTls ? { "strict-transport-security": strictTransport } : {}),
      "x-ratelimit-limit": String(limit.limit),
      "x-ratelimit-remaining": String(limit.remaining),
      "x-ratelimit-reset": String(limit.resetAt),
      "x-ratelimit-bucket": limit.bucket,
    };
    return rawResponse(reply.status, headers, reply.body);
  };
}

function refusalOfStatus(status: number): Refusal {
  if (status === 503) return new Refusal("service_overloaded", "There are too many connections right now.");
  return new Refusal("invalid_request", malformedText[status] ?? "The request is not valid HTTP/1.1.");
}

const malformedText: Record<number, string> = {
  408: "The request did not arrive in time.",
  431: "The request's header is too large.",
};

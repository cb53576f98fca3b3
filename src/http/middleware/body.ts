// The body of a request: read into memory that is shared out, parsed, answered from an earlier request with its
// Idempotency-Key, and validated by the schema of its route.
import { Refusal } from "../../errors.ts";
import { shapeWords } from "../../errors/zod-messages.ts";
import { idempotencyKeptMs } from "../../model/idempotency.ts";
import { announcedLength, fingerprintOf, hasBody, readBody, readJson } from "../body.ts";
import { handlerTimeoutMs, within } from "../deadline.ts";
import { accountOf, routeOf, type Exchange } from "../exchange.ts";
import { problemsOf } from "../fields.ts";
import { checkFingerprint, readIdempotencyKey, replay, takesKey } from "../idempotency.ts";
import { largeBytes, type LargeBody } from "../large-bodies.ts";
import type { BodyKind } from "../large-body-thread.ts";
import type { Middleware, MiddlewareDeps } from "./types.ts";

/** No request that can be granted comes near: 1,000 suppressions of three fields are 6,000. */
const mostValues = 20_000;
/** More rows of a refusal do not help, and would make a small request's answer a large one. */
const mostProblems = 1000;

export const readRequestBody: Middleware = async (x, deps) => {
  const route = routeOf(x);
  if (!route?.body || (route.bodyOptional && !hasBody(x.req))) return;
  const length = announcedLength(x.req);
  const entered = x.listener === "admin" ? null : deps.bodies.enter(accountOf(x).key, length);
  const room = entered instanceof Promise ? await entered : entered;
  if (room) x.cleanup.push(() => room.release());
  x.raw = await readBody(x.req, x.res, room);
};

export const parseJson: Middleware = (x, deps) => {
  const route = routeOf(x);
  if (!route?.body) return;
  const most = route.mostValues ?? mostValues;
  if (x.raw && x.raw.length > largeBytes) return handOver(x, x.raw, most, deps);
  x.json = x.raw === null ? {} : readJson(x.raw, most);
};

/** The body leaves the loop, and what is done with its bytes is done where they are. */
async function handOver(x: Exchange, raw: Buffer, most: number, deps: MiddlewareDeps): Promise<void> {
  const route = routeOf(x);
  const named = route && takesKey(route) && x.req.headers["idempotency-key"] !== undefined;
  x.raw = null;
  x.large = await deps.largeBodies.open(raw, {
    mostValues: most,
    kept: route?.sends ?? null,
    named: named ? { method: x.method, path: x.path } : null,
  });
  x.cleanup.push(x.large.drop);
  x.json = x.large.json;
}

export const replayIdempotent: Middleware = async (x, deps) => {
  const route = routeOf(x);
  const key = route && takesKey(route) ? readIdempotencyKey(x.req.headers["idempotency-key"]) : null;
  if (key === null) return;
  const account = accountOf(x);
  const test = x.principal?.kind === "key" && x.principal.key.test;
  const fingerprint = x.large?.fingerprint ?? fingerprintOf(x.method, x.path, x.raw ?? Buffer.alloc(0));
  const mine = deps.inFlight.enter(`${account.key}:${test}:${key}`);
  x.cleanup.push(
    typeof mine === "function"
      ? mine
      : await within(deps.clock, route?.timeoutMs ?? handlerTimeoutMs, mine, (leave) => leave()),
  );
  const stored = await deps.store.idempotent(account.key, test, key, deps.clock.now() - idempotencyKeptMs);
  if (stored) {
    checkFingerprint(stored.fingerprint, fingerprint);
    return replay(stored);
  }
  x.idempotency = { key, fingerprint };
};

export const validateBody: Middleware = async (x, deps) => {
  const route = routeOf(x);
  if (!route?.body) return;
  const { json } = x;
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new Refusal("validation_failed", "The body is not a JSON object.");
  }
  const parsed = route.body.safeParse(json, { error: shapeWords });
  const others = route.problems
    ? await within(
        deps.clock,
        handlerTimeoutMs,
        route.problems(json as Record<string, unknown>),
        () => undefined,
      )
    : [];
  const errors = [...(parsed.success ? [] : problemsOf(parsed.error)), ...others];
  const first = errors[0];
  if (first) {
    throw new Refusal(first.code, `${first.field} ${first.issue}`, { errors: errors.slice(0, mostProblems) });
  }
  x.body = route.sends && x.large ? keptIn(x.large, route.sends, json) : parsed.data;
};

/** A body whose messages are kept in a thread. */
function keptIn(large: LargeBody, kept: BodyKind, json: object): unknown {
  if (kept === "message") return large.request(0);
  const messages = "messages" in json && Array.isArray(json.messages) ? json.messages : [];
  return { messages: messages.map((_, index) => large.request(index)) };
}

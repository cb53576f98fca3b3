// What every request passes before its handler runs, in the order in which refusals win: maintenance, transport,
// lock-out 403, 401, disabled and allowlist 403 (the last four are access's own order), route 404, method
// 405, scope 403, rate 429, a paused account 403, headers 400 and 415, size 413, JSON 400, key reuse 409, shape 422, and 429 once more where
// the body costs more tokens. The list at the end is that order; nothing else decides it. A guard throws a
// Refusal, or answers with a Reply. Over 300 lines: one guard after the other, read as that list.
import type { Access, Principal } from "../access/access.ts";
import type { Buckets, BucketState } from "../access/buckets.ts";
import type { Networks } from "../access/networks.ts";
import { refusePaused } from "../access/paused.ts";
import { quotasOf, refuseSpentQuotas } from "../access/quotas.ts";
import type { Maintenance } from "../care/maintenance.ts";
import type { Clock } from "../clock.ts";
import { Refusal, type Problem } from "../errors.ts";
import { shapeWords } from "../errors/zod-messages.ts";
import type { Log } from "../log.ts";
import { defaultAccount, type Account } from "../model/account.ts";
import { idempotencyKeptMs } from "../model/idempotency.ts";
import type { Store } from "../store/store.ts";
import { announcedLength, checkBodyHeaders, fingerprintOf, hasBody, readBody, readJson } from "./body.ts";
import type { BodyMemory } from "./body-memory.ts";
import { forwardedHttps, isLoopback } from "./client-ip.ts";
import type { Connections } from "./connections.ts";
import { within } from "./deadline.ts";
import { problemsOf } from "./fields.ts";
import { checkFingerprint, readIdempotencyKey, replay, takesKey, type InFlight } from "./idempotency.ts";
import { largeBytes, type LargeBodies, type LargeBody } from "./large-bodies.ts";
import type { Kept } from "./large-body-thread.ts";
import { isBelowApi } from "./paths.ts";
import type { Exchange, Reply, Route } from "./route.ts";

export const apiVersion = "2026-11";

export interface GuardDeps {
  store: Store;
  access: Access;
  buckets: Buckets;
  bodies: BodyMemory;
  largeBodies: Pick<LargeBodies, "open">;
  connections: Connections;
  inFlight: InFlight;
  clock: Clock;
  log: Log;
  trustedProxies: Networks;
  /** `proxy`: TLS ends at a trusted proxy, which must say so; `local`: no TLS at all, from this machine only. */
  transport: "tls" | "proxy" | "local";
  draining(): boolean;
  maintenance: Pick<Maintenance, "refusal">;
}

type Guard = (x: Exchange, deps: GuardDeps) => void | Reply | Promise<void | Reply>;

function routeOf(x: Exchange): Route | null {
  return x.match.kind === "route" ? x.match.route : null;
}

/** The key's account, or the operator's choice. Set by `authenticate` wherever a handler runs. */
export function accountOf(x: Exchange): Account {
  if (!x.principal) throw new Error("the request has no principal");
  return x.principal.account;
}

const staysOpen: Guard = (_x, deps) => {
  if (deps.draining())
    throw new Refusal("service_overloaded", "The service is shutting down.", { retry_after_seconds: 5 });
};

/** What is open to anybody stays so: health, descriptions, and the links of mail that was sent. */
const isNoMaintenance: Guard = (x, deps) => {
  if (x.door === "admin" || routeOf(x)?.scopes === "open") return;
  const refusal = deps.maintenance.refusal();
  if (refusal) throw refusal;
};

const usesHttps: Guard = (x, deps) => {
  if (x.door === "admin" || deps.transport === "tls") return;
  const secure = deps.transport === "proxy" ? forwardedHttps(x.req, deps.trustedProxies) : isLoopback(x.req);
  if (!secure)
    throw new Refusal("invalid_request", "Requests are taken over HTTPS only.", {
      field: "X-Forwarded-Proto",
    });
};

/** A proxy's connection carries the requests of many: its clients are counted by what they have under way. */
const hasPlace: Guard = (x, deps) => {
  if (x.door === "admin" || deps.connections.has(x.req.socket)) return;
  x.place = deps.connections.client(x.ip);
  if (!x.place) {
    throw new Refusal("rate_limit_exceeded", "Too many requests of this address are under way.", {
      retry_after_seconds: 1,
      bucket: "unauthenticated",
    });
  }
  x.res.once("close", x.place.leave);
};

const authenticate: Guard = async (x, deps) => {
  if (x.door === "admin") {
    x.principal = await operatorOf(x, deps.store);
    return;
  }
  const route = routeOf(x);
  if (route?.scopes === "open") return;
  if (route === null && !isBelowApi(x.path)) return; // no key is asked for outside of the API
  try {
    x.principal = await deps.access.authenticateKey(
      x.req.headersDistinct["authorization"]?.join(", "),
      x.ip,
      x.id,
    );
    x.place?.known();
    deps.connections.known(x.req.socket);
  } catch (error) {
    x.bucket = deps.buckets.takeSource("unauthenticated", x.ip);
    if (error instanceof Refusal && error.code === "invalid_api_key" && !x.bucket.allowed) refuseRate(x);
    throw error;
  }
};

async function operatorOf(x: Exchange, store: Store): Promise<Principal> {
  const name = header(x, "x-svc-account") ?? defaultAccount;
  const account = await store.accountByName(name);
  if (!account)
    throw new Refusal("resource_not_found", `There is no account "${name.slice(0, 64)}".`, {
      field: "X-Svc-Account",
    });
  const operator = (header(x, "x-svc-operator") ?? "").replace(/[^\x20-\x7e]/g, "").slice(0, 64);
  return { kind: "operator", account, name: operator === "" ? "unknown" : operator };
}

const knowsRoute: Guard = (x) => {
  if (x.match.kind === "none") throw new Refusal("resource_not_found", "There is no such path.");
};

const knowsMethod: Guard = (x) => {
  if (x.match.kind !== "method") return;
  throw new Refusal("method_not_allowed", `The path does not support ${x.method}.`, { allow: x.match.allow });
};

const hasScope: Guard = (x, deps) => {
  const scopes = routeOf(x)?.scopes;
  if (x.principal?.kind !== "key" || scopes === undefined || scopes === "open") return;
  const { scope, id, accountKey } = x.principal.key;
  if (scope === "admin" || scopes.includes(scope)) return;
  deps.access.security.notice(
    "scope_mismatch",
    { kind: "key", id, accountKey },
    {
      ip: x.ip,
      requestId: x.id,
      detail: { scope, required: scopes[0], method: x.method, path: routeOf(x)?.path },
    },
  );
  throw new Refusal("scope_insufficient", `The key's scope is ${scope}; this needs ${scopes[0]}.`, {
    required_scope: scopes[0],
  });
};

const hasTokens: Guard = (x, deps) => {
  if (x.principal?.kind === "operator") return;
  x.bucket = drawOn(x, deps.buckets);
  if (!x.bucket.allowed) refuseRate(x);
};

const isOpen = (x: Exchange): boolean => routeOf(x)?.scopes === "open";

/** Draws a token for a request: of its key's bucket, of its source's where it has no key. */
export function drawOn(x: Exchange, buckets: Buckets): BucketState {
  if (x.principal?.kind !== "key")
    return isOpen(x)
      ? buckets.takeSource("open", x.ip, routeOf(x)?.openTokens)
      : buckets.takeSource("unauthenticated", x.ip);
  return buckets.take(x.principal.key, x.principal.account, routeOf(x)?.bucket ?? "default");
}

/** The token of a request that turned out to cost none. */
export function giveBackToken(x: Exchange, buckets: Buckets): void {
  if (isOpen(x) && x.door === "public")
    x.bucket = buckets.giveBackSource("open", x.ip, routeOf(x)?.openTokens);
  if (x.principal?.kind !== "key") return;
  x.bucket = buckets.giveBack(x.principal.key, x.principal.account, routeOf(x)?.bucket ?? "default");
}

function refuseRate(x: Exchange, why?: string): never {
  throw emptyBucket(x.bucket, why);
}

export function emptyBucket(state: BucketState | null, why = "is empty"): Refusal {
  return new Refusal("rate_limit_exceeded", `The bucket ${state?.bucket ?? "default"} ${why}.`, {
    retry_after_seconds: state?.retryAfterSeconds ?? 1,
    bucket: state?.bucket ?? "default",
  });
}

const isSend = (x: Exchange): boolean => routeOf(x)?.refuses?.includes("account_paused") === true;

const mayStillSend: Guard = (x) => {
  if (isSend(x)) refusePaused(accountOf(x));
};

const hasGoodHeaders: Guard = (x) => {
  if (x.match.kind === "target")
    throw new Refusal("invalid_request", "The request target is not a path of this service.");
  if (x.match.kind === "malformed")
    throw new Refusal("invalid_request", "The path is not valid percent-encoded UTF-8.");
  if (x.req.httpVersionMajor < 1) throw new Refusal("invalid_request", "The request is not HTTP/1.1.");
  if (x.req.headers.host === undefined && x.req.httpVersion === "1.1") {
    throw new Refusal("invalid_request", "The request has no Host header.", { field: "Host" }); // RFC 9112 §3.2
  }
  const expectation = header(x, "expect");
  if (expectation !== undefined && expectation.toLowerCase() !== "100-continue") {
    throw new Refusal("invalid_request", "Expect may be 100-continue only.", { field: "Expect" }); // RFC 9110 §10.1.1
  }
  const version = header(x, "x-api-version");
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

const hasGoodQuery: Guard = (x) => {
  const route = routeOf(x);
  if (!route) return;
  const known = route.query.shape;
  const given: Record<string, string> = {};
  for (const name of new Set(x.search.keys())) {
    if (Object.hasOwn(known, name)) given[name] = x.search.getAll(name).join(",");
    else if (x.door === "admin")
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

const bringsItsBody: Guard = async (x, deps) => {
  const route = routeOf(x);
  if (!route?.body || (route.bodyOptional && !hasBody(x.req))) return;
  const length = announcedLength(x.req);
  const entered = x.door === "admin" ? null : deps.bodies.enter(accountOf(x).key, length);
  const room = entered instanceof Promise ? await entered : entered;
  if (room) x.cleanup.push(() => room.release());
  x.raw = await readBody(x.req, x.res, room);
};

const isJson: Guard = (x, deps) => {
  const route = routeOf(x);
  if (!route?.body) return;
  const most = route.mostValues ?? mostValues;
  if (x.raw && x.raw.length > largeBytes) return handOver(x, x.raw, most, deps);
  x.json = x.raw === null ? {} : readJson(x.raw, most);
};

/** The body leaves the loop, and what is done with its bytes is done where they are. */
async function handOver(x: Exchange, raw: Buffer, most: number, deps: GuardDeps): Promise<void> {
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

/** No request that can be granted comes near: 1,000 suppressions of three fields are 6,000. */
const mostValues = 20_000;
/** More rows of a refusal help nobody, and would make a small request's answer a large one. */
const mostProblems = 1000;

const isNoReplay: Guard = async (x, deps) => {
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

/** Behind the replay, so that whoever lost the answer to the day's last message still gets it. */
const hasQuota: Guard = async (x, deps) => {
  if (x.principal?.kind !== "key" || !isSend(x)) return;
  const quotas = quotasOf(x.principal.account, x.principal.key);
  if (quotas.length > 0) await refuseSpentQuotas(deps.store, quotas, deps.clock.now());
};

const hasGoodShape: Guard = async (x, deps) => {
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
function keptIn(large: LargeBody, kept: Kept, json: object): unknown {
  if (kept === "message") return large.request(0);
  const messages = "messages" in json && Array.isArray(json.messages) ? json.messages : [];
  return { messages: messages.map((_, index) => large.request(index)) };
}

/** The first token was drawn before the body was known: it is put back, so that a refusal costs none and says how long all of them take. */
const hasTokensForAll: Guard = (x, deps) => {
  const route = routeOf(x);
  if (x.principal?.kind !== "key" || !route?.tokens) return;
  const wanted = route.tokens(x.body);
  if (wanted < 2) return;
  giveBackToken(x, deps.buckets);
  const { key, account } = x.principal;
  x.bucket = deps.buckets.take(key, account, route.bucket, wanted);
  if (!x.bucket.allowed) refuseRate(x, "has too few tokens");
};

export const handlerTimeoutMs = 30_000;

export const guards: readonly Guard[] = [
  staysOpen, // 503
  isNoMaintenance, // 503
  usesHttps, // 400
  hasPlace, // 429 of a proxy's client with too much under way
  authenticate, // 403 source_ip_locked, 401 (429 where the source's bucket is empty), 403 key_disabled, 403 ip_not_allowed
  knowsRoute, // 404
  knowsMethod, // 405
  hasScope, // 403 scope_insufficient
  hasTokens, // 429
  mayStillSend, // 403 account_paused
  hasGoodHeaders, // 400 X-API-Version, Idempotency-Key, Content-Type missing; 415
  hasGoodQuery, // 400 limit, cursor, filters
  bringsItsBody, // 413
  isJson, // 400
  isNoReplay, // 409, or the stored answer
  hasQuota, // 429 of a day's messages
  hasGoodShape, // 422
  hasTokensForAll, // 429 of what costs more than a token, counted in its body
];

function header(x: Exchange, name: string): string | undefined {
  const value = x.req.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

// The life of one request: matched by h3, judged by the middleware in its order, handled, answered. Every
// answer, refusals included, carries its request id, the API version and the rate limit's state. h3 finds
// the route; what it would answer by itself (404, 405, a malformed path) is brought into the same form.
import { H3, HTTPResponse, type H3Event } from "h3";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { IdMint } from "../ids.ts";
import { OverQuota } from "../access/quotas.ts";
import { Refusal } from "../errors.ts";
import type { AnswerRequest } from "../model/idempotency.ts";
import { accepts, prefers } from "./accept.ts";
import { sliced, writeRule } from "./answers.ts";
import { ClientGone } from "./body.ts";
import { readConditionally } from "./conditional.ts";
import { clientIp, forwardedHttps } from "./client-ip.ts";
import { actOf } from "./audit.ts";
import { handlerTimeoutMs, within } from "./deadline.ts";
import { accountOf, type Exchange, type Match } from "./exchange.ts";
import { keepAnswer } from "./idempotency.ts";
import { middleware } from "./middleware.ts";
import { drawOn } from "./middleware/rates.ts";
import { apiVersion } from "./middleware/request.ts";
import type { MiddlewareDeps } from "./middleware/types.ts";
import { isGoodTarget, withoutLastSlash } from "./paths.ts";
import { refusalOf, renderProblem } from "./problem.ts";
import type { Call, ListenerKind, Reply, Route } from "./route.ts";

export interface AppDeps extends MiddlewareDeps {
  mint: IdMint;
  publicUrl: string;
}

/** Binds the routes that this kind of listener shows. */
export function createApp(listener: ListenerKind, routes: readonly Route[], deps: AppDeps): H3 {
  const app = new H3({
    silent: true,
    onError: (error, event) =>
      serve(event, { kind: error.status === 404 ? "none" : "malformed" }, listener, deps),
  });
  const shown = routes.filter((route) => route.listeners === "both" || route.listeners === listener);
  const byPath = Map.groupBy(shown, (route) => route.path.replace(/\{(\w+)\}/g, ":$1"));
  for (const [path, own] of byPath) {
    for (const route of own) {
      const handler = (event: H3Event) => serve(event, { kind: "route", route }, listener, deps);
      app.on(route.method, path, handler);
      if (route.method === "GET") app.on("HEAD", path, handler);
    }
    const allow = own.flatMap((route) => (route.method === "GET" ? ["GET", "HEAD"] : [route.method]));
    app.all(path, (event) => serve(event, { kind: "method", allow }, listener, deps));
  }
  return app;
}

async function serve(
  event: H3Event,
  match: Match,
  listener: ListenerKind,
  deps: AppDeps,
): Promise<HTTPResponse> {
  const node = event.runtime?.node;
  if (!node?.res) throw new Error("the app runs behind node:http only");
  const x = exchangeOf(event, match, listener, node.req as IncomingMessage, node.res as ServerResponse, deps);
  let reply: Reply;
  try {
    reply = await perform(x, deps);
  } catch (error) {
    reply = refuse(x, error, deps);
  }
  audit(x, reply, deps);
  return respond(x, reply, deps);
}

function exchangeOf(
  event: H3Event,
  match: Match,
  listener: ListenerKind,
  req: IncomingMessage,
  res: ServerResponse,
  deps: AppDeps,
): Exchange {
  return {
    listener,
    id: deps.mint("req", deps.clock.now()),
    req,
    res,
    method: req.method ?? "GET",
    path: withoutLastSlash(event.url.pathname),
    search: event.url.searchParams,
    params: event.context.params ?? {},
    match: isGoodTarget(req.url ?? "/") ? match : { kind: "target" },
    ip: listener === "admin" ? "127.0.0.1" : clientIp(req, deps.trustedProxies),
    principal: null,
    slot: null,
    bucket: null,
    query: {},
    raw: null,
    large: null,
    json: undefined,
    body: undefined,
    idempotency: null,
    audited: false,
    cleanup: [],
  };
}

/** The middleware, then the handler; what they reserve is released when the work is over, not when its time is. */
async function perform(x: Exchange, deps: AppDeps): Promise<Reply> {
  let work: Promise<Reply> | null = null;
  const cleanUp = (): void => {
    for (const act of x.cleanup.splice(0)) act();
  };
  try {
    for (const pass of middleware) {
      const early = await pass(x, deps);
      if (early) return withLocation(x, early);
    }
    if (x.match.kind !== "route") throw new Error("a request without a route passed the middleware");
    const { route } = x.match;
    work = readConditionally(x, route, deps, () => handle(x, route, deps));
    work.then(cleanUp, cleanUp);
    return await within(deps.clock, route.timeoutMs ?? handlerTimeoutMs, work, discard);
  } finally {
    if (!work) cleanUp();
  }
}

/**
 * An act that its handler did not write down with its effect is written down behind it. Where that fails the act stands
 * all the same, and an error would have the caller do it twice.
 */
async function handle(x: Exchange, route: Route, deps: AppDeps): Promise<Reply> {
  const reply = await route.handle(callOf(x, deps));
  const act = x.audited || reply.headers?.["idempotency-replayed"] ? null : actOf(x, deps.clock.now());
  try {
    if (act) await deps.store.recordAudit([act(reply)]);
  } catch (error) {
    deps.log.error(
      { request_id: x.id, err: error },
      "an action was done, but its audit log entry was not written",
    );
  }
  return reply;
}

function callOf(x: Exchange, deps: AppDeps): Call<Record<string, unknown>, unknown> {
  const open = x.match.kind === "route" && x.match.route.scopes === "open";
  const principal = x.principal;
  return {
    get account() {
      return accountOf(x);
    },
    get principal() {
      if (!principal) throw new Error(`${open ? "an open route" : "the request"} has no principal`);
      return principal;
    },
    listener: x.listener,
    query: x.query,
    body: x.body,
    param: (name) => decodeURIComponent(x.params[name] ?? ""),
    ip: x.ip,
    prefers: (mediaType) => prefers(x.req.headers.accept, mediaType),
    idempotent(effect, answer) {
      const act = actOf(x, deps.clock.now());
      x.audited = true;
      return keepAnswer(deps.store, answerRequestOf(x, deps), act, effect, answer);
    },
    idempotency: x.idempotency,
    onClose: (listener) => void x.res.once("close", listener),
    now: deps.clock.now(),
  };
}

function answerRequestOf(x: Exchange, deps: AppDeps): AnswerRequest | null {
  if (!x.idempotency) return null;
  const test = x.principal?.kind === "key" && x.principal.key.test;
  return { ...x.idempotency, test, accountKey: accountOf(x).key, at: deps.clock.now() };
}

function refuse(x: Exchange, error: unknown, deps: AppDeps): Reply {
  if (error instanceof OverQuota) x.bucket = error.state;
  const refusal = refusalOf(error, x.match.kind === "route" && x.match.route.upstream === true);
  if (error instanceof ClientGone) deps.log.debug({ request_id: x.id, path: x.path }, "the client went away");
  else if (!(error instanceof Refusal)) {
    const stack = error instanceof Error ? error.stack : String(error);
    deps.log.error(
      { request_id: x.id, method: x.method, path: x.path, code: refusal.code, err: stack },
      "a request failed",
    );
  }
  return renderProblem(refusal, {
    requestId: x.id,
    path: x.path,
    publicUrl: deps.publicUrl,
    acceptsProblem: accepts(x.req.headers.accept, "application/problem+json"),
  });
}

function respond(x: Exchange, reply: Reply, deps: AppDeps): HTTPResponse {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    ...reply.headers,
    ...standardHeaders(x, deps),
  };
  if (deps.draining()) headers["connection"] = "close";
  const { body } = reply;
  if (body instanceof Readable) {
    if (x.method === "HEAD") body.destroy();
    return new HTTPResponse(x.method === "HEAD" ? null : body, { status: reply.status, headers });
  }
  if (reply.status === 204 || reply.status === 304) delete headers["content-type"];
  else headers["content-length"] = String(Buffer.byteLength(body ?? ""));
  return new HTTPResponse(inSlices(body ?? null), { status: reply.status, headers });
}

type Body = ConstructorParameters<typeof HTTPResponse>[0];

/** A body that is written whole, or what srvx pipes, which h3's type does not know. */
function inSlices(body: string | Buffer | null): Body {
  const whole = body === null || body.length <= writeRule.wholeBytes;
  return (whole ? body : sliced(typeof body === "string" ? Buffer.from(body) : body)) as Body;
}

/** A browser that has seen it asks this host over TLS only, for a year (RFC 6797). */
export const strictTransport = "max-age=31536000";

/** What every answer carries. On the operator's socket nothing is limited, so nothing is said of limits. */
function standardHeaders(x: Exchange, deps: MiddlewareDeps): Record<string, string> {
  const headers: Record<string, string> = {
    "x-request-id": x.id,
    "x-api-version-used": apiVersion,
    "x-content-type-options": "nosniff",
  };
  if (x.listener === "admin") return headers;
  const overTls = deps.transport === "tls" || forwardedHttps(x.req, deps.trustedProxies);
  if (overTls) headers["strict-transport-security"] = strictTransport;
  const state = x.bucket ?? drawOn(x, deps.buckets);
  headers["x-ratelimit-limit"] = String(state.limit);
  headers["x-ratelimit-remaining"] = String(state.remaining);
  headers["x-ratelimit-reset"] = String(state.resetAt);
  headers["x-ratelimit-bucket"] = state.bucket;
  return headers;
}

/** An operator's act is written down with who did it; requests with a key only where somebody looks for them. */
function audit(x: Exchange, reply: Reply, deps: AppDeps): void {
  const facts = { request_id: x.id, method: x.method, path: x.path, status: reply.status };
  if (x.principal?.kind === "operator" && x.method !== "GET" && x.method !== "HEAD") {
    deps.log.info(
      { audit: "operator", operator: x.principal.name, account: x.principal.account.name, ...facts },
      "an operator's request",
    );
  } else deps.log.debug(facts, "a request");
}

/** A replayed answer names what was created as the first one did. */
function withLocation(x: Exchange, reply: Reply): Reply {
  if (x.match.kind !== "route" || (reply.status !== 201 && reply.status !== 202)) return reply;
  const stored = typeof reply.body === "string" ? (JSON.parse(reply.body) as Record<string, unknown>) : {};
  const name = stored[x.match.route.locatedBy ?? "id"];
  return typeof name === "string"
    ? { ...reply, headers: { ...reply.headers, location: `${x.path}/${name}` } }
    : reply;
}

function discard(reply: Reply): void {
  if (reply.body instanceof Readable) reply.body.destroy();
}

// Conditional reads (RFC 9110 §13.1.3): Last-Modified on every answer of a GET, and 304 where nothing has changed since
// the time that the client names, which costs no token. HTTP dates have whole seconds: the store's times are such that a
// change never hides behind the second of an earlier answer (store/changes.ts), and a 304 is given only once the second
// of the change is over. A list that has not changed is not read; what a path names has to be found first.
import { Readable } from "node:stream";
import type { LastChange } from "../model/last-change.ts";
import { accountOf, type Exchange } from "./exchange.ts";
import { readHttpDate } from "./http-date.ts";
import { refundToken } from "./middleware/rates.ts";
import type { MiddlewareDeps } from "./middleware/types.ts";
import type { Reply, Route } from "./route.ts";

/** An own time counts from the end of the second after it: rows are written before they are seen. */
const ownSlackMs = 2000;

/** Runs a route's handler, or answers without it where a list has not changed. */
export async function readConditionally(
  x: Exchange,
  route: Route,
  deps: MiddlewareDeps,
  handle: () => Promise<Reply>,
): Promise<Reply> {
  if (route.method !== "GET") return handle();
  const nowSecond = wholeSecond(deps.clock.now());
  if (route.lastModifiedFrom === "always") return dated(await handle(), nowSecond);
  const accountKey = x.principal === null ? 0 : accountOf(x).key;
  const written = await deps.store.lastChange(accountKey, route.lastModifiedFrom);
  const change = { ...written, at: Math.max(written.at, lastTurn(deps.clock.now(), route.changesEachMs)) };
  const since = ifModifiedSince(x);

  const unchanged = (changedAt: number): boolean =>
    since !== null && changedAt <= since && changedAt < nowSecond && since <= nowSecond;
  const conclude = (changedAt: number, reply: Reply | null): Reply | null => {
    if (!unchanged(changedAt)) return reply && dated(reply, Math.min(changedAt, nowSecond));
    refundToken(x, deps.buckets);
    return dated({ status: 304 }, changedAt);
  };

  if (!route.path.includes("{")) {
    const early = conclude(change.at, null);
    if (early) return early;
  }
  const reply = await handle();
  if (reply.status !== 200) return reply;
  const concluded = conclude(ownTime(change, reply.lastModified), reply);
  if (concluded?.status === 304 && reply.body instanceof Readable) reply.body.destroy();
  return concluded ?? reply;
}

/** The earlier of two times that are both late enough: of the list, and of what the answer shows. */
function ownTime(change: LastChange, lastModified: number | undefined): number {
  if (lastModified === undefined) return change.at;
  return Math.min(change.at, Math.max(wholeSecond(lastModified) + ownSlackMs, change.late));
}

/** When time alone last changed an answer; 0 where it does not. */
function lastTurn(now: number, eachMs: number | undefined): number {
  return eachMs === undefined ? 0 : Math.floor(now / eachMs) * eachMs;
}

function dated(reply: Reply, at: number): Reply {
  return { ...reply, headers: { ...reply.headers, "last-modified": new Date(at).toUTCString() } };
}

/** null: there is none, or none that counts (more than one, no date, or If-None-Match beside it: RFC 9110 §13.2.2). */
function ifModifiedSince(x: Exchange): number | null {
  const { "if-modified-since": given, "if-none-match": tags } = x.req.headersDistinct;
  return given?.length === 1 && tags === undefined ? readHttpDate(given[0] ?? "") : null;
}

function wholeSecond(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

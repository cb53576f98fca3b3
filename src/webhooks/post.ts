// One POST of one event to one endpoint, over undici. Success is a 2xx answer within the time limit, which
// runs from the start to the end of the answer: a body that drips counts as no answer. A redirect is an answer that is
// not 2xx and is never followed, or it would bypass the SSRF filter. Every failure is a value. When to try again, and
// how many at once, is the dispatcher's.
import { readFileSync } from "node:fs";
import { createSecureContext, getCACertificates } from "node:tls";
import { buildConnector, Pool } from "undici";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import { createTurns } from "../fairness/turns.ts";
import type { Endpoint } from "../model/webhook.ts";
import { answerText, longestText } from "./answer-text.ts";
import type { SsrfFilter } from "./ssrf-filter.ts";
import { skipContinues } from "./informational.ts";
import { signatureHeaders } from "./signature.ts";

declare const __VERSION__: string;

/** Of a longer answer the rest is not read and the connection is closed. */
const longestAnswer = 64 * 1024;
/** Connections that begin in a turn of the loop: each takes most of a millisecond of it, with TLS. */
const connectsPerTurn = 2;

export interface Answer {
  delivered: boolean;
  /** HTTP status; null where there was no answer. */
  status: number | null;
  durationMs: number;
  /** Why there was no answer, on one short line; null where there was one. */
  failure: string | null;
  /** The beginning of an answer that is not a success (answer-text.ts). */
  body: string | null;
}

export interface Post {
  /** Kept connections to the host of an account's endpoint, at most `connections`. The caller destroys it. */
  open(url: URL, connections: number, accountKey: number): Pool;
  /** Never rejects: where `connect` throws, that is a failed attempt too. */
  post(
    connect: () => Pool,
    endpoint: Endpoint,
    event: { id: string; body: string },
    attempt: number,
  ): Promise<Answer>;
}

export function createPost(deps: {
  config: Pick<Config["webhooks"], "caFile" | "timeoutMs">;
  ssrfFilter: SsrfFilter;
  clock: Clock;
}): Post {
  const { clock, ssrfFilter, config } = deps;
  // One context for all connections: reading a trust list takes milliseconds.
  const trust =
    config.caFile === null
      ? {}
      : { ca: [...getCACertificates("default"), readFileSync(config.caFile, "utf8")] };
  const secureContext = createSecureContext({ ...trust, minVersion: "TLSv1.2" });
  const turns = createTurns({ clock, pieces: connectsPerTurn, everyMs: 0 });
  /** One a pool: it keeps TLS sessions by host name. Accounts take turns to connect. */
  const connector = (accountKey: number): buildConnector.connector => {
    const connect = buildConnector({
      allowH2: false,
      lookup: ssrfFilter.lookup,
      secureContext,
      rejectUnauthorized: true,
      timeout: config.timeoutMs,
    });
    return (options, callback) =>
      turns(accountKey, () =>
        connect(options, (...[error, socket]) => {
          if (error !== null) return callback(error, null);
          skipContinues(socket);
          callback(null, socket);
        }),
      );
  };

  const exchange = async (
    connect: () => Pool,
    endpoint: Endpoint,
    event: { id: string; body: string },
    attempt: number,
    signal: AbortSignal,
  ): Promise<Pick<Answer, "status" | "body">> => {
    const url = new URL(endpoint.url);
    const refusal = ssrfFilter.literalRefusal(url);
    if (refusal !== null) throw new Error(refusal);
    const body = Buffer.from(event.body, "utf8");
    const answer = await connect().request({
      method: "POST",
      path: url.pathname + url.search,
      headers: {
        "Content-Type": "application/json",
        "User-Agent": `svc/${__VERSION__}`,
        "X-Svc-Event-Id": event.id,
        "X-Svc-Delivery-Attempt": String(attempt),
        ...signatureHeaders(endpoint, { id: event.id, body }, clock.now()),
      },
      body,
      signal,
    });
    const { statusCode: status } = answer;
    if (!isSuccess(status)) return { status, body: answerText(await startOf(answer.body)) };
    await answer.body.dump({ limit: longestAnswer, signal });
    return { status, body: null };
  };

  return {
    open: (url, connections, accountKey) =>
      new Pool(url.origin, {
        connections,
        allowH2: false,
        headersTimeout: 0, // the one deadline of `post` rules
        bodyTimeout: 0,
        connect: connector(accountKey),
      }),
    async post(connect, endpoint, event, attempt) {
      const startedAt = clock.monotonic();
      const abort = new AbortController();
      const deadline = clock.after(config.timeoutMs, () =>
        abort.abort(new Error(`no answer within ${config.timeoutMs} ms`)),
      );
      const ended = (came: Pick<Answer, "status" | "body">, failure: string | null): Answer => ({
        ...came,
        delivered: isSuccess(came.status),
        durationMs: Math.round(clock.monotonic() - startedAt),
        failure,
      });
      try {
        return ended(await exchange(connect, endpoint, event, attempt, abort.signal), null);
      } catch (error) {
        return ended({ status: null, body: null }, reasonOf(error));
      } finally {
        deadline.cancel();
      }
    },
  };
}

function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300;
}

/** Reads an answer as far as `dump` would, and keeps how it begins. Rejects where the request is aborted. */
async function startOf(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const kept: Buffer[] = [];
  let seen = 0;
  for await (const chunk of body) {
    if (seen < longestText) kept.push(chunk.subarray(0, longestText - seen));
    seen += chunk.length;
    if (seen > longestAnswer) break; // the connection ends with the loop
  }
  return Buffer.concat(kept);
}

const longestReason = 200;

/** Of a host with several addresses the first one's; parts of it may be a stranger's words. */
function reasonOf(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  const words = first instanceof Error ? first.message || first.name : String(first);
  return words
    .replace(/[\s\p{C}]+/gu, " ")
    .slice(0, longestReason)
    .trim();
}

// One request to the API, tried again as the API asks for. Node.js 22.19 or newer, no packages.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";

const { SVC_BASE_URL, SVC_API_KEY, SVC_CA_FILE, SVC_RETRY_BASE_MS } = process.env;
const mostRetries = 5;
const baseMs = Number(SVC_RETRY_BASE_MS ?? 1000);
const ceilingMs = 30_000;

// A server with a certificate of its own: trusted beside those that Node.js trusts already.
if (SVC_CA_FILE)
  tls.setDefaultCACertificates([...tls.getCACertificates(), readFileSync(SVC_CA_FILE, "utf8")]);

export class SvcError extends Error {
  constructor({ status, code, detail, request_id, errors = [] }) {
    super(`${status} ${code}: ${detail} (${request_id})`);
    Object.assign(this, { status, code, requestId: request_id, errors });
  }
}

/**
 * Answers the parsed body, null for none; throws an SvcError for a refusal. The Idempotency-Key is the same on every
 * try, so that what is sent twice is done once. Keep it with your job, and pass it in, to be safe across a restart too.
 */
export async function request(method, path, body, idempotencyKey = randomUUID()) {
  const headers = {
    authorization: `Bearer ${SVC_API_KEY}`,
    accept: "application/json, application/problem+json", // one form for all errors
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(method === "GET" ? {} : { "idempotency-key": idempotencyKey }),
  };
  const init = { method, headers, body: JSON.stringify(body), redirect: "error" };
  for (let retry = 0; ; retry++) {
    let response, text;
    try {
      response = await fetch(SVC_BASE_URL + path, { ...init, signal: AbortSignal.timeout(30_000) });
      text = await response.text();
    } catch (error) {
      if (retry === mostRetries) throw error; // no answer: nobody knows whether it was done, so it is tried again
    }
    if (text !== undefined) {
      if (response.ok) return text === "" ? null : JSON.parse(text);
      const passing = response.status === 429 || response.status >= 500;
      if (!passing || retry === mostRetries) throw new SvcError(problemOf(response, text));
    }
    await sleep(waitMs(response, retry));
  }
}

/** What the server asks for with 429 and 503; else a growing delay with jitter. */
function waitMs(response, retry) {
  const seconds = Number(response?.headers.get("retry-after") ?? 0);
  if (seconds > 0 && [429, 503].includes(response.status)) return seconds * 1000;
  return Math.min(ceilingMs, baseMs * 2 ** retry * (1 + Math.random()));
}

function problemOf(response, text) {
  try {
    return { status: response.status, ...JSON.parse(text) };
  } catch {
    return {
      status: response.status,
      code: "unknown",
      detail: text.slice(0, 200),
      request_id: "no request id",
    };
  }
}

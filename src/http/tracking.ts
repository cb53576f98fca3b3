// The links of tracked mail: GET /o/<token> (the pixel), /c/<token> (a redirect), /u/<token> (the unsubscribe page, and the POST
// that acts, RFC 8058). They do not belong to the API: no key, no bucket, no session, and they answer on every name that
// leads here, since mail that was delivered does not change when a domain's tracking name does. A name that is only a tracking
// name serves nothing else. A token that is not ours is 404, whatever is wrong with it. A visit never fails: where it
// cannot be recorded in time, the reader still gets the pixel or the page. An unsubscribe is answered when it is on disk.
import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import { createMinuteLimiter } from "../access/minute-limiter.ts";
import type { Networks } from "../access/networks.ts";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { StoreUnavailable, type Store } from "../store/store.ts";
import type { TokenContent, TokenPurpose, TrackingTokens } from "../tracking/tokens.ts";
import type { Unsubscribes } from "../tracking/unsubscribes.ts";
import type { Visits } from "../tracking/visits.ts";
import { ClientGone } from "./body.ts";
import { clientIp, forwardedHttps, isLoopback } from "./client-ip.ts";
import type { Connections } from "./connections.ts";
import { readForm } from "./form.ts";
import { languageOf, pagePolicy, unsubscribePage, type PageState } from "./unsubscribe-page.ts";

/** Answers the request where it is one of these; false: it is the API's. */
export type TrackingEndpoints = (req: IncomingMessage, res: ServerResponse) => Promise<boolean>;

/** What tracking hands to its endpoints. */
export interface TrackingParts {
  tokens: Pick<TrackingTokens, "read">;
  visits: Pick<Visits, "note">;
  unsubscribes: Pick<Unsubscribes, "ofToken">;
}

export interface TrackingDeps extends TrackingParts {
  store: Pick<Store, "isTrackingName">;
  connections: Pick<Connections, "reader">;
  /** Host names, in lower case, that serve the API too. */
  apiHosts: ReadonlySet<string>;
  trustedProxies: Networks;
  transport: "tls" | "proxy" | "local";
  clock: Clock;
  log: Log;
}

/** How long a reader waits for the store. */
const longestWaitMs = 2_000;
const longestUnsubscribeMs = 20_000;
/** Bad tokens of one source: who tests links of his own stays below. More are answered late, and are held as they come. */
const badTokensPerMinute = 12_000;
const badTokenWaitMs = 1_000;

const purposes: Readonly<Record<string, TokenPurpose>> = { o: "open", c: "click", u: "unsubscribe" };
const linkForm = /^\/([ocu])\/([^/?#]+)(?:\?|$)/;
/** What is kept of a User-Agent. */
const longestAgent = 512;
/** The MAC of a token: the end that tells two links apart. */
const macLength = 22;

/** As a urlencoded field, or as a part, which may have more header fields (RFC 8058 §3.1). */
const oneClick = /List-Unsubscribe(?:=|"?[^\r\n]*\r?\n(?:[^\r\n]+\r?\n){0,5}\r?\n)One-Click/i;

/** A GIF of one transparent pixel (GIF89a). */
const pixel = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

const everywhere = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-robots-tag": "noindex, nofollow",
};

interface Visiting {
  req: IncomingMessage;
  res: ServerResponse;
  method: string;
  of: TokenContent;
  token: string;
  ip: string;
}

export function createTrackingEndpoints(deps: TrackingDeps): TrackingEndpoints {
  const { tokens, visits, unsubscribes, clock, log } = deps;
  const badTokens = createMinuteLimiter({ perMinute: badTokensPerMinute, clock });
  /** Requests for one link that come while it is being written wait for the same write. */
  const underWay = new Map<string, Promise<void>>();

  const noToken = async (res: ServerResponse, ip: string): Promise<void> => {
    const isOver = badTokens.waitOf(ip) > 0;
    badTokens.spend(ip);
    if (isOver) await new Promise<void>((done) => clock.after(badTokenWaitMs, done));
    text(res, 404, "Not found\n");
  };

  /** Waits for the record of the visit, but not for long. */
  const note = async (kind: "opened" | "clicked", { req, of, token, ip }: Visiting): Promise<void> => {
    const { headers } = req;
    const visit = {
      kind,
      of,
      link: copied(token.slice(-macLength)),
      ip: ip === "" ? "127.0.0.1" : ip,
      userAgent: copied((headers["user-agent"] ?? "").slice(0, longestAgent)),
      prefetch: [headers["sec-purpose"], headers["purpose"], headers["x-purpose"], headers["x-moz"]].some(
        (value) => /prefetch|prerender|preview/i.test(String(value ?? "")),
      ),
    };
    await atMost(clock, longestWaitMs, visits.note(visit));
  };

  const open = async (visiting: Visiting): Promise<void> => {
    if (visiting.method === "GET") await note("opened", visiting);
    send(visiting, 200, { "content-type": "image/gif", "content-length": String(pixel.length) }, pixel);
  };

  const click = async (visiting: Visiting): Promise<void> => {
    if (visiting.method === "GET") await note("clicked", visiting);
    send(visiting, 302, { location: visiting.of.target, "content-length": "0" });
  };

  const page = (visiting: Visiting, status: number, state: PageState): void => {
    const { req, of } = visiting;
    const body = Buffer.from(unsubscribePage(state, languageOf(req.headers["accept-language"]), of.email));
    const headers = {
      "content-type": "text/html; charset=utf-8",
      "content-length": String(body.length),
      "content-security-policy": pagePolicy,
      vary: "Accept-Language",
    };
    send(visiting, status, status === 503 ? { ...headers, "retry-after": "60" } : headers, body);
  };

  const unsubscribe = async (visiting: Visiting): Promise<void> => {
    const { of, token, req, res } = visiting;
    if (visiting.method !== "POST") return page(visiting, 200, "ask");
    const form = await readForm(req, res);
    if (form === null) return text(res, 413, "The form is too large\n", { connection: "close" });
    const method = oneClick.test(form) ? "one_click" : "link";
    let write = underWay.get(token);
    if (!write) {
      write = unsubscribes.ofToken(of, method).finally(() => underWay.delete(token));
      underWay.set(token, write);
    }
    try {
      const inTime = await atMost(clock, longestUnsubscribeMs, write);
      page(visiting, inTime ? 200 : 503, inTime ? "done" : "failed");
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      page(visiting, 503, "failed");
    }
  };

  const serve: Record<TokenPurpose, (visiting: Visiting) => Promise<void>> = { open, click, unsubscribe };
  const methods: Record<TokenPurpose, readonly string[]> = {
    open: ["GET", "HEAD"],
    click: ["GET", "HEAD"],
    unsubscribe: ["GET", "HEAD", "POST"],
  };

  const answer = async (
    purpose: TokenPurpose,
    token: string,
    req: IncomingMessage,
    res: ServerResponse,
  ): Promise<void> => {
    const ip = clientIp(req, deps.trustedProxies);
    const of = tokens.read(purpose, token);
    if (of === null || (purpose === "click" && !isLocation(of.target))) return noToken(res, ip);
    deps.connections.reader(req.socket);
    const method = req.method ?? "GET";
    if (!methods[purpose].includes(method))
      return text(res, 405, "Method not allowed\n", { allow: methods[purpose].join(", ") });
    await serve[purpose]({ req, res, method, of, token, ip });
  };

  const isSecure = (req: IncomingMessage): boolean => {
    if (deps.transport === "tls") return true;
    return deps.transport === "proxy" ? forwardedHttps(req, deps.trustedProxies) : isLoopback(req);
  };

  return async (req, res) => {
    const link = linkForm.exec(req.url ?? "");
    if (!link) {
      if (!(await isOnlyTracking(req.headers.host, deps))) return false;
      text(res, 404, "Not found\n");
      return true;
    }
    const [, letter = "", token = ""] = link;
    try {
      if (!isSecure(req)) text(res, 400, "Requests are accepted over HTTPS only\n");
      else await answer(purposes[letter] ?? "open", token, req, res);
    } catch (error) {
      if (error instanceof ClientGone) return true;
      log.error({ err: error, path: `/${letter}/` }, "a tracked link failed");
      if (!res.headersSent) text(res, 500, "The service could not answer; try again later\n");
      else res.destroy();
    }
    return true;
  };
}

/**
 * A tracking name that a domain has, or had: nothing but links is served there. `apiHosts` comes first, so that no domain
 * can take the API's own name away. Links themselves are answered under any name.
 */
async function isOnlyTracking(host: string | undefined, deps: TrackingDeps): Promise<boolean> {
  const name = (host ?? "").toLowerCase().replace(/:\d+$/, "");
  if (isIP(name) !== 0 || deps.apiHosts.has(name)) return false;
  return deps.store.isTrackingName(name);
}

/** What may stand in Location: the link that was in the mail, which is http or https in printable ASCII. */
function isLocation(target: string): boolean {
  return /^https?:/i.test(target) && /^[\x20-\x7e]+$/.test(target);
}

/** A part of a text by itself: V8 keeps the whole text for as long as a slice of it, and these wait in memory. */
function copied(part: string): string {
  return Buffer.from(part, "latin1").toString("latin1");
}

/** False where the time was over first. */
async function atMost(clock: Clock, ms: number, work: Promise<void>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>();
  const timer = clock.after(ms, () => resolve(false));
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    timer.cancel();
  }
}

function send(
  { res, method }: Visiting,
  status: number,
  headers: Record<string, string>,
  body: Buffer | null = null,
): void {
  res.writeHead(status, { ...everywhere, ...headers });
  res.end(method === "HEAD" ? null : body);
}

function text(
  res: ServerResponse,
  status: number,
  words: string,
  headers: Record<string, string> = {},
): void {
  const length = String(Buffer.byteLength(words));
  res.writeHead(status, {
    ...everywhere,
    "content-type": "text/plain; charset=utf-8",
    "content-length": length,
    ...headers,
  });
  res.end(res.req.method === "HEAD" ? null : words);
}

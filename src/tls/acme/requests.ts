// Signed requests to an ACME server: JWS with ES256, nonces, the directory (RFC 8555 §6). The server is trusted with
// certificates and with nothing else: every address that it names must be on its own host, over https; each answer is
// bounded by https.ts; a nonce that it rejects is replaced a few times.
import { createHash, createHmac, createPublicKey, sign, type KeyObject } from "node:crypto";
import type { Clock } from "../../clock.ts";
import type { Https, HttpsAnswer } from "../../https.ts";
import { AcmeError, fieldsOf, ofServer, problemOf, said } from "./error.ts";

declare const __VERSION__: string;

export interface AcmeAnswer {
  status: number;
  /** Address of what was made; null: there is none. */
  location: string | null;
  retryAfter: string | undefined;
  json: Record<string, unknown>;
  text: string;
}

export interface Directory {
  newNonce: string;
  newAccount: string;
  newOrder: string;
  /** null: the server has no renewal information (RFC 9773). */
  renewalInfo: string | null;
}

export interface Requests {
  directory(): Promise<Directory>;
  get(url: string): Promise<AcmeAnswer>;
  /** `payload` null: POST-as-GET. `account`: its address; null: the request carries the key itself. Rejects with AcmeError. */
  post(url: string, payload: object | null, account: string | null): Promise<AcmeAnswer>;
}

/** Pebble rejects one in twenty on purpose; RFC 8555 §6.5 lets a client try again. */
const mostNonces = 10;
const longestUrl = 2048;
const owner = "acme";

export function createRequests(deps: {
  https: Https;
  directoryUrl: string;
  key: KeyObject;
  clock: Clock;
  signal: AbortSignal;
}): Requests {
  const { https, directoryUrl, key, clock, signal } = deps;
  const { host: ownHost } = new URL(directoryUrl);
  const jwk = publicJwk(key);
  let known: Directory | null = null;
  let nonce: string | null = null;

  const exchange = async (
    method: "GET" | "HEAD" | "POST",
    url: string,
    body?: string,
  ): Promise<AcmeAnswer> => {
    signal.throwIfAborted();
    const target = addressOn(ownHost, url);
    const bytes = body === undefined ? undefined : Buffer.from(body);
    const asked = {
      method,
      host: target.hostname,
      port: Number(target.port || 443),
      path: `${target.pathname}${target.search}`,
      headers: {
        accept: "*/*",
        "user-agent": `svc/${__VERSION__}`,
        ...(bytes ? { "content-type": "application/jose+json", "content-length": String(bytes.length) } : {}),
      },
      owner,
      signal,
    };
    let answer: HttpsAnswer;
    try {
      answer = await https(bytes ? { ...asked, body: bytes } : asked);
    } catch (error) {
      throw new AcmeError(`${target.host}: ${said(error instanceof Error ? error.message : String(error))}`);
    }
    const fresh = headerOf(answer, "replay-nonce");
    if (fresh !== undefined && /^[A-Za-z0-9_-]{1,512}$/.test(fresh)) nonce = fresh;
    const text = answer.body.toString("utf8");
    return {
      status: answer.status,
      location: headerOf(answer, "location") ?? null,
      retryAfter: headerOf(answer, "retry-after"),
      json: objectOf(text),
      text,
    };
  };

  const problem = (answer: AcmeAnswer): AcmeError =>
    problemOf(answer.json, { status: answer.status, retryAfter: answer.retryAfter, now: clock.now() });

  const directory = async (): Promise<Directory> => {
    if (known) return known;
    const answer = await exchange("GET", directoryUrl);
    if (answer.status !== 200) ofServer(problem(answer));
    const url = (name: string): string => {
      const value = answer.json[name];
      if (typeof value !== "string")
        throw new AcmeError(`${said(directoryUrl)} is not an ACME directory: it has no ${name}`);
      return addressOn(ownHost, value).href;
    };
    known = {
      newNonce: url("newNonce"),
      newAccount: url("newAccount"),
      newOrder: url("newOrder"),
      renewalInfo: typeof answer.json["renewalInfo"] === "string" ? url("renewalInfo") : null,
    };
    return known;
  };

  const freshNonce = async (): Promise<string> => {
    if (nonce === null) {
      const answer = await exchange("HEAD", (await directory()).newNonce);
      if (nonce === null && answer.status >= 300) ofServer(problem(answer));
    }
    const taken = nonce;
    nonce = null; // each is used once
    if (taken === null) throw new AcmeError(`${ownHost} gives no nonce`);
    return taken;
  };

  return {
    directory,
    async get(url) {
      const answer = await exchange("GET", url);
      if (answer.status !== 200) throw problem(answer);
      return answer;
    },
    async post(url, payload, account) {
      for (let tries = 1; ; tries++) {
        const header = {
          alg: "ES256",
          nonce: await freshNonce(),
          url,
          ...(account ? { kid: account } : { jwk }),
        };
        const answer = await exchange("POST", url, signed(key, header, payload));
        if (answer.status >= 200 && answer.status < 300) return answer;
        const error = problem(answer);
        if (error.type !== "badNonce" || tries === mostNonces) throw error;
      }
    },
  };
}

/** RFC 7638. */
export function thumbprint(key: KeyObject): string {
  const { crv, kty, x, y } = publicJwk(key);
  return createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
}

function publicJwk(key: KeyObject): { crv: string; kty: string; x: string; y: string } {
  const { crv = "", kty = "", x = "", y = "" } = createPublicKey(key).export({ format: "jwk" });
  return { crv, kty, x, y };
}

/** What the ACME server has given for an account with it outside of ACME. */
export interface ExternalAccount {
  keyId: string;
  macKey: Buffer;
}

/** The proof, for a new account, of an external one (RFC 8555 §7.3.4): our public key, under the key that the server gave. */
export function externalBinding(
  { keyId, macKey }: ExternalAccount,
  key: KeyObject,
  url: string,
): { protected: string; payload: string; signature: string } {
  const [head, body] = [encoded({ alg: "HS256", kid: keyId, url }), encoded(publicJwk(key))];
  const signature = createHmac("sha256", macKey).update(`${head}.${body}`).digest("base64url");
  return { protected: head, payload: body, signature };
}

const encoded = (value: object | null): string =>
  value === null ? "" : Buffer.from(JSON.stringify(value)).toString("base64url");

/** Flattened JSON serialization (RFC 7515 §7.2.2), as RFC 8555 §6.2 asks. */
function signed(key: KeyObject, header: object, payload: object | null): string {
  const [head, body] = [encoded(header), encoded(payload)];
  const signature = sign("sha256", Buffer.from(`${head}.${body}`), { key, dsaEncoding: "ieee-p1363" });
  return JSON.stringify({ protected: head, payload: body, signature: signature.toString("base64url") });
}

/** An address of another host would have us send requests where the server cannot reach itself. */
function addressOn(host: string, url: string): URL {
  const target = url.length <= longestUrl && URL.canParse(url) ? new URL(url) : null;
  if (target?.protocol !== "https:" || target.host !== host)
    throw new AcmeError(`the ACME server names an address that is not https on ${host}: ${said(url)}`);
  return target;
}

function headerOf({ headers }: HttpsAnswer, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

function objectOf(text: string): Record<string, unknown> {
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    return {};
  }
}

// Gets a certificate from an ACME server (RFC 8555 §7): account, order, authorizations by HTTP-01 (§8.3), the CSR, the
// chain. Whatever the server does, an order ends: by its deadline, by the stop of the program, or by a count of its own.
import type { KeyObject } from "node:crypto";
import { minuteMs, type Clock } from "../../clock.ts";
import type { Https } from "../../https.ts";
import { AcmeError, fieldsOf, ofServer, problemOf, retryAfterMs, said } from "./error.ts";
import {
  createRequests,
  externalBinding,
  thumbprint,
  type AcmeAnswer,
  type ExternalAccount,
  type Requests,
} from "./requests.ts";

/** What is answered while the server checks that a name is ours. */
export interface ChallengeAnswers {
  add(token: string, keyAuthorization: string): void;
  remove(token: string): void;
}

export interface Ordered {
  names: readonly string[];
  /** DER. */
  csr: Buffer;
  /** The certificate that it replaces (RFC 9773 §5); null: none that the server knows. */
  replaces: string | null;
}

export interface AcmeClient {
  /** The chain, PEM. Rejects with AcmeError. */
  order(ordered: Ordered): Promise<string>;
  /** When the server wants it renewed; null: it does not say. `id`: RFC 9773 §4.1. */
  renewalWindow(id: string): Promise<{ from: number; until: number } | null>;
  /** Whether the server has renewal information. */
  hasRenewalInfo(): Promise<boolean>;
}

const orderMs = 5 * minuteMs;
/** A check may wait for a customer's web server: it is not to spend the time of the whole order. */
const proofMs = 2 * minuteMs;
const mostAuthorizations = 10;
const mostPolls = 100;
const pollMs = { least: 1_000, first: 1_000, most: 15_000, asked: minuteMs };
const tokenForm = /^[A-Za-z0-9_-]{16,256}$/;

export function createAcmeClient(deps: {
  https: Https;
  directoryUrl: string;
  key: KeyObject;
  email: string | null;
  /** null: the server wants none. */
  externalAccount: ExternalAccount | null;
  answers: ChallengeAnswers;
  clock: Clock;
  /** The stop of the program. */
  signal: AbortSignal;
}): AcmeClient {
  const { key, email, externalAccount, answers, clock } = deps;
  const mark = thumbprint(key);
  let account: string | null = null;

  /** With a deadline for all its requests. */
  const within = async <T>(work: (requests: Requests, signal: AbortSignal) => Promise<T>): Promise<T> => {
    const late = new AbortController();
    const timer = clock.after(orderMs, () =>
      late.abort(new AcmeError(`the ACME server did not finish within ${orderMs / minuteMs} minutes`)),
    );
    const signal = AbortSignal.any([deps.signal, late.signal]);
    try {
      return await work(createRequests({ ...deps, signal }), signal);
    } catch (error) {
      throw late.signal.aborted ? (late.signal.reason as Error) : error;
    } finally {
      timer.cancel();
    }
  };

  /** Our account with the server; null: it does not say that there is one. */
  const existingAccount = async (requests: Requests, newAccount: string): Promise<string | null> => {
    try {
      return (await requests.post(newAccount, { onlyReturnExisting: true }, null)).location;
    } catch (error) {
      return isRefusal(error) ? null : ofServer(error);
    }
  };

  const accountOf = async (requests: Requests): Promise<string> => {
    if (account !== null) return account;
    const { newAccount } = await requests.directory();
    // The key of an external account is for a new account: many are good for one, and for some days.
    if (externalAccount !== null) account = await existingAccount(requests, newAccount);
    if (account !== null) return account;
    const contact = email === null ? {} : { contact: [`mailto:${email}`] };
    const external =
      externalAccount === null
        ? {}
        : { externalAccountBinding: externalBinding(externalAccount, key, newAccount) };
    const asked = { termsOfServiceAgreed: true, ...contact, ...external };
    const made = await requests.post(newAccount, asked, null).catch(ofServer);
    if (made.location === null) throw new AcmeError("the ACME server gives no address of the account");
    return (account = made.location);
  };

  const order = async (requests: Requests, signal: AbortSignal, ordered: Ordered): Promise<string> => {
    const own = await accountOf(requests);
    const post = (url: string, payload: object | null): Promise<AcmeAnswer> =>
      requests.post(url, payload, own);
    /** The last answer: still pending after `ms`, or after too many. */
    const poll = async (
      url: string,
      isPending: (json: AcmeAnswer["json"]) => boolean,
      ms: number,
    ): Promise<AcmeAnswer["json"]> => {
      const start = clock.monotonic();
      for (let n = 1; ; n++) {
        const answer = await post(url, null);
        if (!isPending(answer.json) || n === mostPolls || clock.monotonic() - start >= ms) return answer.json;
        await pause(clock, signal, waitOf(answer, n - 1, clock.now()));
      }
    };
    const failed = (what: string, error: unknown): AcmeError => {
      const problem = problemOf(error, { status: null, retryAfter: undefined, now: clock.now() });
      return new AcmeError(`${what}: ${problem.message}`, { type: problem.type, scope: "name" });
    };

    const authorize = async (url: string): Promise<void> => {
      const { json } = await post(url, null);
      const name = fieldsOf(json["identifier"])["value"];
      if (typeof name !== "string" || !ordered.names.includes(name.toLowerCase()))
        throw new AcmeError(
          `the ACME server asks for a proof of ${said(name) || "nothing"}, which was not ordered`,
        );
      if (json["status"] === "valid") return;
      if (json["status"] !== "pending")
        throw new AcmeError(`${name}: the authorization is ${said(json["status"])}`, { scope: "name" });
      const offered = Array.isArray(json["challenges"]) ? json["challenges"].map(fieldsOf) : [];
      const challenge = offered.find(({ type }) => type === "http-01");
      const [token, at] = [challenge?.["token"], challenge?.["url"]];
      if (typeof token !== "string" || !tokenForm.test(token) || typeof at !== "string")
        throw new AcmeError(`the ACME server offers no HTTP-01 challenge for ${name}`, { scope: "name" });
      answers.add(token, `${token}.${mark}`);
      try {
        await post(at, {});
        const ended = await poll(url, ({ status }) => status === "pending", proofMs);
        if (ended["status"] === "valid") return;
        const proofs = Array.isArray(ended["challenges"]) ? ended["challenges"].map(fieldsOf) : [];
        throw failed(name, proofs.find(({ error }) => error !== undefined)?.["error"]);
      } finally {
        answers.remove(token);
      }
    };

    const { newOrder, renewalInfo } = await requests.directory();
    const identifiers = ordered.names.map((value) => ({ type: "dns", value }));
    const { replaces } = ordered;
    const made =
      renewalInfo === null || replaces === null
        ? await post(newOrder, { identifiers })
        : await post(newOrder, { identifiers, replaces }).catch((error: unknown) => {
            if (!isOfPredecessor(error)) throw error;
            return post(newOrder, { identifiers });
          });
    const urls = made.json["authorizations"];
    const { location } = made;
    if (location === null || !Array.isArray(urls) || urls.length > mostAuthorizations)
      throw new AcmeError("the ACME server's answer is not an order");
    for (const url of urls) await authorize(String(url));
    const ready = await poll(location, ({ status }) => status === "pending", orderMs);
    if (ready["status"] === "invalid") throw failed("the order failed", ready["error"]);
    await post(String(ready["finalize"]), { csr: ordered.csr.toString("base64url") });
    const ended = await poll(location, ({ status }) => status !== "valid" && status !== "invalid", orderMs);
    if (ended["status"] !== "valid") throw failed("the order failed", ended["error"]);
    return (await post(String(ended["certificate"]), null)).text;
  };

  /** A server that has forgotten our account gets it once more. */
  const orderOnce = async (ordered: Ordered): Promise<string> => {
    try {
      return await within((requests, signal) => order(requests, signal, ordered));
    } catch (error) {
      if (!(error instanceof AcmeError) || error.type !== "accountDoesNotExist" || account === null)
        throw error;
      account = null;
      return within((requests, signal) => order(requests, signal, ordered));
    }
  };

  return {
    order: orderOnce,
    hasRenewalInfo: () => within(async (requests) => (await requests.directory()).renewalInfo !== null),
    renewalWindow: (id) =>
      within(async (requests) => {
        const { renewalInfo } = await requests.directory();
        if (renewalInfo === null) return null;
        const { json } = await requests.get(`${renewalInfo.replace(/\/$/, "")}/${id}`);
        const { start, end } = fieldsOf(json["suggestedWindow"]);
        const [from, until] = [Date.parse(String(start)), Date.parse(String(end))];
        return from <= until ? { from, until } : null;
      }),
  };
}

/**
 * Whether an order may be refused for the certificate that it replaces: of another account or authority, or replaced
 * before. RFC 9773 §5 names one type, and servers use others; without it the order is the same.
 */
function isOfPredecessor(error: unknown): boolean {
  return (
    error instanceof AcmeError &&
    error.type !== null &&
    !["accountDoesNotExist", "badNonce", "rateLimited"].includes(error.type)
  );
}

/** The server has read the request, and does not do what it asks. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof AcmeError &&
    error.type !== null &&
    !["badNonce", "rateLimited", "serverInternal"].includes(error.type)
  );
}

/** As the server asks, or longer each time. */
function waitOf({ retryAfter }: AcmeAnswer, n: number, now: number): number {
  const asked = retryAfterMs(retryAfter, now);
  if (asked !== null) return Math.min(Math.max(asked, pollMs.least), pollMs.asked);
  return Math.min(pollMs.first * 1.5 ** n, pollMs.most);
}

async function pause(clock: Clock, signal: AbortSignal, ms: number): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = clock.after(ms, resolve);
  const stop = (): void => reject(signal.reason as Error);
  signal.addEventListener("abort", stop);
  try {
    await promise;
  } finally {
    timer.cancel();
    signal.removeEventListener("abort", stop);
  }
}

// Gets a certificate from an ACME server (RFC 8555 §7): account, order, authorizations by HTTP-01 (§8.3), the CSR, the
// chain. Whatever the server does, an order ends: by its deadline, by the stop of the program, or by a count of its own.
import type { KeyObject } from "node:crypto";
import { minuteMs, type Clock } from "../../clock.ts";
import type { Https } from "../../https.ts";
import { AcmeError, fieldsOf, problemOf, retryAfterMs, said } from "./error.ts";
import { createRequests, thumbprint, type AcmeAnswer, type Requests } from "./requests.ts";

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
const mostAuthorizations = 10;
const mostPolls = 100;
const pollMs = { least: 1_000, first: 1_000, most: 15_000, asked: minuteMs };
const tokenForm = /^[A-Za-z0-9_-]{16,256}$/;

export function createAcmeClient(deps: {
  https: Https;
  directoryUrl: string;
  key: KeyObject;
  email: string | null;
  answers: ChallengeAnswers;
  clock: Clock;
  /** The stop of the program. */
  signal: AbortSignal;
}): AcmeClient {
  const { key, email, answers, clock } = deps;
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

  const accountOf = async (requests: Requests): Promise<string> => {
    if (account !== null) return account;
    const { newAccount } = await requests.directory();
    const contact = email === null ? {} : { contact: [`mailto:${email}`] };
    const made = await requests.post(newAccount, { termsOfServiceAgreed: true, ...contact }, null);
    if (made.location === null) throw new AcmeError("the ACME server gives no address of the account");
    return (account = made.location);
  };

  const order = async (requests: Requests, signal: AbortSignal, ordered: Ordered): Promise<string> => {
    const own = await accountOf(requests);
    const post = (url: string, payload: object | null): Promise<AcmeAnswer> =>
      requests.post(url, payload, own);
    const poll = async (
      url: string,
      until: (json: AcmeAnswer["json"]) => boolean,
    ): Promise<AcmeAnswer["json"]> => {
      for (let n = 0; n < mostPolls; n++) {
        const answer = await post(url, null);
        if (until(answer.json)) return answer.json;
        await pause(clock, signal, waitOf(answer, n, clock.now()));
      }
      throw new AcmeError("the ACME server does not come to an end");
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
      const offered = Array.isArray(json["challenges"]) ? json["challenges"].map(fieldsOf) : [];
      const challenge = offered.find(({ type }) => type === "http-01");
      const [token, at] = [challenge?.["token"], challenge?.["url"]];
      if (typeof token !== "string" || !tokenForm.test(token) || typeof at !== "string")
        throw new AcmeError(`the ACME server offers no HTTP-01 challenge for ${name}`);
      answers.add(token, `${token}.${mark}`);
      try {
        await post(at, {});
        const ended = await poll(url, ({ status }) => status !== "pending" && status !== "processing");
        if (ended["status"] === "valid") return;
        const proofs = Array.isArray(ended["challenges"]) ? ended["challenges"].map(fieldsOf) : [];
        throw failed(name, proofs.find(({ error }) => error !== undefined)?.["error"]);
      } finally {
        answers.remove(token);
      }
    };

    const { newOrder, renewalInfo } = await requests.directory();
    const identifiers = ordered.names.map((value) => ({ type: "dns", value }));
    const replaces = renewalInfo !== null && ordered.replaces !== null ? { replaces: ordered.replaces } : {};
    const made = await post(newOrder, { identifiers, ...replaces });
    const urls = made.json["authorizations"];
    const { location } = made;
    if (location === null || !Array.isArray(urls) || urls.length > mostAuthorizations)
      throw new AcmeError("the ACME server's answer is not an order");
    for (const url of urls) await authorize(String(url));
    const ready = await poll(location, ({ status }) => status !== "pending");
    if (ready["status"] === "invalid") throw failed("the order failed", ready["error"]);
    await post(String(ready["finalize"]), { csr: ordered.csr.toString("base64url") });
    const ended = await poll(location, ({ status }) => status === "valid" || status === "invalid");
    if (ended["status"] !== "valid") throw failed("the order failed", ended["error"]);
    return (await post(String(ended["certificate"]), null)).text;
  };

  /** A server that has forgotten our account gets it once more, and one that knows no predecessor is asked without. */
  const orderOnce = async (ordered: Ordered): Promise<string> => {
    try {
      return await within((requests, signal) => order(requests, signal, ordered));
    } catch (error) {
      const type = error instanceof AcmeError ? error.type : null;
      if (type === "accountDoesNotExist" && account !== null) {
        account = null;
        return within((requests, signal) => order(requests, signal, ordered));
      }
      if (type === "alreadyReplaced" && ordered.replaces !== null)
        return within((requests, signal) => order(requests, signal, { ...ordered, replaces: null }));
      throw error;
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

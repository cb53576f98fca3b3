// The MTA-STS policies of recipient domains (RFC 8461): announced by a TXT record with an id, fetched over HTTPS, kept in
// the store for as long as they say, so that a restart forgets none. A new id fetches the policy again; a fetch that fails
// leaves the old one in force while it lives, and is not tried again for five minutes. One fetch of a domain at a time;
// the accounts share the fetches (fairness.ts), so that one account's silent policy hosts delay no other's mail.
import { dayMs, minuteMs, type Clock } from "../clock.ts";
import { announcedId, mtaStsName, readPolicy } from "../dns/mta-sts.ts";
import type { Resolver } from "../dns/resolver.ts";
import { createFairMap } from "../fairness/fair-map.ts";
import { createFairSlots } from "../fairness.ts";
import type { Owner } from "../fairness.ts";
import type { Log } from "../log.ts";
import { safeText } from "../mail/reply.ts";
import type { KeptMtaStsPolicy } from "../model/mta-sts.ts";
import type { TlsFailureType, TlsResult } from "../model/tls-result.ts";
import type { Store } from "../store/store.ts";
import type { FetchPolicy } from "./fetch.ts";

/** Fetches at a time that answer soon, and those that take longer, each of which costs a connection. */
const slots = 20;
const patienceMs = 1_000;
const lingering = 200;
/** A fetch that failed is not tried again before. */
const failedMs = 5 * minuteMs;
const failuresMost = 10_000;
/** A policy that is older, or half through its life, is fetched again while it is used, so that it does not end. */
const freshMs = dayMs;

export interface MtaSts {
  /**
   * The policy that holds for mail to the domain; null: none. Waits for a fetch where it is the first. Rejects where the
   * store cannot be read: a policy that is not known must not be taken for none.
   */
  policyOf(domain: string, owner: Owner): Promise<KeptMtaStsPolicy | null>;
  stop(): void;
}

class PolicyInvalid extends Error {}

export interface MtaStsDeps {
  store: Pick<Store, "mtaStsPolicy" | "putMtaStsPolicy">;
  resolver: Pick<Resolver, "txt">;
  fetch: FetchPolicy;
  /** A policy is announced and could not be fetched for mail of the owner. */
  onFailed: (result: TlsResult, owner: Owner) => void;
  clock: Clock;
  log: Log;
}

interface Fetching {
  done: Promise<KeptMtaStsPolicy | null>;
  /** Another owner's turn may come sooner. */
  alsoFor(owner: Owner): void;
}

export function createMtaSts({ store, resolver, fetch, onFailed, clock, log }: MtaStsDeps): MtaSts {
  const places = createFairSlots({ slots, patienceMs, lingering, clock });
  const failedAt = createFairMap<number>(failuresMost);
  const fetching = new Map<string, Fetching>();
  const stopping = new AbortController();

  /** Rejects with why there is none. */
  const fetchNow = async (
    domain: string,
    id: string,
    owner: Owner,
    signal: AbortSignal,
  ): Promise<KeptMtaStsPolicy> => {
    const policy = readPolicy(await fetch(domain, owner, signal));
    if (!policy.ok) throw new PolicyInvalid(policy.issue);
    const { maxAgeSeconds, mode, mx } = policy.value;
    const now = clock.now();
    const kept = { domain, id, mode, mx, fetchedAt: now, expiresAt: now + 1000 * maxAgeSeconds };
    try {
      await store.putMtaStsPolicy(kept);
    } catch (error) {
      log.error({ domain, err: error }, "the MTA-STS policy of a domain could not be kept");
    }
    log.info({ domain, id, mode }, "MTA-STS policy fetched");
    return kept;
  };

  const begin = (domain: string, id: string): Fetching => {
    const { promise: done, resolve } = Promise.withResolvers<KeptMtaStsPolicy | null>();
    const abort = new AbortController();
    let begun = false;
    const run = (owner: Owner, leave: () => void): void => {
      if (begun) return leave();
      begun = true;
      void fetchNow(domain, id, owner, AbortSignal.any([abort.signal, stopping.signal]))
        .catch((error: unknown) => {
          failedAt.set(owner, `${domain} ${id}`, clock.monotonic());
          if (!stopping.signal.aborted) onFailed(unfetched(domain, error), owner);
          log.info({ domain, id, why: String(error) }, "MTA-STS policy not fetched");
          return null;
        })
        .then((policy) => {
          fetching.delete(domain);
          leave();
          resolve(policy);
        });
    };
    const asked = new Set<Owner>();
    const alsoFor = (owner: Owner): void => {
      if (begun || asked.has(owner)) return;
      asked.add(owner);
      places.enter(owner, (leave) => run(owner, leave), { giveUp: () => abort.abort() });
    };
    return { done, alsoFor };
  };

  /** The policy as it stands at the domain now; null: it could not be fetched, just now or a moment ago. */
  const fetched = (domain: string, id: string, owner: Owner): Promise<KeptMtaStsPolicy | null> => {
    const failed = failedAt.get(`${domain} ${id}`);
    if (failed !== undefined && clock.monotonic() - failed < failedMs) return Promise.resolve(null);
    const already = fetching.get(domain);
    const work = already ?? begin(domain, id);
    if (!already) fetching.set(domain, work);
    work.alsoFor(owner);
    return work.done;
  };

  const isAging = ({ fetchedAt, expiresAt }: KeptMtaStsPolicy, now: number): boolean =>
    now - fetchedAt > Math.min(freshMs, (expiresAt - fetchedAt) / 2) || now < fetchedAt;

  const find = async (domain: string, owner: Owner): Promise<KeptMtaStsPolicy | null> => {
    const answer = await resolver.txt(mtaStsName(domain), owner);
    const id = answer.kind === "found" ? announcedId(answer.records) : null;
    const kept = await store.mtaStsPolicy(domain);
    const now = clock.now();
    const live = kept !== null && now < kept.expiresAt ? kept : null;
    if (id === null) return live;
    if (live?.id !== id) return (await fetched(domain, id, owner)) ?? live;
    if (isAging(live, now)) void fetched(domain, id, owner);
    return live;
  };

  return {
    async policyOf(domain, owner) {
      const policy = await find(domain, owner);
      return policy?.mode === "none" ? null : policy;
    },
    stop: () => stopping.abort(),
  };
}

/** As TLS reports count it (RFC 8460 §4.3.2.2). */
function unfetched(domain: string, error: unknown): TlsResult {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const type: TlsFailureType =
    error instanceof PolicyInvalid
      ? "sts-policy-invalid"
      : /CERT|^UNABLE_TO_|^ERR_TLS|SIGNATURE/.test(code)
        ? "sts-webpki-invalid"
        : "sts-policy-fetch-error";
  return {
    domain,
    policy: { type: "sts", strings: [], domain, mxHosts: [] },
    failure: { type, sendingIp: null, mxHost: null, receivingIp: null },
    reason: error instanceof Error ? safeText(error.message) : "",
  };
}

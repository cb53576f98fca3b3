// Manages sender domains: creates and changes them with their DKIM keys, and finds the one of each message. A domain can send
// once it is verified (verification.ts), and for 72 hours while it is degraded.
import type { Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import { Refusal } from "../errors.ts";
import type { IdMint } from "../ids.ts";
import type { SenderDomain } from "../model/domain.ts";
import type { HasJobs } from "../service.ts";
import { LimitReached } from "../store/store.ts";
import type { Store } from "../store/store.ts";
import type { Domains, DomainWriting } from "./domains.ts";
import { makeKeys } from "./keys.ts";
import { checkedName, checkNames, checkSelector, invalid } from "./names.ts";
import { recordsFor, returnPathDomain } from "./records.ts";
import type { SendingHost } from "./records.ts";
import { changedMeanwhile, createVerification } from "./verification.ts";

export interface DomainsDeps {
  store: Pick<Store, "createDomain" | "countDomains" | "domainByName" | "domainsToCheck" | "saveDomain">;
  /** `resolver.uncached`: a record is often verified just after it was changed. */
  resolver: Resolver;
  config: SendingHost;
  /** Of the account's IP pools: SPF is to name them too. */
  poolAddresses?: (accountKey: number) => string[];
  clock: Clock;
  mint: IdMint;
}

export function createDomains(deps: DomainsDeps): Domains & HasJobs {
  const { store, clock } = deps;
  const host: SendingHost = {
    hostname: deps.config.hostname.toLowerCase(),
    sources: deps.config.sources,
    publicHost: deps.config.publicHost.toLowerCase(),
  };
  /** What an account's domains are to publish names its pools' addresses beside the server's own. */
  const hostOf = (accountKey: number): SendingHost => {
    const sources = new Set([...host.sources, ...(deps.poolAddresses?.(accountKey) ?? [])]);
    return { ...host, sources: [...sources] };
  };
  const verification = createVerification({ ...deps, host, hostOf });
  const refuseOver = async (accountKey: number, most: number): Promise<void> => {
    const has = await store.countDomains(accountKey);
    if (has >= most) throw new LimitReached(has);
  };

  /** Saves what was made of a domain, with the records that it then publishes. */
  const change = async (
    domain: SenderDomain,
    changes: Partial<SenderDomain>,
    into: DomainWriting,
  ): Promise<SenderDomain> => {
    const changed = { ...domain, ...changes, updatedAt: clock.now() };
    const records = recordsFor(changed, hostOf(domain.accountKey), domain.records);
    const unseen = records.some((record) => record.status === "unchecked");
    const next = { ...changed, records, checkedAt: unseen ? null : changed.checkedAt };
    if (!(await into.saveDomain(next))) throw changedMeanwhile(domain.name);
    return { ...next, revision: next.revision + 1 };
  };

  return {
    async add(accountKey, given, into = store, dkim = {}, most) {
      const name = checkedName(given);
      checkSelector(dkim.selector, name, "dkim.selector");
      if (await store.domainByName(accountKey, name)) throw duplicate(name);
      if (most !== undefined) await refuseOver(accountKey, most); // before keys are made, which takes long
      const dkimKeys = await makeKeys(dkim, [], "active");
      if (dkimKeys === null) throw new Error("a domain without keys has a selector taken");
      const now = clock.now();
      const published = { name, dkimKeys, returnPathDomain: returnPathDomain(name), trackingDomain: null };
      const wanted = {
        ...published,
        id: deps.mint("dom", now),
        accountKey,
        status: "pending" as const,
        records: recordsFor(published, hostOf(accountKey)),
        createdAt: now,
        updatedAt: now,
        verifiedAt: null,
        checkedAt: null,
        failingSince: null,
        returnPathBefore: null,
        trackingEnabled: false,
        trackOpens: false,
        trackClicks: false,
        allowSubdomains: true,
        revision: 0,
      };
      const created = await into.createDomain(wanted, most);
      if (!created) throw duplicate(name);
      return created;
    },

    async update(domain, { returnPathDomain: wanted, ...changes }, into = store) {
      const next = {
        ...changes,
        returnPathDomain:
          wanted === null ? returnPathDomain(domain.name) : (wanted ?? domain.returnPathDomain),
      };
      checkNames(domain, next);
      return change(domain, { ...next, returnPathBefore: beforeOf(domain, next.returnPathDomain) }, into);
    },

    async rotate(domain, dkim, into = store) {
      checkSelector(dkim.selector, domain.name, "selector");
      const made = await makeKeys(dkim, domain.dkimKeys, "pending");
      if (made === null)
        throw invalid(
          "selector",
          "is, with the letter e or r behind it, the name of a key that is published",
        );
      const kept = domain.dkimKeys.filter((key) => key.status !== "pending");
      return change(domain, { dkimKeys: [...kept, ...made] }, into);
    },

    suspend: (domain, into = store) => change(domain, { status: "suspended" }, into),
    async resume(domain, into = store) {
      if (domain.status !== "suspended") return domain;
      return change(domain, { status: "pending", checkedAt: null, failingSince: null }, into);
    },

    verify: verification.verify,

    async senderFor(accountKey, fromDomain) {
      const from = fromDomain.toLowerCase();
      let nearest: SenderDomain | null = null;
      for (const name of selfAndParents(from)) {
        const domain = await store.domainByName(accountKey, name);
        const speaks = domain !== null && (name === from || domain.allowSubdomains);
        if (speaks && (domain.status === "verified" || domain.status === "degraded"))
          return { ok: true, domain };
        if (speaks) nearest ??= domain;
        if (domain?.status === "suspended") break; // what the operator stopped does not send by its parent
      }
      return { ok: false, domain: nearest };
    },

    onStatus: verification.onStatus,
    recheck: verification.recheck,
    jobs: verification.jobs,
  };
}

/** Mail that is sent meanwhile keeps the return path that is known to work. */
function beforeOf(domain: SenderDomain, next: string): string | null {
  const { status, returnPathDomain: now, returnPathBefore: before } = domain;
  const inUse = before ?? (status === "verified" || status === "degraded" ? now : null);
  return inUse === next ? null : inUse;
}

function duplicate(name: string): Refusal {
  return new Refusal("conflict", `The account already has the domain ${name}.`, { domain: name });
}

/** `a.b.example.test`, `b.example.test`, `example.test`: relaxed alignment, down to two labels. */
function selfAndParents(name: string): string[] {
  const labels = name.split(".");
  const last = Math.max(1, labels.length - 1);
  return Array.from({ length: last }, (_, from) => labels.slice(from).join("."));
}

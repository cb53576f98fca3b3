// Manages sender domains: creates them with their DKIM keys, verifies their DNS records, and finds the one of each
// message. A domain can send once it is verified, and for 72 hours while it is degraded.
import { hourMs, type Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import { Refusal } from "../errors.ts";
import type { IdMint } from "../ids.ts";
import type { DnsRecord } from "../model/dns-record.ts";
import type { SenderDomain } from "../model/domain.ts";
import type { HasJobs } from "../service.ts";
import { LimitReached } from "../store/store.ts";
import type { Store } from "../store/store.ts";
import { createCheckLimiter } from "./check-limiter.ts";
import { checkRecords, statusAfter } from "./check.ts";
import type { Domains, DomainWriting, StatusListener } from "./domains.ts";
import { keysAfter, makeKeys } from "./keys.ts";
import { checkedName, checkNames, checkSelector, invalid } from "./names.ts";
import { recordsFor, returnPathDomain } from "./records.ts";
import type { SendingHost } from "./records.ts";

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

/** Domains of one account in a round of re-checks; the rest waits for the next. */
const recheckLimit = 200;
const recheckAtOnce = 4;
/** How often a check is tried while the domain changes during it. */
const mostTries = 3;

export function createDomains(deps: DomainsDeps): Domains & HasJobs {
  const { store, clock } = deps;
  const listeners: StatusListener[] = [];
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
  let rechecking = false;
  const refuseOver = async (accountKey: number, most: number): Promise<void> => {
    const has = await store.countDomains(accountKey);
    if (has >= most) throw new LimitReached(has);
  };

  /** What the DNS says of a domain as it was read. */
  const look = async (domain: SenderDomain): Promise<SenderDomain> => {
    // Made afresh: the host name or the addresses may have changed since.
    const sending = hostOf(domain.accountKey);
    const seen = await checkRecords(deps.resolver, recordsFor(domain, sending), host, domain.accountKey);
    const now = clock.now();
    const dkimKeys = keysAfter(domain.dkimKeys, seen, domain.name, now);
    const records = recordsFor({ ...domain, dkimKeys }, sending, seen);
    const status = statusAfter(domain, records, now);
    const returnPathBefore = records.every(isReturnPathReady) ? null : domain.returnPathBefore;
    return { ...domain, dkimKeys, returnPathBefore, records, ...status, checkedAt: now, updatedAt: now };
  };

  /** If the domain changed during the DNS look-ups, the check is repeated with its new state. */
  const lookAndSave = async (given: SenderDomain): Promise<SenderDomain> => {
    let domain = given;
    for (let tries = 0; tries < mostTries; tries++) {
      const checked = await look(domain);
      if (await store.saveDomain(checked)) {
        if (checked.status !== domain.status)
          for (const listener of listeners) listener(checked, domain.status);
        return { ...checked, revision: checked.revision + 1 };
      }
      const now = await store.domainByName(domain.accountKey, domain.name);
      if (now === null) throw new Refusal("resource_not_found", "There is no such domain.");
      domain = now;
    }
    throw changedMeanwhile(domain.name);
  };

  const limiter = createCheckLimiter();
  const verify = (domain: SenderDomain): Promise<SenderDomain> =>
    limiter.run(domain.accountKey, domain.name, () => lookAndSave(domain));

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

  /** Re-checks an account's domains, a few at once; the limiter leaves capacity for checks that clients request. */
  const recheckOf = async (domains: SenderDomain[]): Promise<void> => {
    const left = domains.values();
    const some = Array.from({ length: recheckAtOnce }, async () => {
      for (const domain of left) await verify(domain).catch(ifNotChanged);
    });
    for (const done of await Promise.allSettled(some)) if (done.status === "rejected") throw done.reason;
  };

  const recheck = async (): Promise<void> => {
    if (rechecking) return;
    rechecking = true;
    try {
      const now = clock.now();
      const due = await store.domainsToCheck(now - hourMs, now - 24 * hourMs, recheckLimit);
      const checks = [...Map.groupBy(due, ({ accountKey }) => accountKey).values()].map(recheckOf);
      for (const done of await Promise.allSettled(checks)) if (done.status === "rejected") throw done.reason;
    } finally {
      rechecking = false;
    }
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

    verify,

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

    onStatus: (listener) => void listeners.push(listener),
    recheck,
    jobs: [{ name: "recheck-domains", cron: "*/10 * * * *", run: recheck }],
  };
}

/** Mail that is sent meanwhile keeps the return path that is known to work. */
function beforeOf(domain: SenderDomain, next: string): string | null {
  const { status, returnPathDomain: now, returnPathBefore: before } = domain;
  const inUse = before ?? (status === "verified" || status === "degraded" ? now : null);
  return inUse === next ? null : inUse;
}

function isReturnPathReady({ purpose, status }: DnsRecord): boolean {
  return (purpose !== "return_path" && purpose !== "spf") || status === "ok";
}

function changedMeanwhile(name: string): Refusal {
  return new Refusal("conflict", `${name} was changed by another request meanwhile; try again.`, {
    domain: name,
  });
}

/** Whatever is changed or deleted while a round asks after it is the next round's. */
function ifNotChanged(error: unknown): void {
  if (!(error instanceof Refusal)) throw error;
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

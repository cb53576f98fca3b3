// Verifies sender domains: looks up their DNS records, saves what they came to, and repeats that hourly or daily. What the
// records of a domain come to is check.ts's.
import { hourMs, type Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import { Refusal } from "../errors.ts";
import type { DnsRecord } from "../model/dns-record.ts";
import type { SenderDomain } from "../model/domain.ts";
import type { HasJobs } from "../service.ts";
import type { Store } from "../store/store.ts";
import { createCheckLimiter } from "./check-limiter.ts";
import { checkRecords, statusAfter } from "./check.ts";
import type { Domains, StatusListener } from "./domains.ts";
import { keysAfter } from "./keys.ts";
import { recordsFor, type SendingHost } from "./records.ts";

export interface VerificationDeps {
  store: Pick<Store, "domainByName" | "domainsToCheck" | "saveDomain">;
  resolver: Resolver;
  host: SendingHost;
  /** What an account's domains are to publish: `host`, with the addresses of the account's pools. */
  hostOf(accountKey: number): SendingHost;
  clock: Clock;
}

/** Domains of one account in a round of re-checks; the rest waits for the next. */
const recheckLimit = 200;
const recheckAtOnce = 4;
/** How often a check is tried while the domain changes during it. */
const mostTries = 3;

export function createVerification(
  deps: VerificationDeps,
): Pick<Domains, "verify" | "recheck" | "onStatus"> & HasJobs {
  const { store, host, hostOf, clock } = deps;
  const listeners: StatusListener[] = [];
  let rechecking = false;

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
    verify,
    recheck,
    onStatus: (listener) => void listeners.push(listener),
    jobs: [{ name: "recheck-domains", cron: "*/10 * * * *", run: recheck }],
  };
}

function isReturnPathReady({ purpose, status }: DnsRecord): boolean {
  return (purpose !== "return_path" && purpose !== "spf") || status === "ok";
}

export function changedMeanwhile(name: string): Refusal {
  return new Refusal("conflict", `${name} was changed by another request meanwhile; try again.`, {
    domain: name,
  });
}

/** Whatever is changed or deleted while a round asks after it is the next round's. */
function ifNotChanged(error: unknown): void {
  if (!(error instanceof Refusal)) throw error;
}

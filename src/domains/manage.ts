// Sender domains from the first day on: made with their keys, asked after in the DNS, and looked up
// for each message. A domain sends once it is verified, and for 72 hours more while it is degraded.
import type { Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import { Refusal } from "../errors.ts";
import type { IdMint } from "../ids.ts";
import type { Log } from "../log.ts";
import { parseDomain } from "../mail/address.ts";
import { generateDkimKey } from "../mail/dkim.ts";
import type { DkimKey, SenderDomain, Store } from "../store/store.ts";
import { checkRecords, statusAfter } from "./check.ts";
import type { Domains } from "./domains.ts";
import { longestPrefix, recordsFor, returnPathDomain } from "./records.ts";
import type { SendingHost } from "./records.ts";

export interface DomainsDeps {
  store: Pick<Store, "createDomain" | "domainByName" | "domainsToCheck" | "saveDomainCheck">;
  /** Without a cache of its own (`resolver.uncached`): whoever verifies has just changed a record. */
  resolver: Resolver;
  config: SendingHost;
  clock: Clock;
  log: Log;
  mint: IdMint;
}

const hourMs = 3_600_000;
/** Domains of one round of re-checks; the rest waits for the next. */
const recheckLimit = 200;

export function createDomains(deps: DomainsDeps): Domains {
  const { store, clock, log } = deps;
  const host: SendingHost = { hostname: deps.config.hostname.toLowerCase(), sources: deps.config.sources };
  let rechecking = false;

  const verify = async (domain: SenderDomain): Promise<SenderDomain> => {
    // Made afresh: the host name or the addresses may have changed since.
    const records = await checkRecords(deps.resolver, recordsFor(domain.name, domain.dkimKeys, host), host);
    const now = clock.now();
    const checked = {
      ...domain,
      records,
      ...statusAfter(domain, records, now),
      checkedAt: now,
      updatedAt: now,
    };
    await store.saveDomainCheck(checked);
    if (checked.status !== domain.status) tellChange(log, domain, checked);
    return checked;
  };

  return {
    async add(accountKey, given, into = store) {
      const name = checkedName(given);
      if (await store.domainByName(accountKey, name)) throw duplicate(name);
      const dkimKeys = await makeKeys();
      const now = clock.now();
      const created = await into.createDomain({
        id: deps.mint("dom", now),
        accountKey,
        name,
        status: "pending",
        returnPathDomain: returnPathDomain(name),
        records: recordsFor(name, dkimKeys, host),
        dkimKeys,
        createdAt: now,
        updatedAt: now,
        verifiedAt: null,
        checkedAt: null,
        failingSince: null,
      });
      if (!created) throw duplicate(name);
      return created;
    },

    verify,

    async senderFor(accountKey, fromDomain) {
      let nearest: SenderDomain | null = null;
      for (const name of selfAndParents(fromDomain.toLowerCase())) {
        const domain = await store.domainByName(accountKey, name);
        if (domain?.status === "verified" || domain?.status === "degraded") return { ok: true, domain };
        nearest ??= domain;
        if (domain?.status === "suspended") break; // what the operator stopped does not send by its parent
      }
      return { ok: false, domain: nearest };
    },

    async recheck() {
      if (rechecking) return;
      rechecking = true;
      try {
        const now = clock.now();
        for (const domain of await store.domainsToCheck(now - hourMs, now - 24 * hourMs, recheckLimit))
          await verify(domain);
      } finally {
        rechecking = false;
      }
    },
  };
}

/** RSA for every receiver there is, Ed25519 beside it (RFC 8463 §5). */
async function makeKeys(): Promise<DkimKey[]> {
  const [rsa, ed25519] = await Promise.all([
    generateDkimKey("rsa-sha256"),
    generateDkimKey("ed25519-sha256"),
  ]);
  return [
    { selector: "svc1", algorithm: "rsa-sha256", ...rsa, status: "active" },
    { selector: "svc1e", algorithm: "ed25519-sha256", ...ed25519, status: "active" },
  ];
}

/** A-label form, lower case. Throws Refusal validation_failed. */
function checkedName(given: string): string {
  const parsed = parseDomain(given.trim().replace(/\.$/, ""));
  const issue = !parsed.ok
    ? parsed.issue
    : parsed.value.length + longestPrefix > 253
      ? "is too long for the names of its DKIM records"
      : null;
  if (parsed.ok && issue === null) return parsed.value;
  const errors = [{ field: "name", code: "validation_failed" as const, issue: issue ?? "is no domain name" }];
  throw new Refusal("validation_failed", `The domain name ${issue ?? "is not valid"}.`, { errors });
}

function duplicate(name: string): Refusal {
  return new Refusal("conflict", `The account has the domain ${name} already.`, { domain: name });
}

/** `a.b.example.test`, `b.example.test`, `example.test`: relaxed alignment, down to two labels. */
function selfAndParents(name: string): string[] {
  const labels = name.split(".");
  const last = Math.max(1, labels.length - 1);
  return Array.from({ length: last }, (_, from) => labels.slice(from).join("."));
}

function tellChange(log: Log, before: SenderDomain, after: SenderDomain): void {
  const failing = after.records
    .filter((record) => record.required && record.status !== "ok")
    .map((record) => record.issue);
  const fields = { domain: after.name, before: before.status, status: after.status, failing };
  if (after.status === "verified") log.info(fields, "a sender domain is verified");
  else log.warn(fields, "a sender domain fails its DNS checks");
}

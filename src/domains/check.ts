// Looks up each record of a domain and computes the domain's status. A failed look-up makes a record "unknown", which
// neither degrades a verified domain nor verifies a pending one.
import { hourMs } from "../clock.ts";
import type { DnsAnswer, MxRecord, Resolver } from "../dns/resolver.ts";
import type { Owner } from "../fairness.ts";
import type { DnsRecord } from "../model/dns-record.ts";
import type { SenderDomain } from "../model/domain.ts";
import { verifyDkim, verifyDmarc, verifyReturnPath, printable } from "./verify-records.ts";
import { verifySpf } from "./verify-spf.ts";
import type { Verdict } from "./verify-records.ts";
import type { SendingHost } from "./records.ts";

/** How long a domain that was verified goes on sending while a required record fails. */
export const graceMs = 72 * hourMs;

const maxFound = 10;

/** The records with what the DNS has for each. Never throws for any DNS answer. */
export async function checkRecords(
  resolver: Resolver,
  records: DnsRecord[],
  host: SendingHost,
  accountKey: number,
): Promise<DnsRecord[]> {
  // A share of its own: a zone that does not answer must not delay the account's mail.
  const owner = `domains ${accountKey}`;
  const asked = await Promise.all(
    records.map(async (record) => ({ record, ...(await ask(resolver, record, owner)) })),
  );
  return Promise.all(
    asked.map(async (each) => ({
      ...each.record,
      found: each.found.slice(0, maxFound).map(printable),
      ...(each.record.purpose === "spf" && each.failed === null
        ? await verifySpf(each.record, each.found, host, resolver, owner)
        : verify(each, host)),
    })),
  );
}

interface LookedUp {
  record: DnsRecord;
  /** As they stand in the DNS. */
  found: string[];
  mx: MxRecord[];
  /** Why the look-up failed; null if it did not. */
  failed: string | null;
}

async function ask(resolver: Resolver, record: DnsRecord, owner: Owner): Promise<Omit<LookedUp, "record">> {
  if (record.type === "MX") {
    const { records, failed } = recordsOf(await resolver.mx(record.name, owner));
    return { found: records.map((mx) => `${mx.preference} ${mx.exchange || "."}`), mx: records, failed };
  }
  const { records, failed } = recordsOf(
    await (record.type === "TXT" ? resolver.txt(record.name, owner) : resolver.cname(record.name, owner)),
  );
  return { found: records, mx: [], failed };
}

function recordsOf<T>(answer: DnsAnswer<T>): { records: T[]; failed: string | null } {
  if (answer.kind === "failed") return { records: [], failed: answer.why };
  return { records: answer.kind === "found" ? answer.records : [], failed: null };
}

function verify({ record, found, mx, failed }: LookedUp, host: SendingHost): Verdict {
  if (failed !== null)
    return {
      status: "unknown",
      issue: `The DNS lookup of ${record.name} failed (${printable(failed)}); it will be repeated.`,
    };
  switch (record.purpose) {
    case "dkim":
      return verifyDkim(record, found);
    case "return_path":
      return verifyReturnPath(record, mx, host);
    case "spf":
      throw new Error("SPF is verified with further look-ups (verify-spf.ts)");
    case "dmarc":
      return verifyDmarc(record, found);
    case "tracking":
      return found.includes(record.value)
        ? { status: "ok", issue: null }
        : {
            status: "missing",
            issue: `There is no ${record.type} record at ${record.name} with the value shown; publish it.`,
          };
  }
}

/** The domain's status after a check at `now`. A suspended domain stays suspended until the operator resumes it. */
export function statusAfter(
  domain: SenderDomain,
  records: DnsRecord[],
  now: number,
): Pick<SenderDomain, "status" | "verifiedAt" | "failingSince"> {
  const required = records.filter((record) => record.required);
  const { status, verifiedAt, failingSince } = domain;
  if (status === "suspended") return { status, verifiedAt, failingSince };
  if (required.every((record) => record.status === "ok")) {
    const held = status === "verified" || status === "degraded";
    return { status: "verified", verifiedAt: held ? verifiedAt : now, failingSince: null };
  }
  const fails = required.some((record) => record.status === "missing" || record.status === "mismatch");
  if (!fails || status === "pending" || status === "failed") return { status, verifiedAt, failingSince };
  const since = failingSince ?? now;
  return { status: now - since >= graceMs ? "failed" : "degraded", verifiedAt, failingSince: since };
}

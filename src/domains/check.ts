// Asks the DNS about each record of a domain, and says what the domain's status is then. A look-up
// that failed is "unknown": it takes nothing from a verified domain and gives nothing to a pending one.
import { hourMs } from "../clock.ts";
import type { DnsAnswer, MxRecord, Resolver } from "../dns/resolver.ts";
import type { Owner } from "../fairness.ts";
import type { DnsRecord } from "../model/dns-record.ts";
import type { SenderDomain } from "../model/domain.ts";
import { judgeDkim, judgeDmarc, judgeReturnPath, printable } from "./verify-records.ts";
import { judgeSpf } from "./judge-spf.ts";
import type { Verdict } from "./verify-records.ts";
import type { SendingHost } from "./records.ts";

/** How long a domain that was verified goes on sending while a required record fails. */
export const graceMs = 72 * hourMs;

const maxFound = 10;

/** The records with what was seen of each. Never throws for anything that the DNS says. */
export async function checkRecords(
  resolver: Resolver,
  records: DnsRecord[],
  host: SendingHost,
  accountKey: number,
): Promise<DnsRecord[]> {
  // Beside the account's mail, which its own zone's silence is not to delay.
  const owner = `domains ${accountKey}`;
  const asked = await Promise.all(
    records.map(async (record) => ({ record, ...(await ask(resolver, record, owner)) })),
  );
  return Promise.all(
    asked.map(async (each) => ({
      ...each.record,
      found: each.found.slice(0, maxFound).map(printable),
      ...(each.record.purpose === "spf" && each.failed === null
        ? await judgeSpf(each.record, each.found, host, resolver, owner)
        : judge(each, host)),
    })),
  );
}

interface Asked {
  record: DnsRecord;
  /** As they stand in the DNS. */
  found: string[];
  mx: MxRecord[];
  /** Why nothing can be told; null where it can. */
  failed: string | null;
}

async function ask(resolver: Resolver, record: DnsRecord, owner: Owner): Promise<Omit<Asked, "record">> {
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

function judge({ record, found, mx, failed }: Asked, host: SendingHost): Verdict {
  if (failed !== null)
    return {
      status: "unknown",
      issue: `The DNS lookup of ${record.name} failed (${printable(failed)}); it will be repeated.`,
    };
  switch (record.purpose) {
    case "dkim":
      return judgeDkim(record, found);
    case "return_path":
      return judgeReturnPath(record, mx, host);
    case "spf":
      throw new Error("SPF is judged with further look-ups (judge-spf.ts)");
    case "dmarc":
      return judgeDmarc(record, found);
    case "tracking":
      return found.includes(record.value)
        ? { status: "ok", issue: null }
        : {
            status: "missing",
            issue: `There is no ${record.type} record at ${record.name} with the value shown; publish it.`,
          };
  }
}

/** What the records make of the domain at `now`. Suspended is the operator's word and stays. */
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

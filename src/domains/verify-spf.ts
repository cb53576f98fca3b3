// Verifies that SPF (RFC 7208) passes for every address that sends with the return path. Any record that passes is
// accepted: it is evaluated as a receiver does (spf.ts), and the issue names the term that decided.
import type { Resolver } from "../dns/resolver.ts";
import type { Owner } from "../fairness.ts";
import type { DnsRecord } from "../model/dns-record.ts";
import { mismatch, missing, ok, printable, type Verdict } from "./verify-records.ts";
import type { SendingHost } from "./records.ts";
import { checkHost, type SpfVerdict } from "./spf.ts";

type SpfResolver = Pick<Resolver, "a" | "aaaa" | "mx" | "txt">;

export async function verifySpf(
  record: DnsRecord,
  texts: string[],
  host: SendingHost,
  resolver: SpfResolver,
  owner?: Owner,
): Promise<Verdict> {
  const policies = texts.filter((text) => /^v=spf1(?: |$)/i.test(text));
  const [policy] = policies;
  if (policy === undefined) return missing(record);
  if (policies.length > 1)
    return mismatch(
      `There are ${policies.length} SPF records at ${record.name}, which makes all of them void; leave one.`,
    );
  const { hostname } = host;
  for (const address of await addressesOf(host, resolver, owner)) {
    const verdict = await checkHost(resolver, policy, record.name, { address, hostname }, owner);
    if (verdict.result !== "pass") return issueOf(record, verdict, address, hostname);
  }
  return ok;
}

/** The configured source addresses; without any, those of the host name; "" (unknown) if it has none. */
async function addressesOf(host: SendingHost, resolver: SpfResolver, owner?: Owner): Promise<string[]> {
  if (host.sources.length > 0) return host.sources;
  const answers = await Promise.all([resolver.a(host.hostname, owner), resolver.aaaa(host.hostname, owner)]);
  const known = answers.flatMap((answer) => (answer.kind === "found" ? answer.records : []));
  return known.length > 0 ? known : [""];
}

function issueOf({ name }: DnsRecord, verdict: SpfVerdict, address: string, hostname: string): Verdict {
  const { result, term, why } = verdict;
  const at = `The SPF record at ${name}`;
  const shown = printable(term ?? "").slice(0, 200);
  if (result === "temperror")
    return {
      status: "unknown",
      issue: `${at} could not be evaluated: at the term ${shown}, ${printable(why ?? "")}; the check will be repeated.`,
    };
  if (result === "permerror")
    return mismatch(
      `${at} is void for receivers (permerror)${term === null ? "" : ` because of the term ${shown}`}: ${printable(why ?? "")}. Correct that term.`,
    );
  const decided = term === null ? "no term of it matches" : `the term ${shown} decides`;
  return mismatch(
    `${at} gives ${result} for ${address || "this server"}: ${decided}; add a:${hostname} before ${term === null ? 'its "all"' : "it"}.`,
  );
}

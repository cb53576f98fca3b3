// Whether a report comes from a feedback loop that the operator trusts (feedback.loops): by a DKIM signature of such a
// domain (RFC 6376), or by the peer's reverse name, if that name has the peer's address again (RFC 8499 "forward-
// confirmed"). Where the provider also has customers who send mail, the From must be one that none of them can have
// (mail/feedback-loops.ts). At most three keys, one reverse name and two addresses are looked up, within ten seconds
// each; a sender chooses none of the names, only the server of his own reverse name, whose silence is "unknown".
import { plainIp } from "../model/ip-source.ts";
import type { Clock } from "../clock.ts";
import { parseHostAddress } from "../dns/networks.ts";
import type { DnsAnswer, Resolver } from "../dns/resolver.ts";
import { signatureHolds, type SignatureClaim } from "../mail/dkim-verify.ts";
import { feedbackLoopDomains, isReportingAddress, isWithin } from "../mail/feedback-loops.ts";
import type { ReportSender } from "../mail/returned.ts";

/** `undecided`: a listed domain's key could not be looked up now. */
export type Standing = "known" | "unknown" | "undecided";

export interface Loops {
  /** `peer`: the address that the report came from. Never rejects. */
  standingOf(sender: ReportSender, peer: string): Promise<Standing>;
}

export interface LoopsDeps {
  /** feedback.loops: A-label form, lower case. */
  domains: readonly string[];
  resolver: Pick<Resolver, "txt" | "ptr" | "a" | "aaaa">;
  clock: Clock;
}

const mostKeys = 3;
const mostNames = 2;
const lookUpMs = 10_000;

export function createLoops({ domains, resolver, clock }: LoopsDeps): Loops {
  const loopOf = (name: string): string | undefined => domains.find((domain) => isWithin(name, domain));

  /** A domain of the built-in table also signs the mail of all who have a mailbox there. */
  const mayReport = (domain: string, from: string): boolean =>
    !feedbackLoopDomains.includes(domain) || isReportingAddress(from);

  const isOwn = (name: string, from: string): boolean => {
    const domain = loopOf(name);
    return domain !== undefined && mayReport(domain, from);
  };

  const holds = async (claim: SignatureClaim): Promise<Standing> => {
    const found = await resolver.txt(`${claim.selector}._domainkey.${claim.domain}`);
    if (found.kind === "failed") return "undecided";
    const [record] = recordsOf(found);
    return record !== undefined && (await signatureHolds(claim, record)) ? "known" : "unknown";
  };

  const bySignature = async ({ from, signatures }: ReportSender): Promise<Standing> => {
    const now = clock.now();
    const claims = signatures
      .filter(({ domain, expiresAt }) => isOwn(domain, from) && (expiresAt === null || expiresAt > now))
      .slice(0, mostKeys);
    const standings = await Promise.all(claims.map(holds));
    return (
      standings.find((one) => one === "known") ?? standings.find((one) => one === "undecided") ?? "unknown"
    );
  };

  const byName = async ({ from }: ReportSender, peer: string): Promise<Standing> => {
    const address = parseHostAddress(plainIp(peer) ?? "");
    if (!address.ok || domains.length === 0) return "unknown";
    const names = recordsOf(await resolver.ptr(address.value))
      .map((name) => name.toLowerCase().replace(/\.$/, ""))
      .filter((name) => isOwn(name, from))
      .slice(0, mostNames);
    for (const name of names) {
      const found = await (address.value.includes(":") ? resolver.aaaa(name) : resolver.a(name));
      if (recordsOf(found).some((record) => isSame(record, address.value))) return "known";
    }
    return "unknown";
  };

  /** The answer, or `late` where there is none in time. */
  const inTime = async (asked: Promise<Standing>, late: Standing): Promise<Standing> => {
    const { promise, resolve } = Promise.withResolvers<Standing>();
    const timer = clock.after(lookUpMs, () => resolve(late));
    try {
      return await Promise.race([asked, promise]);
    } catch {
      return late;
    } finally {
      timer.cancel();
    }
  };

  return {
    async standingOf(sender, peer) {
      const signed = await inTime(bySignature(sender), "undecided");
      if (signed === "known") return signed;
      return (await inTime(byName(sender, peer), "unknown")) === "known" ? "known" : signed;
    },
  };
}

function recordsOf(answer: DnsAnswer<string>): string[] {
  return answer.kind === "found" ? answer.records : [];
}

function isSame(record: string, address: string): boolean {
  const parsed = parseHostAddress(record);
  return parsed.ok && parsed.value === address;
}

// Counts what the TLS of sessions came to, by UTC day, recipient domain, policy and failure (RFC 8460 §4): in memory for a
// minute at most, then in the store, from where reports.ts takes them. Mail never waits for it: past its bounds results
// are left out, and what a crash loses is a minute of counts.
import { dayMs, type Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { parseAddress, rcptTo } from "../mail/address.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { ReportedPolicy, TlsResult, TlsResultCount } from "../model/tls-result.ts";
import type { HasJobs } from "../service.ts";
import type { Store } from "../store/store.ts";

/** About so many bytes are kept in memory, and so many different results of a domain and day in the store. */
const mostBytes = 8 * 1024 * 1024;
const mostOfDomain = 200;
/** Of one write. */
const mostRows = 500;
const longestReason = 300;
/** Of a policy's lines or TLSA records, and of its MX hosts: domains choose how long those are. */
const longestList = 4_096;

export interface TlsResults extends HasJobs {
  note(result: TlsResult): void;
  /** Writes what is in memory. Never rejects. */
  keep(): Promise<void>;
}

/**
 * Whether a mail is a TLS report: of the account `operations` (its row id), to anyone but the operator, whose address is
 * null where there is none.
 */
export function tlsReportTest(
  operations: number | null,
  operator: string | null,
): (job: Pick<Job, "rcptTo"> & { message: Pick<Job["message"], "accountKey"> }) => boolean {
  const parsed = operator === null ? null : parseAddress(operator);
  const own = parsed?.ok ? rcptTo(parsed.value) : null;
  return (job) => job.message.accountKey === operations && job.rcptTo !== own;
}

export function createTlsResults({
  store,
  clock,
  log,
}: {
  store: Pick<Store, "addTlsResults">;
  clock: Clock;
  log: Log;
}): TlsResults {
  let counts = new Map<string, TlsResultCount>();
  let bytes = 0;
  let leftOut = 0;

  const keep = async (): Promise<void> => {
    const all = [...counts.values()];
    if (leftOut > 0)
      log.warn({ leftOut }, "TLS results were not counted: too many kinds of them in a minute");
    counts = new Map();
    [bytes, leftOut] = [0, 0];
    try {
      for (let i = 0; i < all.length; i += mostRows)
        await store.addTlsResults(all.slice(i, i + mostRows), mostOfDomain);
    } catch (error) {
      log.error({ err: error }, "TLS results could not be kept");
    }
  };

  return {
    keep,
    note(result) {
      const day = Math.floor(clock.now() / dayMs);
      const { domain, failure } = result;
      const policy = bounded(result.policy);
      const key = `${day} ${domain} ${JSON.stringify([policy, failure])}`;
      const known = counts.get(key);
      if (known) return void (known.sessions += 1);
      if (bytes + 2 * key.length > mostBytes) return void (leftOut += 1);
      bytes += 2 * key.length;
      counts.set(key, { ...result, policy, reason: result.reason.slice(0, longestReason), day, sessions: 1 });
    },
    jobs: [{ name: "keep-tls-results", cron: "* * * * *", run: keep }],
  };
}

function bounded(policy: ReportedPolicy): ReportedPolicy {
  return { ...policy, strings: first(policy.strings), mxHosts: first(policy.mxHosts) };
}

/** The first of them, as many as `longestList` characters hold. */
function first(texts: string[]): string[] {
  let left = longestList;
  const end = texts.findIndex((text) => (left -= text.length) < 0);
  return end === -1 ? texts : texts.slice(0, end);
}

// The report of one UTC day to one domain (RFC 8460 §4.4): JSON, gzip, which runs outside of the event loop.
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { dayMs } from "../clock.ts";
import type { ReportedPolicy, TlsResultCount } from "../model/tls-result.ts";
import type { TlsResultDay } from "../store/store.ts";

const compressed = promisify(gzip);

export interface TlsReport {
  id: string;
  /** The file's name (RFC 8460 §5.1). */
  filename: string;
  gzip: Buffer;
}

/** `hostname`: ours, as submitter; `contact`: an address of the operator. */
export async function tlsReport(
  { day, domain }: TlsResultDay,
  counts: TlsResultCount[],
  { hostname, contact }: { hostname: string; contact: string },
): Promise<TlsReport> {
  const start = day * dayMs;
  const end = start + dayMs - 1000;
  const time = (ms: number): string => new Date(ms).toISOString().replace(".000", "");
  const id = `${time(start).slice(0, 10)}.${domain}@${hostname}`;
  const body = {
    "organization-name": hostname,
    "date-range": { "start-datetime": time(start), "end-datetime": time(end) },
    "contact-info": contact,
    "report-id": id,
    policies: byPolicy(counts).map(policyReport),
  };
  return {
    id,
    filename: `${hostname}!${domain}!${start / 1000}!${end / 1000}.json.gz`,
    gzip: await compressed(JSON.stringify(body)),
  };
}

function byPolicy(counts: TlsResultCount[]): TlsResultCount[][] {
  const groups = Map.groupBy(counts, ({ policy }) => JSON.stringify(policy));
  return [...groups.values()];
}

function policyReport(counts: TlsResultCount[]): object {
  const failed = counts.flatMap(({ failure, reason, sessions }) =>
    failure === null ? [] : [{ failure, reason, sessions }],
  );
  const total = counts.reduce((sum, { sessions }) => sum + sessions, 0);
  const failures = failed.reduce((sum, { sessions }) => sum + sessions, 0);
  const details = failed.map(({ failure, reason, sessions }) => ({
    "result-type": failure.type,
    ...(failure.sendingIp === null ? {} : { "sending-mta-ip": failure.sendingIp }),
    ...(failure.mxHost === null ? {} : { "receiving-mx-hostname": failure.mxHost }),
    ...(failure.receivingIp === null ? {} : { "receiving-ip": failure.receivingIp }),
    "failed-session-count": sessions,
    ...(reason === "" ? {} : { "failure-reason-code": reason }),
  }));
  return {
    policy: shownPolicy(counts[0]?.policy),
    summary: {
      "total-successful-session-count": total - failures,
      "total-failure-session-count": failures,
    },
    ...(details.length === 0 ? {} : { "failure-details": details }),
  };
}

function shownPolicy(policy: ReportedPolicy | undefined): object {
  if (!policy) return {};
  const { type, strings, domain, mxHosts } = policy;
  return {
    "policy-type": type,
    ...(strings.length === 0 ? {} : { "policy-string": strings }),
    "policy-domain": domain,
    ...(mxHosts.length === 0 ? {} : { "mx-host": mxHosts }),
  };
}

// What the TLS of a session is reported as (RFC 8460 §4): the policy that it was held against, in MTA-STS mode `testing`
// too, and how it failed. Whether a session may go on, session.ts decides. Pure.
import { namesHost, policyLines } from "../dns/mta-sts.ts";
import type { KeptMtaStsPolicy } from "../model/mta-sts.ts";
import type { ReportedPolicy, TlsFailureType, TlsResult } from "../model/tls-result.ts";
import type { HostTls } from "./tls-policy.ts";

/** What a session is held against. */
export interface Judged {
  /** Recipient domain. */
  domain: string;
  host: string;
  tls: HostTls;
  mtaSts: KeptMtaStsPolicy | null;
}

export interface TlsProblem {
  type: TlsFailureType;
  reason: string;
}

/** Node's codes; any other means that no authority is trusted for it. */
const certificateTypes: Record<string, TlsFailureType> = {
  CERT_HAS_EXPIRED: "certificate-expired",
  CERT_NOT_YET_VALID: "certificate-expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "certificate-host-mismatch",
};

/** Of a session whose TLS is up. `dane`: why its certificate does not match; `untrusted`: Node's code. */
export function certificateProblem(
  { host, tls, mtaSts }: Judged,
  dane: string | null,
  untrusted: string | null,
): TlsProblem | null {
  if (tls.kind === "dane") return dane === null ? null : { type: "validation-failure", reason: dane };
  if (tls.kind === "encrypted" && tls.policy === "dane")
    return { type: "tlsa-invalid", reason: "none of the TLSA records can be used" };
  if (mtaSts === null) return null;
  if (!namesHost(mtaSts, host)) return notNamed;
  if (untrusted === null) return null;
  return { type: certificateTypes[untrusted] ?? "certificate-not-trusted", reason: untrusted };
}

export const notNamed: TlsProblem = {
  type: "validation-failure",
  reason: "the policy does not name the host",
};

export function tlsResult(
  judged: Judged,
  problem: TlsProblem | null,
  ends: { sendingIp: string | null; receivingIp: string | null },
): TlsResult {
  const { domain, host: mxHost } = judged;
  const failure = problem === null ? null : { type: problem.type, mxHost, ...ends };
  return { domain, policy: reportedPolicy(judged, problem), failure, reason: problem?.reason ?? "" };
}

function reportedPolicy({ domain, host, tls, mtaSts }: Judged, problem: TlsProblem | null): ReportedPolicy {
  if (tls.kind === "dane") {
    const strings = tls.records.map(({ usage, selector, matching, data }) =>
      [usage, selector, matching, data].join(" "),
    );
    return { type: "tlsa", strings, domain: tls.names[0] ?? host, mxHosts: [host] };
  }
  if (problem?.type === "dnssec-invalid" || problem?.type === "tlsa-invalid")
    return { type: "tlsa", strings: [], domain: host, mxHosts: [host] };
  if (mtaSts) return { type: "sts", strings: policyLines(mtaSts), domain, mxHosts: mtaSts.mx };
  return { type: "no-policy-found", strings: [], domain, mxHosts: [] };
}

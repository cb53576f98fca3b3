// What is asked of the TLS of one mail host: the strictest of what the operator wants (outbound.tls, or the rule of the
// recipient domain, as a floor), of DANE (RFC 7672) and of the domain's MTA-STS policy (RFC 8461). DANE comes before
// MTA-STS (RFC 8461 §2): where the host has TLSA records that can be used, they alone decide. Pure.
import { hash } from "node:crypto";
import { namesHost } from "../dns/mta-sts.ts";
import { isUsable, strongest, type TlsaRecord } from "../dns/tlsa.ts";
import type { MtaStsPolicy } from "../model/mta-sts.ts";
import type { OutboundTls, SmartHostTls, TlsPolicy, TlsSummary } from "../model/tls.ts";

export type HostTls =
  /** TLS is not tried. */
  | { kind: "none" }
  /** TLS where it can be had, else clear text. */
  | { kind: "opportunistic" }
  /** TLS, with any certificate. `dane`: the host has TLSA records and none that can be used. */
  | { kind: "encrypted"; policy: "require" | "dane" }
  /** A certificate that is valid for the host. */
  | { kind: "verified"; policy: "verify" | "mta-sts" }
  /** A certificate that matches one of the records; `names`: what it may be for, and the first is asked for. */
  | {
      kind: "dane";
      policy: "dane";
      records: TlsaRecord[];
      names: string[];
      /** Stands for names and records. */
      digest: string;
    };

/** The secure TLSA answer of a host, and under which of its names the records were found. */
export interface HostTlsa {
  base: string;
  records: TlsaRecord[];
}

export interface TlsFacts {
  /** A-labels. */
  domain: string;
  host: string;
  /** The operator's rule of the domain, else outbound.tls. */
  operator: OutboundTls;
  /** null: none, or the DNS does not vouch for them. */
  tlsa: HostTlsa | null;
  /** null: the domain has none. */
  mtaSts: MtaStsPolicy | null;
}

/** What holds for the host, or why the policy of its domain forbids it. */
export function hostTls({ domain, host, operator, tlsa, mtaSts }: TlsFacts): HostTls | { kind: "forbidden" } {
  const usable = strongest(tlsa?.records.filter(isUsable) ?? []);
  if (tlsa && usable.length > 0) return dane(usable, [...new Set([tlsa.base, host, domain])]);
  if (mtaSts?.mode === "enforce")
    return namesHost(mtaSts, host) ? { kind: "verified", policy: "mta-sts" } : { kind: "forbidden" };
  if (operator === "verify") return { kind: "verified", policy: "verify" };
  if (tlsa) return { kind: "encrypted", policy: "dane" };
  return asConfigured(operator);
}

/** What the operator wants, where nothing else is known of the host. */
export function asConfigured(wanted: SmartHostTls): HostTls {
  switch (wanted) {
    case "none":
    case "opportunistic":
      return { kind: wanted };
    case "require":
      return { kind: "encrypted", policy: "require" };
    case "verify":
      return { kind: "verified", policy: "verify" };
  }
}

/** As the attempt shows it. */
export function policyOf(tls: HostTls): TlsPolicy {
  return tls.kind === "none" || tls.kind === "opportunistic" ? "none" : tls.policy;
}

/** Of an attempt that a policy holds for and that has no TLS session; null: it may go in clear. */
export function withoutSession(policy: TlsPolicy): TlsSummary | null {
  return policy === "none" ? null : { version: null, cipher: null, verified: false, policy };
}

function dane(records: TlsaRecord[], names: string[]): HostTls {
  const texts = records.map(
    ({ usage, selector, matching, data }) => `${usage} ${selector} ${matching} ${data}`,
  );
  const digest = hash("sha256", [...names, ...texts.toSorted()].join(","));
  return { kind: "dane", policy: "dane", records, names, digest };
}

/** Connections are shared by mail of the same demand alone. */
export function tlsKey(tls: HostTls): string {
  return tls.kind === "dane" ? `dane ${tls.digest}` : `${tls.kind} ${policyOf(tls)}`;
}

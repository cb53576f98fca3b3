// What a domain publishes so that its mail is believed: two DKIM keys (RFC 6376, RFC 8463), the MX
// and SPF (RFC 7208) of the return path, which is a name of its own so that the domain's mailboxes and its own SPF
// stay as they are, a DMARC policy (RFC 7489), and the name of its tracked links where it has one. Required is what mail
// needs: a key that does not sign yet, or no longer signs, is published but not required. Pure; whether they are seen in
// the DNS is check.ts's.
import { isIP } from "node:net";
import { dkimRecordValue } from "../mail/dkim.ts";
import type { DkimKey } from "../model/dkim-key.ts";
import type { DnsRecord } from "../model/dns-record.ts";
import type { SenderDomain } from "../model/domain.ts";

export interface SendingHost {
  /** A-label form, lower case: the MX of return paths. */
  hostname: string;
  /** Addresses that mail leaves from; empty: the system's choice, for which the host name stands. */
  sources: string[];
  /** A-label form, lower case: where tracked links lead. */
  publicHost: string;
}

/** The return path's domain where none is chosen: aligned with the From domain (RFC 7489 §3.1.2), and ours to receive at. */
export function returnPathDomain(name: string): string {
  return `bounce.${name}`;
}

/** The domain of the return paths that mail carries now. */
export function returnPathInUse(domain: Pick<SenderDomain, "returnPathDomain" | "returnPathBefore">): string {
  return domain.returnPathBefore ?? domain.returnPathDomain;
}

/** Names of the DKIM records that are made here are at most this much longer than the domain. */
export const longestPrefix = dkimName("svc999e", "").length;

/** Where the key of a selector is published. */
export function dkimName(selector: string, name: string): string {
  return `${selector}._domainkey.${name}`;
}

/** What of a domain decides its records. */
export type Published = Pick<SenderDomain, "name" | "dkimKeys" | "returnPathDomain" | "trackingDomain">;

/** The records of a domain, unchecked but for those that stand in `before` as they are; required ones first. */
export function recordsFor(
  { name, dkimKeys, returnPathDomain: returnPath, trackingDomain }: Published,
  host: SendingHost,
  before: readonly DnsRecord[] = [],
): DnsRecord[] {
  const dkim = (status: DkimKey["status"]): DnsRecord[] =>
    dkimKeys
      .filter((key) => key.status === status)
      .map((key) => {
        const value = dkimRecordValue(key.algorithm, key.publicKey);
        return record("dkim", "TXT", dkimName(key.selector, name), value, status === "active");
      });
  const records = [
    ...dkim("active"),
    record("return_path", "MX", returnPath, `10 ${host.hostname}`, true),
    record("spf", "TXT", returnPath, spfValue(host), true),
    ...dkim("pending"),
    record("dmarc", "TXT", `_dmarc.${name}`, "v=DMARC1; p=none", false),
    ...(trackingDomain === null ? [] : [record("tracking", "CNAME", trackingDomain, host.publicHost, false)]),
    ...dkim("retired"),
  ];
  return records.map((made) => {
    const same = before.find(
      (old) => old.type === made.type && old.name === made.name && old.value === made.value,
    );
    return same ? { ...same, required: made.required } : made;
  });
}

function record(
  purpose: DnsRecord["purpose"],
  type: DnsRecord["type"],
  name: string,
  value: string,
  required: boolean,
): DnsRecord {
  return { purpose, type, name, value, required, status: "unchecked", found: [], issue: null };
}

function spfValue({ hostname, sources }: SendingHost): string {
  const addresses = sources.map((address) => (isIP(address) === 6 ? `ip6:${address}` : `ip4:${address}`));
  return ["v=spf1", `a:${hostname}`, ...addresses, "-all"].join(" ");
}

// What a domain publishes so that its mail is believed: two DKIM keys (RFC 6376, RFC 8463), the MX
// and SPF (RFC 7208) of the return path, which is a name of its own so that the domain's mailboxes and its own SPF
// stay as they are, and a DMARC policy (RFC 7489). Pure; whether they are seen in the DNS is check.ts's.
import { isIP } from "node:net";
import { dkimRecordValue } from "../mail/dkim.ts";
import type { DkimKey, DnsRecord } from "../store/store.ts";

export interface SendingHost {
  /** A-label form, lower case: the MX of return paths. */
  hostname: string;
  /** Addresses that mail leaves from; empty: the system's choice, for which the host name stands. */
  sources: string[];
}

/** The return path's domain: aligned with the From domain (RFC 7489 §3.1.2), and ours to receive at. */
export function returnPathDomain(name: string): string {
  return `bounce.${name}`;
}

/** Names of DKIM records are this much longer than the domain. */
export const longestPrefix = "svc1e._domainkey.".length;

/** The records of a domain, unchecked; required ones first. */
export function recordsFor(name: string, keys: DkimKey[], host: SendingHost): DnsRecord[] {
  const dkim = keys
    .filter((key) => key.status !== "retired")
    .map((key) =>
      record(
        "dkim",
        "TXT",
        `${key.selector}._domainkey.${name}`,
        dkimRecordValue(key.algorithm, key.publicKey),
        key.status === "active",
      ),
    );
  return [
    ...dkim,
    record("return_path", "MX", returnPathDomain(name), `10 ${host.hostname}`, true),
    record("spf", "TXT", returnPathDomain(name), spfValue(host), true),
    record("dmarc", "TXT", `_dmarc.${name}`, "v=DMARC1; p=none", false),
  ];
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

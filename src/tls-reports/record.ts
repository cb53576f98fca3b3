// Where a domain wants its TLS reports (RFC 8460 §3): the TXT record at _smtp._tls. Pure.
import { fieldOf } from "../dns/mta-sts.ts";
import { parseAddress, type Address } from "../mail/address.ts";

/** Of one domain; they are looked for among its first twenty. */
const mostAddresses = 4;
const mostUris = 20;

export type ReportTo = { kind: "mailto"; address: Address } | { kind: "https"; url: URL };

export function tlsReportName(domain: string): string {
  return `_smtp._tls.${domain}`;
}

/** Empty: the domain wants none, since none or several of its records ask for reports, or none of it can be used. */
export function reportAddresses(records: string[]): ReportTo[] {
  const asking = records.filter((record) => /^v=TLSRPTv1[ \t]*(;|$)/.test(record));
  const [record] = asking;
  if (record === undefined || asking.length > 1) return [];
  const uris = fieldOf(record, "rua")?.split(",", mostUris) ?? [];
  return uris
    .map((uri) => reportTo(uri.trim()))
    .filter((to) => to !== null)
    .slice(0, mostAddresses);
}

function reportTo(uri: string): ReportTo | null {
  if (!URL.canParse(uri)) return null;
  const url = new URL(uri);
  if (url.protocol === "https:")
    return url.username === "" && url.password === "" && url.hostname !== "" ? { kind: "https", url } : null;
  if (url.protocol !== "mailto:") return null;
  try {
    const address = parseAddress(decodeURIComponent(url.pathname));
    return address.ok ? { kind: "mailto", address: address.value } : null;
  } catch {
    return null; // a percent sign that encodes nothing
  }
}

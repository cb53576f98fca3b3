// The two texts of MTA-STS (RFC 8461 §3): the TXT record that announces a policy, the policy itself, and whether a policy
// names an MX host. Pure; fetching and keeping policies is mta-sts/'s.
import { mtaStsModes, type KeptMtaStsPolicy, type MtaStsPolicy } from "../model/mta-sts.ts";
import type { Parsed } from "../mail/address.ts";

/** A policy is kept for 90 days at most: customers choose the domains, so what is kept of them must end. */
const maxAgeSeconds = 90 * 86_400;
/** And for five minutes at least: each end of one is a fetch that mail waits for. */
const minAgeSeconds = 300;
/** Characters of all mx fields together: they are held against each host of an attempt. */
const longestPatterns = 16 * 1024;
/** As long as the name of a host can be (RFC 1035 §2.3.4), with the `*.`. */
const longestPattern = 255;

/** Where the record of a domain stands. */
export function mtaStsName(domain: string): string {
  return `_mta-sts.${domain}`;
}

/** The id that the domain's TXT records announce; null: they announce none, since none or several are of MTA-STS. */
export function announcedId(records: string[]): string | null {
  const announcing = records.filter((record) => /^v=STSv1[ \t]*(;|$)/.test(record));
  const [record] = announcing;
  if (record === undefined || announcing.length > 1) return null;
  const id = fieldOf(record, "id") ?? "";
  return /^[A-Za-z0-9]{1,32}$/.test(id) ? id : null;
}

/** The value of a field in the records of MTA-STS and of TLS reports: `v=STSv1; id=1;`. */
export function fieldOf(record: string, name: string): string | undefined {
  for (const field of record.split(";")) {
    const equals = field.indexOf("=");
    if (equals !== -1 && field.slice(0, equals).trim() === name) return field.slice(equals + 1).trim();
  }
  return undefined;
}

/** Reads a policy (RFC 8461 §3.2); fields that are not known are passed over, of one that stands twice the first counts. */
export function readPolicy(text: string): Parsed<MtaStsPolicy & { maxAgeSeconds: number }> {
  const fields = new Map<string, string>();
  const mx: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    const key = colon === -1 ? "" : line.slice(0, colon).trimEnd();
    const value = line.slice(colon + 1).trim();
    if (key === "mx") mx.push(value.toLowerCase().replace(/\.$/, ""));
    else if (key !== "" && !fields.has(key)) fields.set(key, value);
  }
  if (fields.get("version") !== "STSv1") return { ok: false, issue: "the policy has no version: STSv1" };
  const mode = mtaStsModes.find((known) => known === fields.get("mode"));
  if (mode === undefined) return { ok: false, issue: "the policy has no mode that is known" };
  const age = fields.get("max_age") ?? "";
  if (!/^\d{1,10}$/.test(age)) return { ok: false, issue: "the policy has no max_age" };
  if (
    mx.some(
      (pattern) =>
        pattern.length > longestPattern || !/^(\*\.)?([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}$/.test(pattern),
    )
  )
    return { ok: false, issue: "the policy has an mx that is not a name" };
  if (mx.join(" ").length > longestPatterns)
    return { ok: false, issue: `the mx fields of the policy are longer than ${longestPatterns} characters` };
  if (mx.length === 0 && mode !== "none") return { ok: false, issue: "the policy has no mx" };
  const kept = Math.max(minAgeSeconds, Math.min(Number(age), maxAgeSeconds));
  return { ok: true, value: { mode, mx: [...new Set(mx)], maxAgeSeconds: kept } };
}

/** A policy as its text would say it. */
export function policyLines({ mode, mx, fetchedAt, expiresAt }: KeptMtaStsPolicy): string[] {
  const maxAge = Math.round((expiresAt - fetchedAt) / 1000);
  return ["version: STSv1", `mode: ${mode}`, ...mx.map((host) => `mx: ${host}`), `max_age: ${maxAge}`];
}

/** Whether the policy names the MX host (RFC 8461 §4.1). */
export function namesHost({ mx }: Pick<MtaStsPolicy, "mx">, host: string): boolean {
  const parent = host.slice(host.indexOf(".") + 1);
  return mx.some((pattern) =>
    pattern.startsWith("*.") ? host.includes(".") && parent === pattern.slice(2) : pattern === host,
  );
}

// Verifies the DNS records of a sender domain: whether what the DNS has works as well as the record shown, and if not,
// one sentence on what to do. Records need not match word for word: DKIM tags may be in any order, the DMARC policy is
// the owner's. Pure; SPF, which needs further look-ups, is in verify-spf.ts.
import type { MxRecord } from "../dns/resolver.ts";
import type { DnsRecord } from "../model/dns-record.ts";
import type { SendingHost } from "./records.ts";

export type Verdict = Pick<DnsRecord, "status" | "issue">;

export const ok: Verdict = { status: "ok", issue: null };
export const mismatch = (issue: string): Verdict => ({ status: "mismatch", issue });
export const missing = (record: DnsRecord): Verdict => ({
  status: "missing",
  issue: `There is no ${record.purpose === "spf" ? "SPF " : ""}${record.type} record at ${record.name}; publish one with the value shown.`,
});

/** DKIM key record (RFC 6376 §3.6.1): the key and its type must be ours, for mail and SHA-256; exactly one record, for two are undefined (§3.6.2.2). */
export function verifyDkim(record: DnsRecord, texts: string[]): Verdict {
  if (texts.length === 0) return missing(record);
  if (texts.length > 1)
    return mismatch(
      `There are ${texts.length} TXT records at ${record.name} where one is expected; remove all but the one with the value shown.`,
    );
  const wanted = tagsOf(record.value);
  const found = tagsOf(texts[0] ?? "");
  const repeated = repeatedTag(texts[0] ?? "");
  const [key, wantedKey] = [(found.get("p") ?? "").replace(/\s/g, ""), wanted.get("p") ?? ""];
  const at = `The TXT record at ${record.name}`;
  if (!found.has("p"))
    return mismatch(`${at} is not a DKIM key (it has no p= tag); replace it with the value shown.`);
  if (repeated !== null)
    return mismatch(
      `${at} has the tag ${printable(repeated)}= twice, which makes it void; replace it with the value shown.`,
    );
  if (key === "")
    return mismatch(`${at} revokes the key (its p= tag is empty); replace it with the value shown.`);
  if (key !== wantedKey && wantedKey.startsWith(key))
    return mismatch(
      `${at} is cut short after ${key.length} of ${wantedKey.length} characters of p=; publish the whole value, in strings of at most 255 characters.`,
    );
  if (key !== wantedKey)
    return mismatch(
      `${at} has a different key from the one that this server signs with; replace it with the value shown.`,
    );
  const type = found.get("k") ?? "rsa";
  if (type !== wanted.get("k"))
    return mismatch(
      `${at} says k=${type} where k=${wanted.get("k") ?? ""} is expected; replace it with the value shown.`,
    );
  if ((found.get("v") ?? "DKIM1") !== "DKIM1")
    return mismatch(`${at} begins with a version other than v=DKIM1; replace it with the value shown.`);
  const listed = (tag: string): string[] | null =>
    found
      .get(tag)
      ?.split(":")
      .map((item) => item.trim()) ?? null;
  if (listed("h")?.includes("sha256") === false)
    return mismatch(`${at} does not allow sha256 in h=; remove that tag.`);
  const services = listed("s");
  if (services !== null && !services.includes("email") && !services.includes("*"))
    return mismatch(`${at} does not allow email in s=; remove that tag.`);
  if (listed("t")?.includes("y"))
    return {
      status: "ok",
      issue: `${at} has t=y: receivers treat the domain's signatures as a test and ignore them; remove that flag.`,
    };
  return ok;
}

/** The return path's MX: this host must be the first to be tried, or bounces go elsewhere. */
export function verifyReturnPath(record: DnsRecord, records: MxRecord[], host: SendingHost): Verdict {
  if (records.length === 0) return missing(record);
  const best = Math.min(...records.map((mx) => mx.preference));
  const first = records.filter((mx) => mx.preference === best);
  if (first.every((mx) => mx.exchange === host.hostname)) return ok;
  const other = first.find((mx) => mx.exchange !== host.hostname)?.exchange ?? "";
  return mismatch(
    `The MX of ${record.name} sends bounces to ${printable(other) || "no host"} instead of ${host.hostname}; make ${host.hostname} its only MX.`,
  );
}

/** DMARC (RFC 7489 §6.3): any valid policy is accepted. */
export function verifyDmarc(record: DnsRecord, texts: string[]): Verdict {
  const policies = texts.filter((text) => /^v\s*=\s*DMARC1\s*(?:;|$)/.test(text));
  if (policies.length === 0) return missing(record);
  if (policies.length > 1)
    return mismatch(
      `There are ${policies.length} DMARC records at ${record.name}, which makes all of them void; leave one.`,
    );
  const policy = (tagsOf(policies[0] ?? "").get("p") ?? "").toLowerCase();
  return ["none", "quarantine", "reject"].includes(policy)
    ? ok
    : mismatch(
        `The DMARC record at ${record.name} has no valid policy; its p= must be none, quarantine or reject.`,
      );
}

/** RFC 6376 §3.2: a tag list in which a name stands twice is void. */
function repeatedTag(text: string): string | null {
  const seen = new Set<string>();
  for (const part of text.split(";")) {
    const name = part.includes("=") ? part.slice(0, part.indexOf("=")).trim() : "";
    if (name !== "" && seen.has(name)) return name;
    seen.add(name);
  }
  return null;
}

/** `name=value; …` (RFC 6376 §3.2): the last of a name counts; no other is an error here. */
function tagsOf(text: string): Map<string, string> {
  const tags = new Map<string, string>();
  for (const part of text.split(";")) {
    const at = part.indexOf("=");
    if (at > 0) tags.set(part.slice(0, at).trim(), part.slice(at + 1).trim());
  }
  return tags;
}

/** Text of a stranger's zone as it may be shown and kept. */
export function printable(text: string): string {
  const plain = text.replace(/[^\x20-\x7e]/g, "?");
  return plain.length > 600 ? `${plain.slice(0, 600)}…` : plain;
}

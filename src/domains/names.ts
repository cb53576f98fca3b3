// The names that a domain may have and be given: its own, those below it that bounces and tracked links use, and the
// selectors of its keys. Each has to fit into the names of the records that are published for it.
import { Refusal, type Problem } from "../errors.ts";
import { parseDomain } from "../mail/address.ts";
import type { SenderDomain } from "../model/domain.ts";
import { dkimName, longestPrefix, returnPathDomain } from "./records.ts";

/** A-label form, lower case. Throws Refusal validation_failed. */
export function checkedName(given: string): string {
  const parsed = parseDomain(given.trim().replace(/\.$/, ""));
  const issue = !parsed.ok
    ? parsed.issue
    : parsed.value.length + longestPrefix > 253
      ? "is too long for the names of its DKIM records"
      : null;
  if (parsed.ok && issue === null) return parsed.value;
  throw invalid("name", issue ?? "is not a domain name");
}

/** Sub-domains of RFC 6376 §3.1; a letter is put behind it for the second key. Throws Refusal validation_failed. */
export function checkSelector(selector: string | undefined, name: string, field: string): void {
  if (selector === undefined) return;
  if (!/^[a-z0-9](?:[a-z0-9-]{0,60}[a-z0-9])?$/.test(selector))
    throw invalid(field, "is not a selector: 1 to 62 letters, digits and hyphens in lower case");
  if (dkimName(`${selector}e`, name).length > 253)
    throw invalid(field, "is too long for the name of a DNS record");
}

/** The names that were chosen for it. Throws Refusal validation_failed. */
export function checkNames(domain: SenderDomain, next: Partial<SenderDomain>): void {
  const { name } = domain;
  const { returnPathDomain: returnPath, trackingDomain: tracking } = { ...domain, ...next };
  const errors: Problem[] = [];
  const refuse = (field: string, issue: string): void =>
    void errors.push({ field, code: "validation_failed", issue });
  // Aligned with the From domain (RFC 7489 §3.1), and not the domain itself, whose MX is its mailboxes'.
  if (!isBelow(returnPath, name)) refuse("return_path_domain", below(name));
  if (tracking !== null && !isBelow(tracking, name)) refuse("tracking_domain", below(name));
  // A CNAME stands alone at its name (RFC 1034 §3.6.2).
  if (tracking === returnPath)
    refuse("tracking_domain", "is the return path's name, which has other records");
  const [first] = errors;
  if (first) throw new Refusal("validation_failed", `${first.field} ${first.issue}.`, { errors });
}

/** What is left of an address (RFC 5321 §4.5.3.1) beside the longest local part. */
const longestBelow = 189;
const below = (name: string): string => `is not a name of at most ${longestBelow} characters below ${name}`;

function isBelow(given: string, name: string): boolean {
  return given.endsWith(`.${name}`) && (given.length <= longestBelow || given === returnPathDomain(name));
}

/** One field that cannot be taken. */
export function invalid(field: string, issue: string): Refusal {
  const errors = [{ field, code: "validation_failed" as const, issue }];
  return new Refusal("validation_failed", `${field} ${issue}.`, { errors });
}

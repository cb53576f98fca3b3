// The fields by which a mail program offers to unsubscribe: List-Unsubscribe (RFC 2369 §3.2) with a page, an address, or
// both, and List-Unsubscribe-Post (RFC 8058 §3.1) where the page is one of HTTPS and takes a POST without asking.
import { linkTarget } from "./link-target.ts";
import { parseAddress } from "./address.ts";
import type { HeaderField } from "./header.ts";

/** Ways to unsubscribe, as URIs; one at least. */
export interface UnsubscribeLinks {
  /** `https:` */
  url: string | null;
  /** `mailto:` */
  mailto: string | null;
}

const longest = 900;
/** Of a URI (RFC 3986 §2) but the comma, which some readers take for the end of it. */
const uri = /^[!#-+\--;=?-Z[\]_a-z~%]+$/;

/** The page's address, or what is wrong with it. */
export function unsubscribeUrl(given: string): { ok: true; value: string } | { ok: false; issue: string } {
  if (given.length > longest) return { ok: false, issue: `has more than ${longest} characters` };
  if (!/^https:\/\//i.test(given) || !uri.test(given) || !URL.canParse(given))
    return { ok: false, issue: "expected an https:// URL in ASCII, without commas and spaces" };
  return { ok: true, value: given };
}

/** An address, or a mailto: URI (RFC 6068) with a subject or more, as a URI. */
export function unsubscribeMailto(given: string): { ok: true; value: string } | { ok: false; issue: string } {
  if (given.length > longest) return { ok: false, issue: `has more than ${longest} characters` };
  if (/^mailto:[^?]+@/i.test(given) && uri.test(given)) return { ok: true, value: given };
  const parsed = parseAddress(given);
  if (parsed.ok && /^[!-~]+$/.test(parsed.value.local)) {
    const local = parsed.value.local.replace(/[^\w.!$'*+\-=^`~]/g, (char) =>
      encodeURIComponent(char).replace("(", "%28").replace(")", "%29"),
    );
    return { ok: true, value: `mailto:${local}@${parsed.value.ascii}` };
  }
  return { ok: false, issue: "expected an address in ASCII, or a mailto: URI without commas and spaces" };
}

/** As name and value. */
export function listUnsubscribe({ url, mailto }: UnsubscribeLinks): [name: string, value: string][] {
  const uris = [url, mailto].flatMap((one) => (one === null ? [] : [`<${one}>`]));
  const fields: [string, string][] = [["List-Unsubscribe", uris.join(", ")]];
  if (url !== null && /^https:/i.test(url))
    fields.push(["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"]);
  return fields;
}

export function isListUnsubscribe(name: string): boolean {
  return /^list-unsubscribe(?:-post)?$/i.test(name);
}

/** The pages that a message's own List-Unsubscribe names, as the targets of links (link-target.ts). */
export function unsubscribeTargets(fields: readonly HeaderField[]): Set<string> {
  const targets = new Set<string>();
  for (const { lower, value } of fields) {
    if (lower !== "list-unsubscribe") continue;
    for (const [, given = ""] of value.matchAll(/<([^<>]{1,4096})>/g)) {
      const target = linkTarget(given);
      if (target !== null) targets.add(target);
    }
  }
  return targets;
}

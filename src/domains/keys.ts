// The life cycle of a domain's DKIM keys: RSA for all receivers, Ed25519 beside it (RFC 8463 §5). A new key is pending
// until the DNS has its record, since a signature that receivers cannot verify is worse than one of an old key. Then it
// signs and the previous key is retired: it no longer signs, but stays published as long as its mail may be verified.
import { dayMs } from "../clock.ts";
import { generateDkimKey } from "../mail/dkim.ts";
import { readDkimKey } from "../mail/dkim-key.ts";
import { dkimAlgorithms, type DkimAlgorithm, type DkimKey, type DkimKeyStatus } from "../model/dkim-key.ts";
import type { DnsRecord } from "../model/dns-record.ts";
import { dkimName } from "./records.ts";

/** The selector or private key that the domain's owner provides instead of generated ones. */
export interface OwnDkim {
  selector?: string | undefined;
  /** PEM. */
  privateKey?: string | undefined;
}

/** A retired key stays published so long: mail may wait 48 hours here, and five days at the receiver (RFC 5321 §4.5.4.1). */
export const retiredMs = 7 * dayMs;

/** A key of each algorithm; null: the selectors that they would have are taken. */
export async function makeKeys(
  own: OwnDkim,
  before: readonly DkimKey[],
  status: Extract<DkimKeyStatus, "active" | "pending">,
): Promise<DkimKey[] | null> {
  const brought = own.privateKey === undefined ? null : readDkimKey(own.privateKey);
  if (brought?.ok === false) throw new Error(`the API accepts no such key: it ${brought.issue}`);
  const given = brought?.value ?? null;
  const selectors = selectorsOf(own.selector ?? nextSelector(before), given?.algorithm ?? "rsa-sha256");
  const taken = before.filter((key) => key.status !== "pending").map(({ selector }) => selector);
  if (Object.values(selectors).some((selector) => taken.includes(selector))) return null;
  const keys = dkimAlgorithms.map(async (algorithm): Promise<DkimKey> => {
    const made = given?.algorithm === algorithm ? given : await generateDkimKey(algorithm);
    const { privatePem, publicKey } = made;
    return { selector: selectors[algorithm], algorithm, privatePem, publicKey, status };
  });
  return Promise.all(keys);
}

/** `selector` is the key's that the owner brought, else the RSA key's; the other's is a letter longer. */
function selectorsOf(selector: string, first: DkimAlgorithm): Record<DkimAlgorithm, string> {
  return first === "rsa-sha256"
    ? { "rsa-sha256": selector, "ed25519-sha256": `${selector}e` }
    : { "rsa-sha256": `${selector}r`, "ed25519-sha256": selector };
}

/** `svc2` after `svc1`; a number that was pending is not used again: its record may be remembered by resolvers. */
function nextSelector(before: readonly DkimKey[]): string {
  const numbers = before.map(({ selector }) => Number(/^svc(\d{1,9})[er]?$/.exec(selector)?.[1] ?? 0));
  return `svc${Math.max(0, ...numbers) + 1}`;
}

/** The keys after a look at the DNS: a pending one that is seen signs, the one before it is retired, and old ones go. */
export function keysAfter(
  keys: readonly DkimKey[],
  seen: readonly DnsRecord[],
  name: string,
  now: number,
): DkimKey[] {
  const ok = new Set(seen.filter((record) => record.status === "ok").map((record) => record.name));
  const isSeen = (key: DkimKey): boolean => key.status === "pending" && ok.has(dkimName(key.selector, name));
  const replaced = new Set(keys.filter(isSeen).map(({ algorithm }) => algorithm));
  return keys.flatMap((key): DkimKey[] => {
    if (isSeen(key)) return [{ ...key, status: "active" }];
    if (key.status === "active" && replaced.has(key.algorithm))
      return [{ ...key, status: "retired", retiredAt: now }];
    return key.status === "retired" && now - (key.retiredAt ?? now) >= retiredMs ? [] : [key];
  });
}

// The PTR record of an address, and whether it matches the EHLO name used from there: receivers require a PTR whose
// name resolves to the address again (RFC 1912 §2.1) and prefer that it is the EHLO name (RFC 5321 §4.1.1.1).
import { parseHostAddress } from "../dns/networks.ts";
import type { DnsAnswer, Resolver } from "../dns/resolver.ts";

export interface PtrLook {
  ptr: string | null;
  ptrOk: boolean | null;
}

/** null: the look-up failed; the previous result stands. */
export async function lookUpPtr(
  resolver: Pick<Resolver, "ptr" | "a" | "aaaa">,
  address: string,
  ehloName: string,
): Promise<PtrLook | null> {
  const found = await resolver.ptr(address, "pools");
  if (found.kind === "failed") return null;
  const names = recordsOf(found).map((name) => name.toLowerCase().replace(/\.$/, ""));
  const wanted = ehloName.toLowerCase();
  const [first] = names.toSorted();
  if (!names.includes(wanted)) return { ptr: first ?? null, ptrOk: false };
  const forward = await (address.includes(":")
    ? resolver.aaaa(wanted, "pools")
    : resolver.a(wanted, "pools"));
  if (forward.kind === "failed") return { ptr: wanted, ptrOk: null };
  return { ptr: wanted, ptrOk: recordsOf(forward).some((record) => sameAddress(record, address)) };
}

export function recordsOf(answer: DnsAnswer<string>): string[] {
  return answer.kind === "found" ? answer.records : [];
}

export function sameAddress(record: string, address: string): boolean {
  const parsed = parseHostAddress(record);
  return parsed.ok && parsed.value === address;
}

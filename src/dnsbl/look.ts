// One question about an address at a zone, and what its answer says (RFC 5782 §2). Only codes that the zone documents
// count. 127.255.255.0/24 says why the zone does not answer us (a public resolver, too many queries); that, silence, a
// failure, and an address outside of 127.0.0.0/8 say nothing about the address. A zone is tested before it is believed
// (RFC 5782 §5): one that lists everything, or nothing, is broken.
import type { DnsAnswer, Resolver } from "../dns/resolver.ts";
import { reversedAddress } from "../dns/reverse.ts";
import { unsafeCharacters } from "../unsafe-text.ts";
import { codeOf, type Zone } from "./zones.ts";

export type Look =
  | { answer: "listed"; codes: string[] }
  | { answer: "not_listed" }
  /** `silent`: the question failed, so the next one may well too. */
  | { answer: "unknown"; detail: string; silent: boolean };

/** `ipv6`: IPv6 addresses may be asked. */
export type ZoneHealth = { status: "ok"; ipv6: boolean } | { status: "broken" | "unknown"; detail: string };

type Asked = Pick<Resolver, "a">;

/** In whose share of the look-ups the questions go. */
export const owner = "dnsbl";
const mostCodes = 16;
const longestReason = 500;

export async function lookUp(resolver: Asked, zone: Zone, address: string): Promise<Look> {
  const answer = await ask(resolver, zone, address);
  if (answer.kind === "failed") return { answer: "unknown", detail: clean(answer.why), silent: true };
  const records = answer.kind === "found" ? answer.records : [];
  const codes = [...new Set(records)].filter((record) => codeOf(zone, record)).slice(0, mostCodes);
  if (codes.length > 0 && !records.some(isRefusal))
    return { answer: "listed", codes: codes.toSorted(byNumber) };
  const odd = records.find((record) => isRefusal(record) || !record.startsWith("127."));
  return odd === undefined
    ? { answer: "not_listed" }
    : { answer: "unknown", detail: oddAnswer(odd), silent: false };
}

/** What the zone says about a listing: its TXT record, else what it documents of the codes. */
export async function reasonOf(
  resolver: Pick<Resolver, "txt">,
  zone: Zone,
  address: string,
  codes: readonly string[],
): Promise<string> {
  const name = nameOf(zone, address);
  const answer = name === null ? null : await resolver.txt(name, owner);
  const said = answer?.kind === "found" ? clean(answer.records.slice(0, mostCodes).join(" ")) : "";
  if (said !== "") return said;
  return codes
    .map((code) => codeOf(zone, code)?.meaning ?? null)
    .filter((meaning) => meaning !== null)
    .join("; ");
}

/** Asks about the test addresses, and stops at the first answer that decides. */
export async function testZone(resolver: Asked, zone: Zone): Promise<ZoneHealth> {
  const listed = await lists(resolver, zone, "127.0.0.2");
  if (typeof listed === "string") return { status: "unknown", detail: listed };
  if (!listed) return { status: "broken", detail: "does not list the test address 127.0.0.2" };
  const all = await lists(resolver, zone, "127.0.0.1");
  if (typeof all === "string") return { status: "unknown", detail: all };
  if (all) return { status: "broken", detail: "lists 127.0.0.1, which no zone may" };
  return { status: "ok", ipv6: zone.ipv6 ?? (await hasIpv6(resolver, zone)) };
}

const hasIpv6 = async (resolver: Asked, zone: Zone): Promise<boolean> =>
  (await lists(resolver, zone, "ipv6:2")) === true && (await lists(resolver, zone, "ipv6:1")) === false;

/** ::ffff:7f00:1 and ::ffff:7f00:2 in nibbles: as addresses they would be taken for IPv4 ones. */
const testLabels: Readonly<Record<string, string>> = {
  "ipv6:1": `1.0.0.0.0.0.f.7.f.f.f.f.${"0.".repeat(19)}0`,
  "ipv6:2": `2.0.0.0.0.0.f.7.f.f.f.f.${"0.".repeat(19)}0`,
};

/** Whether it lists a test address, with any code of 127.0.0.0/8; a text: why that is not known. */
async function lists(resolver: Asked, zone: Zone, address: string): Promise<boolean | string> {
  const answer = await ask(resolver, zone, address);
  if (answer.kind === "failed") return clean(answer.why);
  const records = answer.kind === "found" ? answer.records : [];
  const refusal = records.find(isRefusal);
  if (refusal !== undefined) return oddAnswer(refusal);
  return records.some((record) => record.startsWith("127."));
}

async function ask(resolver: Asked, zone: Zone, address: string): Promise<DnsAnswer<string>> {
  const name = nameOf(zone, address);
  return name === null ? { kind: "failed", why: "not an address" } : resolver.a(name, owner);
}

function nameOf({ zone }: Zone, address: string): string | null {
  const labels = testLabels[address] ?? reversedAddress(address)?.labels;
  return labels === undefined ? null : `${labels}.${zone}`;
}

const isRefusal = (record: string): boolean => record.startsWith("127.255.255.");

function oddAnswer(record: string): string {
  return isRefusal(record)
    ? `answered ${record}: it refuses queries from this resolver, as public blocklists do with public or shared ones; set dns.servers to a resolver of your own`
    : `answered ${record}, which is not a code of a blocklist`;
}

/** One line without characters that a terminal obeys, of bounded length. */
function clean(text: string): string {
  const plain = text.slice(0, 4 * longestReason).replace(unsafeCharacters, " ");
  return plain.replace(/\s+/g, " ").trim().toWellFormed().slice(0, longestReason).toWellFormed();
}

const byNumber = (a: string, b: string): number => a.localeCompare(b, "en", { numeric: true });

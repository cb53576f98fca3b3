// Classes of addresses, for SSRF filters: whether a third party's DNS or URL may make us connect to an address. Delivery
// and webhooks check the address that is actually connected to, after every look-up. Public is what the IANA special-purpose
// registries (RFC 6890) leave: not loopback, private, link-local (the 169.254.169.254 of clouds), shared (RFC 6598),
// multicast, documentation, benchmarking, reserved, unspecified, nor an IPv6 form (mapped, NAT64) of those.
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { Parsed } from "../mail/address.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

export interface Network {
  address: Address;
  /** Of an IPv4 network 0–32, of an IPv6 one 0–128. */
  prefix: number;
}

const globalUnicast = ipaddr.IPv6.parse("2000::");
const nat64 = ipaddr.IPv6.parse("64:ff9b::"); // RFC 6052 §2.1; the local-use prefix of RFC 8215 is never public
/** Azure's host agent and metadata, on an address that looks public. */
const metadata = new Set(["168.63.129.16"]);

/** True for a global unicast address. False for any other class and for a text that is not an address. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  return address !== null && isPublic(address);
}

function isPublic(address: Address): boolean {
  if (address instanceof ipaddr.IPv4)
    return address.range() === "unicast" && !metadata.has(address.toString());
  if (address.match(nat64, 96)) return isPublic(new ipaddr.IPv4(address.toByteArray().slice(12)));
  return address.range() === "unicast" && address.match(globalUnicast, 3);
}

/** A CIDR network (`10.0.0.0/8`, `2001:db8::/32`) or one address. IPv4-mapped networks are those of IPv4. */
export function parseNetwork(text: string): Parsed<Network> {
  const [, addressText = "", prefixText] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text.trim()) ?? [];
  const mapped = isIP(addressText) === 6 && ipaddr.IPv6.parse(addressText).isIPv4MappedAddress();
  const address = addressText.includes("%") ? null : parseAddress(addressText);
  if (!address)
    return {
      ok: false,
      issue: `${text} is not an IP network: write 10.0.0.0/8, 2001:db8::/32 or an address`,
    };
  const bits = address.kind() === "ipv4" ? 32 : 128;
  const prefix = prefixText === undefined ? bits : Number(prefixText) - (mapped ? 96 : 0);
  if (prefix < 0 || prefix > bits)
    return { ok: false, issue: `${text} has a prefix length outside of 0–${bits}` };
  return { ok: true, value: { address, prefix } };
}

/** Whether an address is in one of the networks. Throws for a text that is not a network: callers have checked the configuration. */
export function createAllowList(networks: string[]): (address: string) => boolean {
  const parsed = networks.map((text) => {
    const network = parseNetwork(text);
    if (!network.ok) throw new Error(network.issue);
    return network.value;
  });
  return (text) => {
    const address = parseAddress(text);
    return (
      address !== null &&
      parsed.some(
        (network) =>
          address.kind() === network.address.kind() && address.match(network.address, network.prefix),
      )
    );
  };
}

/** Strictly dotted or colon form (`127.1` and `0177.0.0.1` are none), an IPv4-mapped address as its IPv4 one. */
function parseAddress(text: string): Address | null {
  return isIP(text) === 0 ? null : ipaddr.process(text);
}

/** The one form of an address that a host may have and send from (RFC 5952). A zone, a mapped form and what no host has of its own are refused. */
export function parseHostAddress(text: string): Parsed<string> {
  if (isIP(text) === 0 || text.includes("%")) return { ok: false, issue: "is not an IP address" };
  const address = ipaddr.parse(text);
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress())
    return { ok: false, issue: "is an IPv4 address in IPv6 form; write it as IPv4" };
  if (["unspecified", "broadcast", "multicast", "linkLocal"].includes(address.range()))
    return { ok: false, issue: "is not an address that mail can be sent from" };
  return {
    ok: true,
    value: address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString(),
  };
}

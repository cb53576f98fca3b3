// Networks and addresses as allowlists and proxies name them: CIDR (RFC 4632, RFC 4291 §2.3) or one
// address. An IPv4 peer that a dual-stack socket shows as ::ffff:a.b.c.d is its IPv4 address everywhere.
import { BlockList, isIP } from "node:net";

export interface Network {
  address: string;
  prefix: number;
  family: "ipv4" | "ipv6";
}

export interface Networks {
  has(ip: string): boolean;
}

/** The address without its zone, IPv4 where it is IPv4-mapped; null for a text that is not an address. */
export function plainIp(text: string): string | null {
  const bare = text.replace(/%.*$/s, "");
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1];
  const ip = mapped ?? bare;
  return isIP(ip) === 0 ? null : ip;
}

/** Reads `10.0.0.0/8`, `2001:db8::/32` or a single address; null for anything else. */
export function parseNetwork(text: string): Network | null {
  const [address = "", length, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0 || address.includes("%")) return null;
  const widest = version === 4 ? 32 : 128;
  if (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length)) return null;
  const prefix = length === undefined ? widest : Number(length);
  return prefix > widest ? null : { address, prefix, family: version === 4 ? "ipv4" : "ipv6" };
}

/** A set of networks; what does not parse is left out (it was refused where it came in). */
export function createNetworks(texts: readonly string[]): Networks {
  const list = new BlockList();
  for (const text of texts) {
    const network = parseNetwork(text);
    if (network) list.addSubnet(network.address, network.prefix, network.family);
  }
  return {
    has(ip) {
      const plain = plainIp(ip);
      return plain !== null && list.check(plain, isIP(plain) === 4 ? "ipv4" : "ipv6");
    },
  };
}

/** What failures and tokens of a source are counted under: an IPv4 address, or the /64 that one IPv6 customer has. */
export function sourceOf(ip: string): string {
  const plain = plainIp(ip);
  if (plain === null) return "unknown";
  if (isIP(plain) === 4) return plain;
  const [head = "", tail] = plain.toLowerCase().split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail === undefined || tail === "" ? [] : tail.split(":");
  const width = back.some((group) => group.includes(".")) ? 7 : 8;
  const gap =
    tail === undefined ? [] : Array<string>(Math.max(0, width - front.length - back.length)).fill("0");
  const groups = [...front, ...gap, ...back].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}

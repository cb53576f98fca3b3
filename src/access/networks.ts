// Networks and addresses as allowlists and proxies name them: CIDR (RFC 4632, RFC 4291 §2.3) or one
// address. An IPv4 peer that a dual-stack socket shows as ::ffff:a.b.c.d is its IPv4 address everywhere.
import { BlockList, isIP } from "node:net";
import { plainIp } from "../model/ip-source.ts";

export interface Network {
  address: string;
  prefix: number;
  family: "ipv4" | "ipv6";
}

export interface Networks {
  has(ip: string): boolean;
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

// An IP address as labels of a DNS name, most significant part last: IPv4 by octets, IPv6 by nibbles. Names of PTR
// records (RFC 1035 §3.5, RFC 3596 §2.5) and of blocklists (RFC 5782 §2.1, §2.4) begin with them.
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** `4.3.2.1`, or 32 nibbles; an IPv4-mapped address is its IPv4 one. null: the text is not an address. */
export function reversedAddress(text: string): { labels: string; family: 4 | 6 } | null {
  if (isIP(text) === 0 || text.includes("%")) return null;
  const parsed = ipaddr.process(text);
  const bytes = parsed.toByteArray();
  if (parsed.kind() === "ipv4") return { labels: bytes.toReversed().join("."), family: 4 };
  const nibbles = Buffer.from(bytes).toString("hex").split("");
  return { labels: nibbles.toReversed().join("."), family: 6 };
}

// What one source of connections is: an IPv4 address, or the /64 that one IPv6 customer has.
import { isIP } from "node:net";

/** The address without its zone, IPv4 where it is IPv4-mapped; null for a text that is not an address. */
export function plainIp(text: string): string | null {
  const bare = text.replace(/%.*$/s, "");
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1];
  const ip = mapped ?? bare;
  return isIP(ip) === 0 ? null : ip;
}

/** What failures, tokens and lines of the log of a source are counted under: an IPv4 address, or the /64 that one IPv6 customer has. */
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

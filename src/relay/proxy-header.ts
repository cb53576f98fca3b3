// The PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt §2): the line or block with which a load
// balancer says whose connection it forwards. Only syntax: who may say it is proxy-protocol.ts.
import { isIP } from "node:net";

export type ProxyHeader =
  /** `peer` null: the proxy speaks for itself (LOCAL, UNKNOWN). `length`: octets of the header. */
  | { kind: "whole"; peer: { ip: string; port: number } | null; length: number }
  | { kind: "partial" }
  | { kind: "wrong" };

const signature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
/** §2.1: with its CRLF. */
const longestLine = 107;
/** Addresses and the TLVs that proxies add; a larger header is invalid. */
const longestBlock = 2_048;
const line = /^PROXY (?:UNKNOWN(?: .*)?|TCP([46]) (\S+) \S+ (\d{1,5}) \d{1,5})$/;
const wrong: ProxyHeader = { kind: "wrong" };
const partial: ProxyHeader = { kind: "partial" };

/** `bytes`: all that has come so far. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  const begins = bytes.subarray(0, signature.length);
  if (begins.equals(signature.subarray(0, begins.length)))
    return begins.length < signature.length ? partial : readBlock(bytes);
  return readLine(bytes);
}

function readLine(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, longestLine).indexOf("\r\n");
  if (end < 0) {
    const text = bytes.toString("latin1", 0, 6);
    return bytes.length < longestLine && "PROXY ".startsWith(text) ? partial : wrong;
  }
  const match = line.exec(bytes.toString("latin1", 0, end));
  if (!match) return wrong;
  const [, family, ip, port] = match;
  if (ip === undefined) return { kind: "whole", peer: null, length: end + 2 };
  if (isIP(ip) !== Number(family)) return wrong;
  return { kind: "whole", peer: { ip, port: Number(port) }, length: end + 2 };
}

/** §2.2: version and command, family and transport, length, addresses. */
function readBlock(bytes: Buffer): ProxyHeader {
  if (bytes.length < 16) return partial;
  const [version, command] = [(bytes[12] ?? 0) >> 4, (bytes[12] ?? 0) & 15];
  const length = bytes.readUInt16BE(14);
  if (version !== 2 || command > 1 || length > longestBlock) return wrong;
  if (bytes.length < 16 + length) return partial;
  const whole = (peer: { ip: string; port: number } | null): ProxyHeader => ({
    kind: "whole",
    peer,
    length: 16 + length,
  });
  const family = bytes[13] ?? 0;
  if (command === 0 || family === 0) return whole(null);
  const addresses = bytes.subarray(16, 16 + length);
  if (family === 0x11 && length >= 12)
    return whole({ ip: addresses.subarray(0, 4).join("."), port: addresses.readUInt16BE(8) });
  if (family === 0x21 && length >= 36)
    return whole({ ip: ipv6(addresses.subarray(0, 16)), port: addresses.readUInt16BE(32) });
  return wrong;
}

function ipv6(bytes: Buffer): string {
  return Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16)).join(":");
}

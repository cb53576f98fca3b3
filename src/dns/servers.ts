// Which servers answer our questions: those of `dns.servers`, or the system's where that is empty.
import { readFileSync } from "node:fs";
import { isIP } from "node:net";

export interface DnsServerAddress {
  /** An IP address; a name could not be looked up without a server. */
  address: string;
  port: number;
  family: 4 | 6;
}

/** `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or `[2001:db8::1]:5353`; null for anything else. */
export function parseServer(text: string): DnsServerAddress | null {
  const bracketed = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(text);
  const dotted = /^([\d.]+)(?::(\d{1,5}))?$/.exec(text);
  const [, address = text, portText = "53"] = bracketed ?? dotted ?? [];
  const family = isIP(address);
  const port = Number(portText);
  if ((family !== 4 && family !== 6) || (bracketed && family === 4) || port < 1 || port > 65_535) return null;
  return { address, port, family };
}

/** The `nameserver` lines of resolv.conf(5), at most three as the C library has it; none: this machine itself. */
export function systemServers(file = "/etc/resolv.conf"): DnsServerAddress[] {
  const servers: DnsServerAddress[] = [];
  for (const line of readLines(file)) {
    const server = parseServer(/^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? "");
    if (server && servers.length < 3) servers.push(server);
  }
  return servers.length > 0 ? servers : [{ address: "127.0.0.1", port: 53, family: 4 }];
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch {
    return []; // no file: the same as an empty one, by resolv.conf(5)
  }
}

export function showServer(server: DnsServerAddress): string {
  return server.family === 6 ? `[${server.address}]:${server.port}` : `${server.address}:${server.port}`;
}

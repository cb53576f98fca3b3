// The addresses of this node's interfaces, in its memory: another node has others. An MX at one of its outward addresses would be a loop (RFC 5321 §5.1),
// and so would a loopback address that mail is accepted at. The addresses of our host name, which no interface may have:
// own-addresses.ts.
import { networkInterfaces } from "node:os";
import type { ListenAddress } from "../config.ts";

/** `listeners`: where mail is accepted. The interfaces are read once. */
export function localAddresses(
  listeners: ListenAddress[],
  interfaces = networkInterfaces(),
): (address: string, port: number) => boolean {
  const own = Object.values(interfaces).flatMap((addresses) => addresses ?? []);
  const outward = new Set(own.filter(({ internal }) => !internal).map(({ address }) => address));
  const loopback = new Set(own.filter(({ internal }) => internal).map(({ address }) => address));
  const listensAt = (address: string, port: number): boolean =>
    listeners.some((at) => {
      if ("path" in at || at.port !== port) return false;
      const all = at.host === "0.0.0.0" || at.host === "::";
      return at.host === address || (all && loopback.has(address));
    });
  return (address, port) => outward.has(address) || listensAt(address, port);
}

export function portsOf(listeners: ListenAddress[]): number[] {
  return listeners.flatMap((at) => ("path" in at ? [] : [at.port]));
}

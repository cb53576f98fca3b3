// Whose request it is. X-Forwarded-For counts only where the peer is a trusted proxy, and then only its
// right-most hop that is not a trusted proxy itself: what stands left of it the client may have written
// (RFC 7239 §8.1). A Unix socket's peer is a proxy on this machine.
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Networks } from "../access/networks.ts";
import { plainIp } from "../model/ip-source.ts";

/** The address that allowlists, lock-outs and buckets see. */
export function clientIp(req: IncomingMessage, trusted: Networks): string {
  let client = peerOf(req);
  if (!isProxy(client, trusted)) return client;
  for (const hop of hops(req).toReversed()) {
    const ip = hopIp(hop);
    if (ip === null) break;
    client = ip;
    if (!trusted.has(ip)) break;
  }
  return client;
}

/** True where a trusted proxy says that the client came over HTTPS. */
export function forwardedHttps(req: IncomingMessage, trusted: Networks): boolean {
  if (!isProxy(peerOf(req), trusted)) return false;
  const said = req.headers["x-forwarded-proto"];
  const last = (Array.isArray(said) ? said.join(",") : (said ?? "")).split(",").at(-1) ?? "";
  return last.trim().toLowerCase() === "https";
}

export function isLoopback(req: IncomingMessage): boolean {
  const peer = peerOf(req);
  return peer === "" || peer === "::1" || peer.startsWith("127.");
}

function isProxy(peer: string, trusted: Networks): boolean {
  return peer === "" || trusted.has(peer);
}

/** Empty for a Unix socket. */
function peerOf(req: IncomingMessage): string {
  return plainIp(req.socket.remoteAddress ?? "") ?? "";
}

function hops(req: IncomingMessage): string[] {
  return (req.headersDistinct["x-forwarded-for"] ?? []).flatMap((value) => value.split(","));
}

/** A hop may carry a port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function hopIp(hop: string): string | null {
  const text = hop.trim();
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1];
  const bare = bracketed ?? (isIP(text) === 0 ? text.replace(/:\d+$/, "") : text);
  return plainIp(bare);
}

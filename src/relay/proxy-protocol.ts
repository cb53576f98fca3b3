// Connections from `relay.trusted_proxies` must begin with a PROXY header, which names the client; without one they are
// closed. From any other peer such a header is an unknown command.
import type { Socket } from "node:net";
import type { Networks } from "../access/networks.ts";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { endsOf } from "./peer.ts";
import { readProxyHeader } from "./proxy-header.ts";

export interface ProxyProtocol {
  /** Hands the socket on once it is known whose it is, its header read away; else closes it. */
  take(socket: Socket, next: (socket: Socket) => void): void;
  /** The client's address, the proxy's own where that did not say; also of the TLS socket over one that came by here. */
  peerOf(socket: Socket): string;
  /** False where a proxy did not say whose the connection is (UNKNOWN, LOCAL): peerOf is not the client's address then. */
  knowsClient(socket: Socket): boolean;
}

/** For a header, which a proxy sends at once. */
const headerMs = 10_000;
/** Connections whose header is still due; a newcomer then ends the one that has waited longest. */
const mostWaiting = 1_000;

export function createProxyProtocol({
  proxies,
  clock,
  log,
}: {
  proxies: Networks;
  clock: Pick<Clock, "after">;
  log: Log;
}): ProxyProtocol {
  /** The client's address by the ends of the proxy's own connection; null: the proxy did not say. */
  const peers = new Map<string, { ip: string | null }>();
  const waiting = new Set<Socket>();

  return {
    take(socket, next) {
      if (!proxies.has(socket.remoteAddress ?? "")) return next(socket);
      if (waiting.size >= mostWaiting) endFirst(waiting);
      waiting.add(socket);
      const ends = endsOf(socket);
      const timer = clock.after(headerMs, () => socket.destroy());
      const own: { ip: string | null } = { ip: null };
      let bytes: Buffer = Buffer.alloc(0);
      const read = (): void => {
        const chunk: Buffer | null = socket.read();
        if (chunk === null) return;
        bytes = Buffer.concat([bytes, chunk]);
        const header = readProxyHeader(bytes);
        if (header.kind === "partial") return;
        timer.cancel();
        waiting.delete(socket);
        socket.off("readable", read);
        if (header.kind === "wrong") {
          log.warn({ ip: socket.remoteAddress }, "a connection from a trusted proxy had no PROXY header");
          return void socket.destroy();
        }
        own.ip = header.peer && header.peer.ip;
        peers.set(ends, own);
        if (bytes.length > header.length) socket.unshift(bytes.subarray(header.length));
        next(socket);
      };
      socket.on("readable", read);
      socket.once("close", () => {
        timer.cancel();
        waiting.delete(socket);
        if (peers.get(ends) === own) peers.delete(ends); // another connection may have the same ends by now
      });
    },
    peerOf: (socket) => peers.get(endsOf(socket))?.ip ?? socket.remoteAddress ?? "",
    knowsClient(socket) {
      const peer = peers.get(endsOf(socket));
      return peer ? peer.ip !== null : !proxies.has(socket.remoteAddress ?? "");
    },
  };
}

function endFirst(sockets: Set<Socket>): void {
  for (const socket of sockets) {
    sockets.delete(socket);
    return void socket.destroy();
  }
}

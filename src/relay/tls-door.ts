// Implicit TLS (RFC 8314 §3.3): the handshake that comes before the session on 465. It has a deadline that no
// trickle of bytes extends, and places of its own, so that who leaves handshakes open takes no session's.
import type { Socket } from "node:net";
import { createServer } from "node:tls";
import type { SecureContextOptions, TLSSocket } from "node:tls";
import type { Log } from "../log.ts";
import { createConnectionLimiter } from "../access/connection-limiter.ts";

export interface TlsDoor {
  take(socket: Socket): void;
  /** Another certificate, for handshakes from now on. */
  renew(context: SecureContextOptions): void;
  /** Drops every socket that came by here. */
  close(): void;
}

const handshakeMs = 25_000;

export function createTlsDoor(options: {
  context: SecureContextOptions;
  places: { total: number; perSource: number };
  peerOf(socket: Socket): string;
  log: Log;
  secured(socket: TLSSocket): void;
}): TlsDoor {
  const places = createConnectionLimiter(options.places);
  const sockets = new Set<Socket>();
  const server = createServer({ ...options.context, handshakeTimeout: handshakeMs });
  server.on("secureConnection", (socket) => {
    socket.on("error", () => undefined);
    options.secured(socket);
  });
  server.on("tlsClientError", (error) => options.log.debug({ err: error }, "a TLS handshake failed"));
  return {
    take(socket) {
      const leave = places.enter(options.peerOf(socket));
      if (!leave) return void socket.destroy();
      sockets.add(socket);
      socket.once("close", () => {
        leave();
        sockets.delete(socket);
      });
      server.emit("connection", socket);
    },
    renew: (context) => server.setSecureContext(context),
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

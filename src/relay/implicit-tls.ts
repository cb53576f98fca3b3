// Implicit TLS (RFC 8314 §3.3): the handshake that comes before the session on 465. It has a deadline that no
// trickle of bytes extends, and slots of its own, so that open handshakes use up no session; if all are in use, a
// new handshake evicts an older one (session-limiter.ts).
import type { Socket } from "node:net";
import { createServer } from "node:tls";
import type { SecureContextOptions, TLSSocket } from "node:tls";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { endsOf } from "./peer.ts";
import type { SessionLimiter } from "./session-limiter.ts";

export interface ImplicitTls {
  take(socket: Socket): void;
  /** Monotonic ms at which the connection under the TLS socket was accepted; null: it did not come by here. */
  acceptedAt(socket: Socket): number | null;
  /** Another certificate, for handshakes from now on. */
  renew(context: SecureContextOptions): void;
  /** Drops every socket that came by here. */
  close(): void;
}

const handshakeMs = 25_000;

export function createImplicitTls(options: {
  context: SecureContextOptions;
  handshakes: SessionLimiter;
  clock: Pick<Clock, "monotonic" | "after">;
  peerOf(socket: Socket): string;
  log: Log;
  secured(socket: TLSSocket): void;
}): ImplicitTls {
  /** By their ends, while they are open. */
  const came = new Map<string, { at: number; shaken: () => void }>();
  const sockets = new Set<Socket>();
  // Node's own timer is for Unix sockets, of which nobody can tell here that their handshake has ended. It only reports.
  const server = createServer({ ...options.context, handshakeTimeout: handshakeMs });
  server.on("secureConnection", (socket) => {
    socket.on("error", () => undefined);
    came.get(endsOf(socket))?.shaken();
    options.secured(socket);
  });
  server.on("tlsClientError", (error, socket) => {
    options.log.debug({ err: error }, "a TLS handshake failed");
    socket.destroy();
  });
  return {
    take(socket) {
      const slot = options.handshakes.enter(options.peerOf(socket), () => void socket.destroy());
      if (!slot) return void socket.destroy();
      const ends = endsOf(socket);
      // A Unix socket has no ends to tell it by: it keeps its slot for as long as it is open.
      const late =
        socket.remoteAddress === undefined
          ? null
          : options.clock.after(handshakeMs, () => void socket.destroy());
      const shaken = (): void => {
        late?.cancel();
        slot.leave();
      };
      const own = { at: options.clock.monotonic(), shaken };
      if (socket.remoteAddress !== undefined) came.set(ends, own);
      sockets.add(socket);
      socket.once("close", () => {
        shaken();
        if (came.get(ends) === own) came.delete(ends); // another connection may have the same ends by now
        sockets.delete(socket);
      });
      server.emit("connection", socket);
    },
    acceptedAt: (socket) => came.get(endsOf(socket))?.at ?? null,
    renew: (context) => server.setSecureContext(context),
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

// One listener of the relay, a TCP port or Unix socket. It passes on each socket as soon as it is accepted.
import { once } from "node:events";
import { createServer } from "node:net";
import type { Socket } from "node:net";
import type { ListenAddress } from "../config.ts";

export interface Port {
  readonly name: string;
  /** Rejects with the system's error, e.g. EADDRINUSE. */
  open(): Promise<void>;
  /** Takes no more; resolves once every socket that came by it is closed. */
  close(): Promise<void>;
  /** `host:port` with the real port, `[host]:port` for IPv6, or the path. Only while open. */
  address(): string;
}

export function createPort(name: string, where: ListenAddress, take: (socket: Socket) => void): Port {
  const server = createServer((socket) => {
    // Until the new owner of the socket listens for errors, a reset must not end the process.
    socket.on("error", () => undefined);
    take(socket);
  });
  return {
    name,
    async open() {
      server.listen(where);
      await once(server, "listening");
    },
    close: () => new Promise((resolve) => void server.close(() => resolve())),
    address() {
      const bound = server.address();
      if (bound === null || typeof bound === "string") return bound ?? "";
      return bound.family === "IPv6" ? `[${bound.address}]:${bound.port}` : `${bound.address}:${bound.port}`;
    },
  };
}

// One listening server around an app: its TLS, its time limits, its end. HTTP/1.1 only and TLS 1.2 at
// least; plain HTTP on a TLS port is closed without an answer. A connection is counted before anything is done for it
// (connections.ts). On stop nothing new is taken, idle connections are closed at once, and what is in flight is
// answered and then closed.
import type { NodeHttp1Handler } from "srvx";
import { toNodeHandler } from "srvx/node";
import type { H3 } from "h3";
import {
  createServer as createHttpServer,
  STATUS_CODES,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer, Server as HttpsServer } from "node:https";
import type { ListenOptions, Socket } from "node:net";
import type { Clock, Timer } from "../clock.ts";
import type { SecureContext } from "node:tls";
import type { Certificates } from "../tls/certificates.ts";
import type { NameCertificates } from "../tls/name-certificates.ts";
import { createWriteWatch } from "./answers.ts";
import type { Connections } from "./connections.ts";
import { createPipelines } from "./pipelines.ts";
import type { TrackingEndpoints } from "./tracking.ts";

export interface Listener {
  /** Port or path as bound. */
  address(): string;
  stop(): Promise<void>;
}

export interface ListenerDeps {
  app: H3;
  certificates: Certificates | null;
  clock: Clock;
  /** null on the operator's socket, whose file mode is its limit. */
  connections: Connections | null;
  /** The certificates of other names than the host's own; null: there are none. */
  names: NameCertificates | null;
  /** Answers requests to other paths than the API's; null on the operator's socket. */
  tracking: TrackingEndpoints | null;
  /** A whole HTTP/1.1 response for a request that never became one. */
  malformed(status: number, ip: string): string;
}

const limits: ServerOptions = {
  keepAliveTimeout: 65_000,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 16_384,
  requireHostHeader: false, // a missing Host is answered in our own form
};
/** A connection on which nothing moves; streams on the socket have a heartbeat. */
const idleSocketMs = 120_000;
const drainMs = 10_000;
/** How long the rest of a refused request is read and thrown away. */
const lingerMs = 30_000;
/** How many refused connections get an answer at a time; more are closed without one. */
const mostRefused = 100;
const refusedMs = 1000;
const tlsOptions = { minVersion: "TLSv1.2", ALPNProtocols: ["http/1.1"] } as const;
/** With the wait for a turn before it (connections.ts) less than 30 s. */
const handshakeMs = 15_000;

/** Resolves once the server listens; rejects with the system's error where it cannot. */
export async function listen(options: ListenOptions, deps: ListenerDeps): Promise<Listener> {
  const { certificates, clock } = deps;
  const handler = toNodeHandler((request) => deps.app.fetch(request)) as NodeHttp1Handler;
  const server: Server = certificates
    ? createHttpsServer({
        ...limits,
        ...tlsOptions,
        ...certificates.current(),
        SNICallback: (name, callback) => void contextFor(name, certificates, deps.names, callback),
      })
    : createHttpServer(limits);
  const unsubscribe = certificates?.onChange(() => {
    if (server instanceof HttpsServer)
      server.setSecureContext({ minVersion: tlsOptions.minVersion, ...certificates.current() });
  });
  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    if (!deps.tracking || !(await deps.tracking(req, res))) await handler(req, res);
  };
  const pipelines = createPipelines();
  const writes = createWriteWatch(clock);
  const leaving = new Set<Socket>();
  let stopping = false;

  /**
   * The last answer was written. Closing over unread bytes resets the connection, and the client never
   * sees the answer (RFC 9112 §9.6): they are read and thrown away first, for a while.
   */
  const linger = (socket: Socket): void => {
    if (leaving.has(socket)) return;
    leaving.add(socket);
    socket.end();
    const late = clock.after(lingerMs, () => socket.destroy());
    socket.once("close", () => {
      late.cancel();
      leaving.delete(socket);
    });
  };
  const onConnection = (socket: Socket): void => {
    if (deps.connections) writes.add(socket);
    const close = socket.destroySoon.bind(socket);
    // What node:http calls after an answer that says `Connection: close`.
    socket.destroySoon = () => {
      const request = pipelines.latest(socket)?.req;
      if (!request || request.complete) return close();
      request.once("end", close).resume();
      linger(socket);
    };
  };
  const onRequest = (req: IncomingMessage, res: ServerResponse): void => {
    if (leaving.has(req.socket)) return; // pipelined behind the last one
    // Ours and those of a streamed answer are eleven; above ten Node.js writes a warning of a leak to the log.
    res.setMaxListeners(20);
    res.once("close", () => {
      if (stopping) setImmediate(() => server.closeIdleConnections());
    });
    pipelines.enter(req, res, () => {
      void serve(req, res).catch(() => res.destroy());
    });
  };
  server.on("request", onRequest);
  server.on("checkContinue", onRequest); // the body is asked for once the middleware reads it
  server.on("checkExpectation", onRequest); // the middleware refuses any other expectation in our own form
  server.on(certificates ? "secureConnection" : "connection", onConnection);
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (leaving.has(socket) && error.code?.startsWith("HPE_")) return; // more of what was refused
    // Before the handshake has ended no client can read an answer; a slow one would take it for that to its request.
    if (/^ERR_(?:TLS|SSL)_/.test(error.code ?? "")) return void socket.destroy();
    const current = pipelines.latest(socket);
    const refuse = (): void => {
      if (!socket.writable) return; // the answer before was the connection's last
      socket.write(deps.malformed(statusOf(error), socket.remoteAddress ?? ""));
      linger(socket);
    };
    if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
    if (current?.req.complete) return void current.once("finish", refuse); // what came behind it; its own answer comes first
    if (current?.headersSent) return void socket.destroy();
    refuse();
  });
  server.timeout = idleSocketMs;
  const limited = deps.connections ? limitConnections(server, deps, deps.connections) : null;
  await listening(server, options);

  return {
    address: () => boundAddress(server),
    async stop() {
      stopping = true;
      unsubscribe?.();
      writes.stop();
      const { promise, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      server.closeIdleConnections();
      limited?.close();
      for (const socket of leaving) socket.destroy();
      const late = clock.after(drainMs, () => server.closeAllConnections());
      await promise;
      late.cancel();
    },
  };
}

/** The context of a tracking name; else, and where it has none that can be used, that of the host's certificate. */
async function contextFor(
  name: string,
  certificates: Certificates,
  names: NameCertificates | null,
  callback: (error: Error | null, context?: SecureContext) => void,
): Promise<void> {
  const own = name.toLowerCase();
  const context = names === null || certificates.covers(own) ? null : await names.contextOf(own);
  callback(null, context ?? undefined);
}

/** Node's own listener (HTTP, or the TLS handshake before it) runs once the connection has its place. */
function limitConnections(
  server: Server,
  deps: ListenerDeps,
  connections: Connections,
): {
  /** Those that have no request yet: in their handshake or waiting for it, and refused ones. */ close(): void;
} {
  const serveAll = server.listeners("connection");
  const secure = server instanceof HttpsServer;
  /** Of those in their handshake, by their addresses: Node does not say which TLS socket stands on which connection. */
  const outer = new Map<string, { socket: Socket; late: Timer }>();
  const unserved = new Set<Socket>();
  let refused = 0;
  const refuse = (socket: Socket): void => {
    if (secure || refused >= mostRefused || socket.destroyed) return void socket.destroy();
    refused += 1;
    const late = deps.clock.after(refusedMs, () => socket.destroy());
    socket.once("close", () => {
      refused -= 1;
      late.cancel();
    });
    socket
      .on("error", () => undefined)
      .resume()
      .end(deps.malformed(503, socket.remoteAddress ?? ""));
  };
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    unserved.add(socket);
    socket.once("close", () => unserved.delete(socket));
    const serve = (): void => {
      unserved.delete(socket);
      if (secure) {
        const name = addressesOf(socket);
        const late = deps.clock.after(handshakeMs, () => socket.destroy());
        const own = { socket, late };
        outer.set(name, own);
        socket.once("close", () => {
          late.cancel();
          // A peer that resets its connection may have the next one from the same port before this one is closed.
          if (outer.get(name) === own) outer.delete(name);
        });
      }
      for (const listener of serveAll) Reflect.apply(listener, server, [socket]);
    };
    connections.admit(socket, serve, () => refuse(socket));
  });
  server.on("secureConnection", (inner: Socket) => {
    const name = addressesOf(inner);
    const shaken = outer.get(name);
    if (!shaken) return void inner.destroy(); // it ended meanwhile
    outer.delete(name);
    shaken.late.cancel();
    connections.carries(shaken.socket, inner);
  });
  return {
    close() {
      for (const socket of unserved) socket.destroy();
      for (const { socket } of outer.values()) socket.destroy();
    },
  };
}

function addressesOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localAddress} ${socket.localPort}`;
}

/** A complete answer with its headers, for a socket that has no response object. */
export function rawResponse(status: number, headers: Record<string, string>, body: string): string {
  const fields = { ...headers, "content-length": String(Buffer.byteLength(body)), connection: "close" };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("\r\n")}\r\n\r\n${body}`;
}

function statusOf(error: NodeJS.ErrnoException): number {
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") return 408;
  return error.code === "HPE_HEADER_OVERFLOW" ? 431 : 400;
}

function listening(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function boundAddress(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === "string") return address ?? "";
  return address.family === "IPv6"
    ? `[${address.address}]:${address.port}`
    : `${address.address}:${address.port}`;
}

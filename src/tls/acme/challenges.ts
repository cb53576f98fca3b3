// The listener of tls.acme.http_listen (port 80): answers the ACME server's look at /.well-known/acme-challenge/ (RFC 8555
// §8.3) for tokens that are under way, and for nothing else; sends other requests for our names to https; 404 else. It
// is open to the world and serves nobody who stays: few connections, few a second, one request each, no body read, short
// limits. An address that cannot be opened, as port 80 of another web server, does not keep mail from being served: it is
// said, and tried again by whoever calls `open`.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../clock.ts";
import type { ListenAddress } from "../../config.ts";
import { listenText } from "../../config/checks.ts";
import type { Log } from "../../log.ts";
import type { Service } from "../../service.ts";
import type { ChallengeAnswers } from "./client.ts";

export interface ChallengesDeps {
  listen: readonly ListenAddress[];
  /** Where requests for a host go, `https://…` without a path; null: it is none of our names. */
  secureOrigin(host: string): Promise<string | null>;
  clock: Pick<Clock, "monotonic">;
  log: Log;
}

/** An address that could not be opened. */
export interface ClosedAddress {
  listen: ListenAddress;
  error: NodeJS.ErrnoException;
}

export interface Challenges extends Service, ChallengeAnswers {
  addresses(): { name: string; address: string }[];
  /** Opens what is not open. Never rejects: what cannot be opened is in `closed`. */
  open(): Promise<void>;
  closed(): readonly ClosedAddress[];
}

/** Why an address is closed, and what to do about it. */
export function closedText({ listen, error }: ClosedAddress): string {
  const where = listenText(listen);
  if (error.code === "EADDRINUSE") {
    const who = "path" in listen ? "" : `; ss -ltnp 'sport = :${listen.port}' names it`;
    return `${where} is in use by another program${who}`;
  }
  if (error.code === "EACCES")
    return `no permission to use ${where}: ports below 1024 need root or the capability CAP_NET_BIND_SERVICE`;
  if (error.code === "EADDRNOTAVAIL") return `${where} is not an address of this machine`;
  return `${where} could not be opened: ${error.message}`;
}

const folder = "/.well-known/acme-challenge/";
/** Orders are made one after the other, and each asks for one token a name. */
const mostTokens = 100;
const longestTarget = 2048;
const limits = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 8_192,
  keepAlive: false,
  requireHostHeader: false,
};
/** Of more, the oldest is closed: whoever asks is answered at once, so it is one that only waits. */
const mostConnections = 200;
const idleMs = 10_000;
/** A redirect costs the loop a tenth of a millisecond, which a flood must not take from mail. */
const mostASecond = 500;

export function createChallenges({ listen, secureOrigin, clock, log }: ChallengesDeps): Challenges {
  const tokens = new Map<string, string>();
  const opened = new Map<ListenAddress, Server>();
  const closed = new Map<ListenAddress, ClosedAddress>();
  let opening: Promise<void> | null = null;
  let stopped = false;
  const connections = new Set<Socket>();
  let second = { began: clock.monotonic(), served: 0 };

  /** While a token is under way all are: one of them may be the ACME server. */
  const mayServe = (): boolean => {
    const now = clock.monotonic();
    if (now - second.began >= 1_000) second = { began: now, served: 0 };
    second.served += 1;
    return tokens.size > 0 || second.served <= mostASecond;
  };

  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const { url = "/", method } = req;
    if (method !== "GET" && method !== "HEAD")
      return plain(res, 405, "Only GET is answered here\n", { allow: "GET, HEAD" });
    const proof = url.startsWith(folder) ? tokens.get(url.slice(folder.length)) : undefined;
    if (proof !== undefined) return plain(res, 200, proof);
    const origin = url.startsWith(folder) || !isTarget(url) ? null : await secureOrigin(hostOf(req));
    if (origin === null) return plain(res, 404, "Not found\n");
    plain(res, 301, `See ${origin}\n`, { location: `${origin}${url}` });
  };

  const openOne = async (where: ListenAddress): Promise<Server> => {
    const server = createServer(limits, (req, res) => {
      answer(req, res).catch((error: unknown) => {
        log.error({ err: error }, "a request on tls.acme.http_listen failed");
        res.destroy();
      });
    });
    const serve = server.listeners("connection");
    server.removeAllListeners("connection");
    server.on("connection", (socket) => {
      if (!mayServe()) return void socket.destroy();
      for (const listener of serve) Reflect.apply(listener, server, [socket]);
      connections.add(socket);
      socket.once("close", () => connections.delete(socket));
      const [oldest] = connections;
      if (connections.size > mostConnections) oldest?.destroy();
    });
    server.timeout = idleMs;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    server.listen(where, resolve);
    await promise;
    server.off("error", reject);
    server.on("error", (error) => log.debug({ err: error }, "a connection failed"));
    return server;
  };

  const openAll = async (): Promise<void> => {
    for (const where of listen) {
      if (stopped || opened.has(where)) continue;
      try {
        opened.set(where, await openOne(where));
        if (closed.delete(where))
          log.info({ address: listenText(where) }, "the ACME server's checks are answered now");
      } catch (error) {
        const before = closed.get(where);
        const now = { listen: where, error: error as NodeJS.ErrnoException };
        closed.set(where, now);
        if (before?.error.code !== now.error.code)
          log.warn(
            { address: listenText(where), detail: closedText(now) },
            "the ACME server's checks cannot be answered there; it is tried again each minute",
          );
      }
    }
  };
  const open = (): Promise<void> => (opening ??= openAll().finally(() => (opening = null)));

  return {
    name: "acme",
    add(token, keyAuthorization) {
      tokens.set(token, keyAuthorization);
      const [oldest] = tokens.keys();
      if (tokens.size > mostTokens && oldest !== undefined) tokens.delete(oldest);
    },
    remove: (token) => void tokens.delete(token),
    addresses: () => [...opened.values()].map((server) => ({ name: "acme", address: addressOf(server) })),
    closed: () => [...closed.values()],
    open,
    start: open,
    async stop() {
      stopped = true;
      await opening;
      await Promise.all(
        [...opened.values()].map((server) => {
          const closed = new Promise<void>((done) => server.close(() => done()));
          server.closeAllConnections();
          return closed;
        }),
      );
    },
  };
}

function plain(
  res: ServerResponse,
  status: number,
  text: string,
  headers: Record<string, string> = {},
): void {
  res.writeHead(status, {
    "content-type": "text/plain",
    "content-length": String(Buffer.byteLength(text)),
    "x-content-type-options": "nosniff",
    connection: "close",
    ...headers,
  });
  res.end(text);
}

function hostOf({ headers }: IncomingMessage): string {
  return (headers.host ?? "").toLowerCase().replace(/:\d+$/, "");
}

/** What may stand behind a host in Location: a path in printable ASCII. */
function isTarget(url: string): boolean {
  return url.length <= longestTarget && /^\/[\x21-\x7e]*$/.test(url);
}

function addressOf(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === "string") return address ?? "";
  return address.family === "IPv6"
    ? `[${address.address}]:${address.port}`
    : `${address.address}:${address.port}`;
}

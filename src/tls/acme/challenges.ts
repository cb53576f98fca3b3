// The listener of tls.acme.http_listen (port 80): answers the ACME server's look at /.well-known/acme-challenge/ (RFC 8555
// §8.3) for tokens that are under way, and for nothing else; sends other requests for our names to https; 404 else. It
// is open to the world and serves nobody who stays: few connections, one request each, no body read, short limits.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ListenAddress } from "../../config.ts";
import type { Log } from "../../log.ts";
import type { Service } from "../../service.ts";
import type { ChallengeAnswers } from "./client.ts";

export interface ChallengesDeps {
  listen: readonly ListenAddress[];
  /** Where requests for a host go, `https://…` without a path; null: it is none of our names. */
  secureOrigin(host: string): Promise<string | null>;
  log: Log;
}

export interface Challenges extends Service, ChallengeAnswers {
  addresses(): { name: string; address: string }[];
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

export function createChallenges({ listen, secureOrigin, log }: ChallengesDeps): Challenges {
  const tokens = new Map<string, string>();
  const servers: Server[] = [];
  const connections = new Set<Socket>();

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

  const open = async (where: ListenAddress): Promise<void> => {
    const server = createServer(limits, (req, res) => {
      answer(req, res).catch((error: unknown) => {
        log.error({ err: error }, "a request on tls.acme.http_listen failed");
        res.destroy();
      });
    });
    server.on("connection", (socket) => {
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
    servers.push(server);
  };

  return {
    name: "acme",
    add(token, keyAuthorization) {
      tokens.set(token, keyAuthorization);
      const [oldest] = tokens.keys();
      if (tokens.size > mostTokens && oldest !== undefined) tokens.delete(oldest);
    },
    remove: (token) => void tokens.delete(token),
    addresses: () => servers.map((server) => ({ name: "acme", address: addressOf(server) })),
    async start() {
      for (const where of listen) await open(where);
    },
    async stop() {
      await Promise.all(
        servers.map((server) => {
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

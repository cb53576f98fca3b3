// The HTTP door: the public listeners and the operator's socket, one set of routes behind both. It holds
// what its requests share (buckets, the gate for large bodies, keys in flight, open streams) and the order
// in which listeners come and go.
import { createBuckets } from "../access/buckets.ts";
import { createNetworks } from "../access/networks.ts";
import { Refusal } from "../errors.ts";
import type { Service } from "../service.ts";
import { listenOnSocket } from "./admin-socket.ts";
import { createApp, type AppDeps } from "./app.ts";
import type { HttpDeps } from "./deps.ts";
import { createGate } from "./gate.ts";
import { apiVersion } from "./guards.ts";
import { createInFlight } from "./idempotency.ts";
import { renderProblem } from "./problem.ts";
import { allRoutes } from "./routes.ts";
import { listen, rawResponse, type Listener, type ListenerDeps } from "./listener.ts";
import { createStreams } from "./streams.ts";

export interface Http extends Service {
  /** Where it listens, as bound: `http` for each public listener, `admin` for the socket. */
  addresses(): { name: string; address: string }[];
}

export function createHttp(deps: HttpDeps): Http {
  const { config, certificates, clock, log, store } = deps;
  const streams = createStreams();
  const buckets = createBuckets(clock, config.limits.rates);
  let listeners: { name: string; listener: Listener }[] = [];
  let draining = false;

  const appDeps: AppDeps = {
    store,
    access: deps.access,
    buckets,
    gate: createGate(clock),
    inFlight: createInFlight(),
    clock,
    log,
    mint: deps.mint,
    publicUrl: config.publicUrl,
    trustedProxies: createNetworks(config.http.trustedProxies),
    transport: certificates ? "tls" : config.http.trustedProxies.length > 0 ? "proxy" : "local",
    draining: () => draining,
    maintenance: deps.maintenance,
  };

  /** A request that never became one still gets the form and the headers of every other answer. */
  const malformed = (status: number, ip: string): string => {
    const requestId = deps.mint("req", clock.now());
    const reply = renderProblem(
      new Refusal("invalid_request", malformedText[status] ?? "The request is not valid HTTP/1.1."),
      {
        requestId,
        path: "",
        publicUrl: config.publicUrl,
        acceptsProblem: true,
        status,
      },
    );
    const limit = buckets.takeUnauthenticated(ip);
    const headers = {
      ...reply.headers,
      "x-request-id": requestId,
      "x-api-version-used": apiVersion,
      "x-ratelimit-limit": String(limit.limit),
      "x-ratelimit-remaining": String(limit.remaining),
      "x-ratelimit-reset": String(limit.resetAt),
      "x-ratelimit-bucket": limit.bucket,
    };
    return rawResponse(status, headers, reply.body);
  };

  const stop = async (): Promise<void> => {
    draining = true;
    streams.endAll();
    const open = listeners;
    listeners = [];
    await Promise.all(open.map(({ listener }) => listener.stop()));
  };

  return {
    name: "http",
    addresses: () => listeners.map(({ name, listener }) => ({ name, address: listener.address() })),
    async start() {
      const routes = allRoutes({ ...deps, streams });
      const base: Omit<ListenerDeps, "app" | "certificates"> = { clock, malformed };
      const app = createApp("public", routes, appDeps);
      draining = false;
      try {
        for (const address of config.http.listen) {
          const door = { ...base, app, certificates };
          const bound = "path" in address ? listenOnSocket(address.path, door) : listen(address, door);
          listeners.push({ name: "http", listener: await bound });
        }
        const admin = createApp("admin", routes, appDeps);
        listeners.push({
          name: "admin",
          listener: await listenOnSocket(config.socket, { ...base, app: admin, certificates: null }),
        });
      } catch (error) {
        await stop();
        throw error;
      }
    },
    stop,
  };
}

const malformedText: Record<number, string> = {
  408: "The request did not arrive in time.",
  431: "The request's header is too large.",
};

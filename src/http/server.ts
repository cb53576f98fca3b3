// The HTTP server: the public listeners and the admin socket, one set of routes behind both. It holds
// what its requests share (connection limits, buckets, the memory for bodies, keys in flight, open streams) and the
// order in which listeners come and go.
import { createBuckets } from "../access/buckets.ts";
import { createNetworks } from "../access/networks.ts";
import type { Service } from "../service.ts";
import { listenOnSocket } from "./admin-socket.ts";
import { createApp, type AppDeps } from "./app.ts";
import type { HttpDeps } from "./deps.ts";
import { createBodyMemory } from "./body-memory.ts";
import { createLargeBodies } from "./large-bodies.ts";
import { connectionRule, createConnections } from "./connections.ts";
import { createInFlight } from "./idempotency.ts";
import { affordableConnections } from "../open-files.ts";
import { metricsRoutes } from "./resources/metrics.ts";
import { allRoutes } from "./routes.ts";
import { listen, type Listener } from "./listener.ts";
import { createMalformed } from "./malformed.ts";
import { createStreams } from "./streams.ts";
import { createTrackingEndpoints } from "./tracking.ts";

/** Connections to metrics.listen: a few Prometheus servers ask, and each keeps one. */
const mostScrapers = 50;

export interface Http extends Service {
  /** Where it listens, as bound: `http` for each public listener, `admin` for the socket, `metrics` for those of metrics.listen. */
  addresses(): { name: string; address: string }[];
}

export function createHttp(deps: HttpDeps): Http {
  const { config, certificates, clock, log, store } = deps;
  const shared = createShared(deps);
  const { buckets, connections, streams, largeBodies, trustedProxies, transport } = shared;
  let listeners: { name: string; listener: Listener }[] = [];
  let draining = false;

  const tracking = createTrackingEndpoints({
    ...deps.tracking,
    store,
    connections,
    apiHosts: new Set([new URL(config.publicUrl).hostname, config.hostname.toLowerCase(), "localhost"]),
    trustedProxies,
    transport,
    clock,
    log,
  });

  const appDeps: AppDeps = {
    ...shared,
    store,
    access: deps.access,
    clock,
    log,
    mint: deps.mint,
    publicUrl: config.publicUrl,
    draining: () => draining,
    maintenance: deps.maintenance,
  };

  const malformed = createMalformed({
    buckets,
    clock,
    mint: deps.mint,
    publicUrl: config.publicUrl,
    hasTls: certificates !== null,
  });

  const stop = async (): Promise<void> => {
    draining = true;
    streams.endAll();
    const open = listeners;
    listeners = [];
    await Promise.all(open.map(({ listener }) => listener.stop()));
    await largeBodies.stop();
  };

  return {
    name: "http",
    addresses: () => listeners.map(({ name, listener }) => ({ name, address: listener.address() })),
    async start() {
      const routes = allRoutes({ ...deps, streams });
      const base = { clock, malformed, certificates: null, names: null, tracking: null };
      const app = createApp("public", routes, appDeps);
      draining = false;
      try {
        for (const address of config.http.listen) {
          const own = { ...base, app, certificates, names: deps.trackingCertificates, connections, tracking };
          const bound = "path" in address ? listenOnSocket(address.path, own) : listen(address, own);
          listeners.push({ name: "http", listener: await bound });
        }
        const admin = createApp("admin", routes, appDeps);
        listeners.push({
          name: "admin",
          listener: await listenOnSocket(config.socket, {
            ...base,
            app: admin,
            connections: null,
          }),
        });
        const metrics = createApp("admin", metricsRoutes(deps), appDeps);
        for (const address of config.metrics.listen) {
          const own = { ...base, app: metrics, connections: shared.scrapers };
          const bound = "path" in address ? listenOnSocket(address.path, own) : listen(address, own);
          listeners.push({ name: "metrics", listener: await bound });
        }
      } catch (error) {
        await stop();
        throw error;
      }
    },
    stop,
  };
}

/** What the requests of all listeners share. */
function createShared({ config, certificates, clock, log }: HttpDeps) {
  const trustedProxies = createNetworks(config.http.trustedProxies);
  return {
    streams: createStreams(),
    buckets: createBuckets(clock, config.limits.rates),
    bodies: createBodyMemory(clock),
    largeBodies: createLargeBodies({ clock, log }),
    inFlight: createInFlight(),
    connections: createConnections({
      clock,
      log,
      isProxy: (ip) => ip === "" || trustedProxies.has(ip),
      rule: { ...connectionRule, total: affordableConnections(connectionRule.total, 1 / 2) },
    }),
    /** Connections to metrics.listen. */
    scrapers: createConnections({
      clock,
      log,
      isProxy: () => false,
      rule: { ...connectionRule, total: mostScrapers },
    }),
    trustedProxies,
    transport: certificates ? "tls" : config.http.trustedProxies.length > 0 ? "proxy" : "local",
  } as const;
}

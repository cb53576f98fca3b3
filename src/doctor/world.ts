// The world as the doctor sees it, from inside the running service; of a stopped one, offline.ts gives what it can.
import { readFileSync, statfsSync, statSync } from "node:fs";
import { freemem, totalmem } from "node:os";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import { parseServer, systemServers } from "../dns/servers.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Dnsbl } from "../dnsbl/dnsbl.ts";
import { openFilesLimit } from "../open-files.ts";
import { isUsable } from "../pools/sources.ts";
import type { Pools } from "../pools/pools.ts";
import type { FileFacts, SendingAddress, StoreFacts, World } from "./check.ts";
import type { Wanted } from "./doctor.ts";
import { clockAhead, dial } from "./network.ts";
import { createStoredFacts, type FactsStore } from "./stored-facts.ts";
import { unitFacts } from "./unit.ts";

export interface WorldDeps {
  config: Config;
  store: FactsStore;
  /** Without a cache. */
  resolver: Resolver;
  pools: Pick<Pools, "all">;
  dnsbl: Pick<Dnsbl, "summary" | "zones">;
  certificate(): string | null;
  certificates: World["certificates"];
  closedListeners: World["closedListeners"];
  /** null: the database is open. */
  unopened?: Exclude<Awaited<ReturnType<World["store"]>>, StoreFacts> | null;
  running: boolean;
  /** When the last complete backup was made; null: there is none. */
  lastBackupAt(): number | null;
  clock: Clock;
}

export function createWorld(deps: WorldDeps): (wanted: Pick<Wanted, "domain">) => Promise<World> {
  const { config, store, resolver, pools, dnsbl, clock } = deps;
  const { hostname, outbound, dataDir } = config;
  return async ({ domain }) => {
    const stored = createStoredFacts(store, clock);
    return {
      running: deps.running,
      hostname,
      publicUrl: config.publicUrl,
      behindProxy: config.http.trustedProxies.length > 0,
      dataDir,
      outbound,
      operationsEmail: config.operations.email,
      relayTrusted: config.relay.trusted,
      minFreeShare: config.limits.minFreeSpaceShare,
      now: clock.now(),
      resolver,
      dnsServers:
        config.dns.servers.length > 0
          ? config.dns.servers.map(addressOf)
          : systemServers().map(({ address }) => address),
      // Of a stopped service these may throw: in the checks that want them, and in no other.
      get sending() {
        return sendingOf(config, pools);
      },
      get pools() {
        return pools.all();
      },
      get listed() {
        return dnsbl.summary().listed;
      },
      get unusableZones() {
        return dnsbl
          .zones()
          .flatMap(({ zone, tested }) =>
            tested === null || tested.health.status === "ok"
              ? []
              : [{ zone: zone.zone, detail: tested.health.detail ?? tested.health.status }],
          );
      },
      certificate: deps.certificate(),
      tlsMode: config.tls.mode,
      certificates: deps.certificates,
      listeners: listenersOf(config),
      closedListeners: deps.closedListeners,
      unit: unitFacts,
      dial: (host, port, how) => dial(host, port, how, clock),
      clockAheadMs: () => clockAhead(resolver, clock),
      disk: () => diskOf(dataDir),
      memory: () => ({ freeBytes: availableMemory(), totalBytes: totalmem() }),
      openFiles: openFilesLimit,
      file: factsOf,
      configFiles: config.files,
      async domains() {
        const all = await stored.domains();
        return domain === null ? all : all.filter(({ name }) => name === domain);
      },
      store: () => (deps.unopened ? Promise.resolve(deps.unopened) : stored.store()),
      queue: stored.queue,
      failingEndpoints: stored.failingEndpoints,
      rates: stored.rates,
      async backups() {
        return { at: config.backup.at, lastAt: deps.lastBackupAt() };
      },
    };
  };
}

/** Those of the configuration, by the names that the program shows. */
export function listenersOf({ http, relay, inbound, tls }: Config): World["listeners"] {
  return [
    ...http.listen.map((listen) => ({ name: "http", listen })),
    ...relay.starttls.map((listen) => ({ name: "smtp", listen })),
    ...relay.implicitTls.map((listen) => ({ name: "smtps", listen })),
    ...inbound.listen.map((listen) => ({ name: "inbound", listen })),
    ...(tls.mode === "acme" ? tls.acme.httpListen : []).map((listen) => ({ name: "acme", listen })),
  ];
}

function sendingOf({ hostname, outbound, dev }: Config, pools: WorldDeps["pools"]): SendingAddress[] {
  if (outbound.smartHost !== null || dev) return [];
  const ofPools = pools
    .all()
    .flatMap(({ addresses }) =>
      addresses.filter(isUsable).map((one) => ({ address: one.address, ehloName: one.hostname ?? hostname })),
    );
  const ofConfig: SendingAddress[] = outbound.source.map((address) => ({ address, ehloName: hostname }));
  const all = [...ofPools, ...ofConfig];
  return all.length > 0 ? all : [{ address: null, ehloName: hostname }];
}

/** Without its port. */
const addressOf = (server: string): string => parseServer(server)?.address ?? server;

function diskOf(folder: string): ReturnType<World["disk"]> {
  const { bavail, blocks, bsize } = statfsSync(folder);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

function factsOf(path: string): FileFacts | null {
  const facts = statSync(path, { throwIfNoEntry: false });
  return facts ? { mode: facts.mode & 0o777 } : null;
}

/** MemAvailable of Linux counts what caches would give back. */
function availableMemory(): number {
  try {
    const [, kilobytes] = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8")) ?? [];
    if (kilobytes !== undefined) return Number(kilobytes) * 1024;
  } catch {
    // not Linux
  }
  return freemem();
}

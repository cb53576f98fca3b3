// The world as the doctor sees it, from inside the running service; of a stopped one, offline.ts gives what it can.
import { createSocket } from "node:dgram";
import { readFileSync, statfsSync, statSync } from "node:fs";
import { connect } from "node:net";
import { freemem, totalmem } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { dayMs, type Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import { parseServer, systemServers } from "../dns/servers.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Dnsbl } from "../dnsbl/dnsbl.ts";
import type { Account } from "../model/account.ts";
import { openFilesLimit } from "../open-files.ts";
import { isUsable } from "../pools/sources.ts";
import type { Pools } from "../pools/pools.ts";
import { recordsOf } from "../pools/ptr.ts";
import type { Store } from "../store/store.ts";
import type { Dial, SendingAddress, StoreFacts, World } from "./check.ts";
import type { Wanted } from "./doctor.ts";
import { unitFacts } from "./unit.ts";

export interface WorldDeps {
  config: Config;
  store: Pick<
    Store,
    "listAccounts" | "listDomains" | "listEndpoints" | "statsTotals" | "health" | "queueCounts"
  >;
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

const dialMs = 8_000;
const timeMs = 3_000;
const timeServer = "pool.ntp.org";
const accountsMost = 1_000;
const ratesDays = 7;

export function createWorld(deps: WorldDeps): (wanted: Pick<Wanted, "domain">) => Promise<World> {
  const { config, store, resolver, pools, dnsbl, clock } = deps;
  const { hostname, outbound, dataDir } = config;
  return async ({ domain }) => {
    let known: Promise<Account[]> | null = null;
    const accounts = (): Promise<Account[]> => (known ??= allAccounts(store));
    /** Reads by key run on the loop: one account's at a time, and what several checks want is read once. */
    const ofEach = <T>(read: (account: Account) => Promise<T[]>): (() => Promise<T[]>) => {
      const all = async (): Promise<T[]> => {
        const found: T[] = [];
        for (const account of await accounts()) {
          found.push(...(await read(account)));
          await nextTurn();
        }
        return found;
      };
      let once: Promise<T[]> | null = null;
      return () => (once ??= all());
    };
    const domains = ofEach(({ key }) => store.listDomains(key));
    const endpoints = ofEach(async ({ key, name }) =>
      (await store.listEndpoints(key)).map((endpoint) => ({ ...endpoint, account: name })),
    );
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
      async domains() {
        const all = await domains();
        return domain === null ? all : all.filter(({ name }) => name === domain);
      },
      certificate: deps.certificate(),
      tlsMode: config.tls.mode,
      certificates: deps.certificates,
      listeners: listenersOf(config),
      closedListeners: deps.closedListeners,
      unit: unitFacts,
      dial: (host, port, how) => dial(host, port, how, clock),
      clockAheadMs: () => clockAhead(resolver, clock),
      disk() {
        const { bavail, blocks, bsize } = statfsSync(dataDir);
        return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
      },
      memory: () => ({ freeBytes: availableMemory(), totalBytes: totalmem() }),
      openFiles: () => openFilesLimit(),
      file(path) {
        const facts = statSync(path, { throwIfNoEntry: false });
        return facts ? { mode: facts.mode & 0o777 } : null;
      },
      configFiles: config.files,
      async store() {
        if (deps.unopened) return deps.unopened;
        const { engine, writable, full } = await store.health();
        return {
          journalMode: String(engine["journal_mode"]),
          synchronous: synchronousNames[Number(engine["synchronous"])] ?? String(engine["synchronous"]),
          walBytes: Number(engine["wal_bytes"] ?? 0),
          writable,
          full,
        };
      },
      queue: store.queueCounts,
      async failingEndpoints() {
        return (await endpoints())
          .filter(({ active, consecutiveFailures }) => active && consecutiveFailures > 0)
          .map(({ account, id, consecutiveFailures: failures, lastSuccessAt }) => ({
            account,
            id,
            failures,
            lastSuccessAt,
          }));
      },
      async rates() {
        const range = { from: clock.now() - ratesDays * dayMs, to: clock.now(), test: false };
        const found: Awaited<ReturnType<World["rates"]>> = [];
        for (const { key, name } of await accounts()) {
          const { delivered, bouncedHard, complained } = await store.statsTotals(key, range);
          found.push({ account: name, rates: { delivered, bouncedHard, complained } });
        }
        return found;
      },
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

/** Of PRAGMA synchronous, by number. */
const synchronousNames = ["OFF", "NORMAL", "FULL", "EXTRA"];

async function allAccounts(store: Pick<Store, "listAccounts">): Promise<Account[]> {
  const { rows } = await store.listAccounts({ limit: accountsMost, cursor: null });
  return rows;
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

function dial(
  host: string,
  port: number,
  { from, greeting }: { from: string | null; greeting: boolean },
  clock: Clock,
): Promise<Dial> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, ...(from === null ? {} : { localAddress: from }) });
    const end = (result: Dial): void => {
      timer.cancel();
      socket.destroy();
      resolve(result);
    };
    const timer = clock.after(dialMs, () =>
      end({ kind: "silent", why: `no answer within ${dialMs / 1000} s` }),
    );
    socket.once("error", (error: NodeJS.ErrnoException) =>
      end({ kind: error.code === "ECONNREFUSED" ? "refused" : "failed", why: error.code ?? error.message }),
    );
    socket.once("connect", () => {
      if (!greeting) end({ kind: "open", greeting: null });
    });
    if (!greeting) return;
    socket.once("data", (bytes: Buffer) => {
      const [line = ""] = bytes.toString("latin1").split("\r\n");
      socket.end("QUIT\r\n");
      end({ kind: "open", greeting: line.slice(0, 512) });
    });
    socket.once("end", () => end({ kind: "failed", why: "closed without a greeting" }));
  });
}

/** By SNTP (RFC 4330): how far our clock is ahead of a time server's, half of the way there and back taken off. */
async function clockAhead(resolver: Pick<Resolver, "a">, clock: Clock): Promise<number | null> {
  const [server] = recordsOf(await resolver.a(timeServer));
  if (server === undefined) return null;
  const { promise, resolve } = Promise.withResolvers<number | null>();
  const socket = createSocket("udp4");
  const timer = clock.after(timeMs, () => resolve(null));
  const request = Buffer.alloc(48);
  request[0] = 0x1b; // version 3, client
  const sentAt = clock.now();
  socket.on("error", () => resolve(null));
  socket.on("message", (reply, { address }) => {
    if (address !== server || !isTime(reply)) return;
    const now = clock.now();
    const at =
      reply.readUInt32BE(40) * 1000 + (reply.readUInt32BE(44) / 2 ** 32) * 1000 - secondsTo1970 * 1000;
    resolve((sentAt + now) / 2 - at);
  });
  socket.send(request, 123, server);
  try {
    return await promise;
  } finally {
    timer.cancel();
    socket.close();
  }
}
/** A server's answer (mode 4) that has the time: not "ask less" (stratum 0), not of a clock that is not set (RFC 4330 §5). */
export function isTime(reply: Buffer): boolean {
  if (reply.length < 48) return false;
  const [first = 0, stratum = 0] = reply;
  return (
    first >> 6 !== 3 && (first & 7) === 4 && stratum >= 1 && stratum <= 15 && reply.readUInt32BE(40) !== 0
  );
}

/** NTP counts from 1900. */
const secondsTo1970 = 2_208_988_800;

// A world in which every check of the doctor passes; a test changes what is to be wrong.
import type { World } from "../../src/doctor/check.ts";
import type { DnsAnswer, MxRecord } from "../../src/dns/resolver.ts";
import type { DnsRecord } from "../../src/model/dns-record.ts";
import type { SenderDomain } from "../../src/model/domain.ts";
import type { Pool, PoolAddress } from "../../src/model/ip-pool.ts";

export const now = Date.parse("2026-12-01T08:00:00Z");
export const host = "mail.acme.example";
export const address = "11.22.33.44";

export const found = <T>(...records: T[]): DnsAnswer<T> => ({
  kind: "found",
  records,
  ttlSeconds: 60,
  authenticated: false,
});
export const failedAnswer = { kind: "failed", why: "no answer" } as const;

const reverse = (): Promise<DnsAnswer<string>> => Promise.resolve(found(host));

export const record = (purpose: DnsRecord["purpose"], more: Partial<DnsRecord> = {}): DnsRecord => ({
  purpose,
  type: "TXT",
  name: `${purpose}.acme.example`,
  value: "v",
  required: purpose !== "dmarc" && purpose !== "tracking",
  status: "ok",
  found: [],
  issue: null,
  ...more,
});

export function domain(more: Partial<SenderDomain> = {}): SenderDomain {
  const records = (["dkim", "spf", "return_path", "dmarc", "tracking"] as const).map((purpose) =>
    record(purpose),
  );
  return { name: "acme.example", status: "verified", records, ...more } as SenderDomain;
}

export function poolAddress(more: Partial<PoolAddress> = {}): PoolAddress {
  return {
    address,
    hostname: null,
    weight: 1,
    paused: false,
    warmupStartedAt: null,
    bindable: true,
    ptr: host,
    ptrOk: true,
    blacklists: [],
    createdAt: now,
    updatedAt: now,
    ...more,
  };
}

export const pool = (...addresses: PoolAddress[]): Pool => ({
  accountKey: 1,
  name: "news",
  description: null,
  isDefault: false,
  addresses,
  createdAt: now,
  updatedAt: now,
});

/** `certificate`: of a listener; null: a proxy has it. */
export function healthy(more: Partial<World> = {}): World {
  return {
    running: true,
    hostname: host,
    publicUrl: `https://${host}`,
    behindProxy: false,
    dataDir: "/var/lib/svc",
    outbound: { port: 25, smartHost: null, tls: "opportunistic", sign: true },
    operationsEmail: "ops@acme.example",
    relayTrusted: [],
    minFreeShare: 0.05,
    now,
    resolver: {
      a: (name) => Promise.resolve(found(name === host ? address : "198.51.100.7")),
      aaaa: () => Promise.resolve({ kind: "nodata" }),
      ptr: reverse,
      mx: (name) => Promise.resolve(found<MxRecord>({ preference: 10, exchange: `mx.${name}` })),
    },
    dnsServers: ["127.0.0.1"],
    sending: [{ address, ehloName: host }],
    pools: [pool(poolAddress())],
    listed: [],
    unusableZones: [],
    domains: () => Promise.resolve([domain()]),
    certificate: null,
    tlsMode: more.certificate == null ? "off" : "files",
    certificates: () => Promise.resolve([]),
    listeners: [{ name: "http", listen: { host: "::", port: 443 } }],
    closedListeners: () => Promise.resolve([]),
    unit: () => Promise.resolve({ enabled: "enabled", active: "active", result: "success", exitStatus: 0 }),
    dial: () => Promise.resolve({ kind: "open", greeting: "220 mx" }),
    clockAheadMs: () => Promise.resolve(20),
    disk: () => ({ freeBytes: 5e10, totalBytes: 1e11 }),
    memory: () => ({ freeBytes: 1e9, totalBytes: 2e9 }),
    openFiles: () => 65_536,
    file: () => ({ mode: 0o700 }),
    configFiles: ["/etc/svc/svc.yaml"],
    store: () =>
      Promise.resolve({
        journalMode: "wal",
        synchronous: "FULL",
        walBytes: 4e6,
        writable: true,
        full: false,
      }),
    queue: () =>
      Promise.resolve({
        scheduled: 0,
        queued: 1,
        deferred: 2,
        sending: 0,
        held: 0,
        oldestDueAt: now - 1_000,
      }),
    failingEndpoints: () => Promise.resolve([]),
    rates: () =>
      Promise.resolve([{ account: "default", rates: { delivered: 10_000, bouncedHard: 10, complained: 1 } }]),
    backups: () => Promise.resolve({ at: "03:30", lastAt: now - 3_600_000 }),
    ...more,
  };
}

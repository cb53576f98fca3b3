// A check of the doctor: what it saw, why that matters, and what mends it. Checks see the world through an interface, so
// that each can be shown failing and passing.
import { dayMs, hourMs } from "../clock.ts";
import type { OutboundConfig, ListenAddress } from "../config.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Pool } from "../model/ip-pool.ts";
import type { SenderDomain } from "../model/domain.ts";
import type { ListenerTlsMode } from "../model/tls.ts";
import type { QueueCounts } from "../model/queue.ts";

/** `unknown`: it could not be checked, as without a network. */
export const findingStatuses = ["ok", "warn", "fail", "unknown"] as const;
export type FindingStatus = (typeof findingStatuses)[number];

export interface Finding {
  status: FindingStatus;
  /** What was seen, in a sentence or as facts with commas. */
  saw: string;
  /** What follows from it; null where all is well. */
  why: string | null;
  /** What to do, a command where there is one; null where there is nothing to do. */
  mend: string | null;
}

export interface Check {
  id: string;
  /** What is right, as `svc doctor --explain` says it. */
  about: string;
  run(world: World): Promise<Finding>;
}

/** How a connection to a port went. */
export type Dial =
  /** `greeting`: the first line that the server said; null: none was asked for. */
  { kind: "open"; greeting: string | null } | { kind: "refused" | "silent" | "failed"; why: string };

export interface FileFacts {
  /** Permission bits. */
  mode: number;
}

export interface MailRates {
  delivered: number;
  bouncedHard: number;
  complained: number;
}

/** An address that mail leaves from; null: the system chooses. */
export interface SendingAddress {
  address: string | null;
  ehloName: string;
}

/** A certificate, and what became of its renewal. */
export interface ServedCertificate {
  name: string;
  isHost: boolean;
  /** When the ACME server is to be asked for the next one; null: it is not, or there is none yet. */
  renewAt: number | null;
  /** A tracking name that failed so often that the operator is not notified of it. */
  isGivenUp: boolean;
  error: string | null;
}

/** A listener that is not open, or of a stopped service: that could not be opened. */
export interface ClosedListener {
  name: string;
  listen: ListenAddress;
  why: string;
  /** `taken`: another program has the port. `forbidden`: this user may not open it, which says nothing of the service's. */
  kind: "taken" | "forbidden" | "failed";
}

/** What systemd says of the service's unit. */
export interface UnitFacts {
  /** `enabled`, `disabled`, `static`, … */
  enabled: string;
  /** `active`, `inactive`, `failed`, … */
  active: string;
  /** How the last run ended: `success`, `exit-code`, `signal`, … */
  result: string;
  exitStatus: number;
}

export interface StoreFacts {
  journalMode: string;
  synchronous: string;
  walBytes: number;
  writable: boolean;
  full: boolean;
}

/** Of a stopped service, a fact that cannot be had throws: its check is then not checkable. */
export interface World {
  /** false: of a stopped service (`svc doctor --offline`). */
  running: boolean;
  hostname: string;
  /** Of the API, as clients see it. */
  publicUrl: string;
  /** A proxy takes the connections to publicUrl. */
  behindProxy: boolean;
  dataDir: string;
  outbound: Pick<OutboundConfig, "port" | "smartHost" | "tls" | "sign">;
  operationsEmail: string | null;
  relayTrusted: readonly { network: string }[];
  minFreeShare: number;
  now: number;
  /** Without a cache. */
  resolver: Pick<Resolver, "a" | "aaaa" | "ptr" | "mx">;
  /** The servers that are asked, without ports. */
  dnsServers: readonly string[];
  sending: readonly SendingAddress[];
  pools: readonly Pool[];
  listed: readonly { address: string; zone: string }[];
  /** Blocklists that cannot be used, and why. */
  unusableZones: readonly { zone: string; detail: string }[];
  domains(): Promise<SenderDomain[]>;
  /** The listeners' chain, PEM; null: they have none, or it cannot be used. */
  certificate: string | null;
  tlsMode: ListenerTlsMode;
  /** The host's first, then those of tracking names. */
  certificates(): Promise<ServedCertificate[]>;
  listeners: readonly { name: string; listen: ListenAddress }[];
  closedListeners(): Promise<readonly ClosedListener[]>;
  /** null: systemd has no unit of the service, or does not run here. */
  unit(): Promise<UnitFacts | null>;
  dial(host: string, port: number, how: { from: string | null; greeting: boolean }): Promise<Dial>;
  /** How far this machine's clock is ahead, milliseconds; null: no time server answered. */
  clockAheadMs(): Promise<number | null>;
  disk(): { freeBytes: number; totalBytes: number };
  memory(): { freeBytes: number; totalBytes: number };
  /** How many files the process may open. */
  openFiles(): number;
  /** null: there is no such file. */
  file(path: string): FileFacts | null;
  configFiles: readonly string[];
  /** Of a stopped service: how its database could not be opened, and what to do. */
  store(): Promise<StoreFacts | Pick<Finding, "status" | "saw" | "mend">>;
  queue(): Promise<QueueCounts>;
  /** Active webhook endpoints whose last attempts failed. */
  failingEndpoints(): Promise<
    { account: string; id: string; failures: number; lastSuccessAt: number | null }[]
  >;
  /** Of the last seven days, by account. */
  rates(): Promise<{ account: string; rates: MailRates }[]>;
  /** When the last complete backup was made; null: there is none. `at`: the daily one's time. */
  backups(): Promise<{ at: string | null; lastAt: number | null }>;
}

export const ok = (saw: string): Finding => ({ status: "ok", saw, why: null, mend: null });
export const warn = (saw: string, why: string, mend: string): Finding => ({ status: "warn", saw, why, mend });
export const fail = (saw: string, why: string, mend: string): Finding => ({ status: "fail", saw, why, mend });
export const unknown = (saw: string, mend: string | null = null): Finding => ({
  status: "unknown",
  saw,
  why: null,
  mend,
});

const most = 8;

/** `a, b, c and 3 more` */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, most);
  return names.length > most ? `${shown.join(", ")} and ${names.length - most} more` : shown.join(", ");
}

/** `30 hours`, `5 days` */
export const within = (ms: number): string =>
  ms < 2 * dayMs ? `${Math.round(ms / hourMs)} hours` : `${Math.round(ms / dayMs)} days`;

// Composes the module: one connection pool and one cache of dead addresses for all attempts.
import type { SecureContext } from "node:tls";
import type { Clock } from "../clock.ts";
import type { OutboundConfig } from "../config.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Log } from "../log.ts";
import { affordableConnections } from "../open-files.ts";
import { createAddresses } from "./addresses.ts";
import { runAttempt } from "./attempt.ts";
import { shareOf, type AttemptDeps } from "./target.ts";
import { CutOff } from "./cut-off.ts";
import type { Delivery } from "./delivery.ts";
import { HeloHosts } from "./helo-hosts.ts";
import type { HostTlsDeps } from "./host-tls.ts";
import { LookupTime, maxHostsLookedUp } from "./lookups.ts";
import { Pool, type PoolDeps } from "./pool.ts";
import { findRoute, type RouteDeps } from "./route.ts";
import { tlsResult } from "./tls-results.ts";
import { TlsHosts } from "./tls-hosts.ts";

export interface DeliveryDeps {
  resolver: Resolver;
  outbound: OutboundConfig;
  /** Our name: in EHLO, and as an MX that is us. */
  hostname: string;
  /** True for an address of this machine, or one that it listens on at this port: an MX there is a loop. */
  isOurs: (address: string, port: number) => boolean;
  /** Ports that this program takes mail at. */
  mailPorts: readonly number[];
  mtaStsOf: RouteDeps["mtaStsOf"];
  /** What the operator asks of TLS to a recipient domain; undefined: `outbound.tls` holds. */
  tlsFor: HostTlsDeps["tlsFor"];
  isTlsReport: HostTlsDeps["isTlsReport"];
  /** False: `onTls` is not called for its sessions. */
  isCounted: AttemptDeps["isCounted"];
  /** The TLS of a session with a mail host, or why none was begun; not of a smart host. */
  onTls: AttemptDeps["onTls"];
  /** Certificates that are trusted. */
  secureContext: () => SecureContext;
  clock: Clock;
  log: Log;
  /** [0, 1): the order of equals. */
  random: () => number;
  /** How many connections a group may have at once, idle ones included, and messages on each; 10 and 100 if not given. */
  limitsOf?: PoolDeps["limitsOf"];
  /** False for an address of a pool that must no longer be used. */
  mayUse?: (address: string) => boolean;
  /** Called when an address of a pool is not one of this machine's. */
  onUnusable?: (address: string) => void;
}

/** Connections kept idle, where a quarter of the open files allows so many: one each for 2,000 destinations. */
const idleConnections = 2000;

/** The SMTP client of the queue. Nothing is opened before the first attempt. */
export function createDelivery(deps: DeliveryDeps): Delivery {
  const { resolver, outbound, hostname, isOurs, mailPorts, mtaStsOf, clock, log, random } = deps;
  const { smartHost } = outbound;
  const pool = new Pool({
    clock,
    limitsOf: deps.limitsOf ?? (() => ({ connections: 10, messagesPerConnection: 100 })),
    mayUse: deps.mayUse ?? (() => true),
    mostIdle: affordableConnections(idleConnections, 1 / 4),
  });
  const cutOff = new CutOff();
  const login =
    smartHost?.user != null && smartHost.password !== null
      ? {
          user: smartHost.user,
          password: smartHost.password,
          allowUnverified: smartHost.allowUnverifiedPassword,
        }
      : null;
  const attempt: AttemptDeps = {
    addresses: createAddresses({ resolver, outbound, hostname, isOurs, mailPorts, clock, random }),
    pool,
    heloHosts: new HeloHosts(clock),
    tlsHosts: new TlsHosts(clock),
    resolver,
    tlsFor: deps.tlsFor,
    isTlsReport: deps.isTlsReport,
    isCounted: deps.isCounted,
    onTls: deps.onTls,
    outbound,
    random,
    onUnusable: deps.onUnusable ?? (() => undefined),
    session: {
      clock,
      hostname,
      timeouts: outbound.timeouts,
      login,
      cutOff,
      secureContext: deps.secureContext,
      onTls({ judged, address: receivingIp }, problem, sendingIp) {
        if (judged) deps.onTls(tlsResult(judged, problem, { sendingIp, receivingIp }));
      },
    },
  };
  return {
    route: (domain, owner) => findRoute({ resolver, smartHost, mtaStsOf, clock, random }, domain, owner),
    async families({ hosts }, own, owner) {
      const asked = hosts.slice(0, maxHostsLookedUp);
      const time = new LookupTime(clock);
      let [sure, any] = [asked.length === hosts.length, false];
      for (const preference of new Set(asked.map((host) => host.preference))) {
        const equals = asked.filter((host) => host.preference === preference);
        const found = await time.waitFor(
          () => Promise.all(equals.map(({ host }) => attempt.addresses.families(host, owner))),
          false,
        );
        const theirs = (found ?? []).flatMap(({ families }) => families);
        const reached = own.filter((family) => theirs.includes(family));
        if (reached.length > 0) return reached;
        sure &&= found?.every((host) => host.sure) ?? false;
        any ||= theirs.length > 0;
      }
      return sure && any ? [] : [...own];
    },
    async attempt(request) {
      const outcome = await runAttempt(attempt, request);
      if (outcome.kind === "deferred" && outcome.trace.ambiguous)
        log.warn(
          { message: request.job.message.id, host: outcome.trace.host, address: outcome.trace.address },
          "the reply to the final dot was lost: the message may be delivered more than once",
        );
      return outcome;
    },
    async groupOf(domain) {
      const mtaSts = (): Promise<null> => Promise.resolve(null); // it is not sent there now
      const route = await findRoute({ resolver, smartHost, mtaStsOf: mtaSts, clock, random }, domain, "");
      return route.kind === "hosts" ? route.group : null;
    },
    connections: (group, address) => pool.count(shareOf(group, { address })),
    openConnections: () => pool.total,
    cutShort: () => cutOff.now(),
    reconsider: () => pool.reconsider(),
    stop: () => pool.stop(),
  };
}

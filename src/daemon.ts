// The composition root: builds every room, starts them in order and stops them in
// reverse. The only file that knows them all; what they do is theirs. Over 300 lines: the wiring is one list.
import { randomBytes } from "node:crypto";
import { networkInterfaces } from "node:os";
import { createAccess } from "./access/access.ts";
import { tellDomain } from "./care/domain-notice.ts";
import { tellPool } from "./care/pool-notice.ts";
import { createGuard } from "./care/guard.ts";
import { createMaintenance } from "./care/maintenance.ts";
import { createNotices } from "./care/notices.ts";
import { createPrune } from "./care/prune.ts";
import { createStatus } from "./care/status.ts";
import { systemClock, type Clock } from "./clock.ts";
import { readShapingFile, type Config, type ListenAddress } from "./config.ts";
import { createDelivery } from "./delivery/smtp-delivery.ts";
import { createDomains } from "./domains/manage.ts";
import { createRecorder } from "./events/record.ts";
import { createFeedback } from "./feedback/feedback.ts";
import { createHttp } from "./http/server.ts";
import { createIdMint, type IdMint } from "./ids.ts";
import { createJobs, jobList } from "./jobs.ts";
import type { Log } from "./log.ts";
import { createMessageTokens } from "./mail/message-token.ts";
import type { SenderDomain } from "./model/domain.ts";
import { createParsing } from "./parsing/parsing.ts";
import { createPools } from "./pools/pools.ts";
import { createDestinations } from "./outbound/destinations.ts";
import { createHolds } from "./queue/holds.ts";
import { readLane } from "./queue/lane.ts";
import { createRunner, type Runner } from "./queue/runner.ts";
import { settlementOf } from "./queue/settle.ts";
import { createShaping } from "./queue/shaping.ts";
import { createSignedMessages } from "./outbound/signed-message.ts";
import { createInbound } from "./relay/inbound.ts";
import { createRelay } from "./relay/relay.ts";
import { makeDevCredentials, type DevCredentials } from "./sandbox/credentials.ts";
import type { Service } from "./service.ts";
import { defaultAccountOf, domainConfig, endAtOnce, resolverOf } from "./setup.ts";
import { createSigning } from "./signing/signing.ts";
import { openStore } from "./store/sqlite-store.ts";
import type { Store } from "./store/store.ts";
import { createSecondLooks } from "./suppressions/nxdomain-recheck.ts";
import { createSubmission } from "./submission/submit.ts";
import { openCertificates } from "./tls/open.ts";
import { createWebhooks } from "./webhooks/webhooks.ts";

declare const __VERSION__: string;

export interface RunningDaemon {
  addresses(): { name: string; address: string }[];
  /** For `serve --dev`: a fresh key and SMTP login of a verified domain example.test. */
  devCredentials(): Promise<DevCredentials>;
  /** Reads the certificates again; an unusable one is logged and the old one stays. */
  reload(): Promise<void>;
  /** Finishes what is in flight, at most `drainMs`. */
  stop(): Promise<void>;
  /** Resolves once everything has stopped. */
  readonly finished: Promise<void>;
}

/** Attempts and requests in flight may take this long to end; what is left is taken back at the next start. */
const drainMs = 30_000;
/** An attempt that has not sent its final dot by then is ended: its recipient is given back. */
const cutShortMs = 5_000;

/** Opens the store, starts every room and resolves when the listeners stand. Throws StoreLocked, or the error of what could not start, with everything stopped again. */
export async function serve({
  config,
  log,
  clock = systemClock,
}: {
  config: Config;
  log: Log;
  clock?: Clock;
}): Promise<RunningDaemon> {
  const mint = createIdMint();
  const startedAt = clock.now();
  const store = await openStore({
    dataDir: config.dataDir,
    clock,
    log,
    mint,
    minFreeShare: config.limits.minFreeSpaceShare,
    onLost: endAtOnce,
  });
  const started: Service[][] = [];
  try {
    const rooms = await build({ config, log, clock, mint, store, startedAt });
    for (const floor of rooms.floors) {
      const standing: Service[] = [];
      started.unshift(standing);
      for (const service of floor) {
        await service.start();
        standing.unshift(service);
      }
    }
    const { promise: finished, resolve } = Promise.withResolvers<void>();
    const stop = once(() => stopAll(started, store, clock, log).finally(resolve));
    return { ...rooms.daemon, stop, finished };
  } catch (error) {
    await stopAll(started, store, clock, log);
    throw error;
  }
}

interface Ground {
  config: Config;
  log: Log;
  clock: Clock;
  mint: IdMint;
  store: Store;
  startedAt: number;
}

/**
 * Every room and the order in which they start: doors last, so that nothing is accepted that nobody would deliver.
 * A floor stands on the one before it, and its services are stopped together: nobody waits for another's slow client.
 */
async function build({
  config,
  log,
  clock,
  mint,
  store,
  startedAt,
}: Ground): Promise<{ floors: Service[][]; daemon: Omit<RunningDaemon, "stop" | "finished"> }> {
  const owner = randomBytes(8).toString("hex");
  const resolver = resolverOf(config, clock, log);
  const certificates =
    config.tls.mode === "off"
      ? null
      : await openCertificates({
          config: config.tls,
          dataDir: config.dataDir,
          hostname: config.hostname,
          altNames: [],
          clock,
          log,
        });
  const maintenance = createMaintenance({ store, clock });
  await maintenance.reload();
  const recorder = createRecorder({ clock, mint });
  const signing = createSigning(log.component("signing"));
  const { signHeader } = signing;
  const parsing = createParsing({ clock, log: log.component("parsing") });
  const access = createAccess({ store, clock, log, mint });
  const domains = createDomains({
    store,
    resolver: resolver.uncached,
    config: domainConfig(config),
    poolAddresses: (accountKey) => pools.addressesOf(accountKey),
    clock,
    mint,
    onStatus: (domain, before) => void tellDomain(notices, log.component("domains"), domain, before),
  });
  const pools = createPools({
    store,
    resolver: resolver.uncached,
    hostname: config.hostname,
    clock,
    log: log.component("pools"),
    tell: (problem) => void tellPool(notices, store, problem),
  });
  const shaping = createShaping(
    config.outbound.shapingFile === null ? null : readShapingFile(config.outbound.shapingFile),
  );
  const mailListeners = [...config.inbound.listen, ...config.relay.starttls, ...config.relay.implicitTls];
  const delivery = createDelivery({
    resolver,
    outbound: config.outbound,
    hostname: config.hostname,
    isOurs: ourAddresses(mailListeners),
    mailPorts: mailListeners.flatMap((at) => ("path" in at ? [] : [at.port])),
    clock,
    log: log.component("delivery"),
    random: Math.random,
    connectionsOf: (group) => shaping(group).connections,
    mayUse: (address) => pools.mayUse(address),
    onUnusable: () => pools.lookSoon(),
  });
  const messages = createSignedMessages({ store, signHeader, clock, sign: config.outbound.sign });
  const verpSecret = await store.secret("verp");
  const tokens = createMessageTokens(verpSecret);
  const destinations = createDestinations({ delivery, pools, messages, verpSecret, clock });
  const schedule = { retryMs: config.outbound.retryMs, maxAgeMs: config.outbound.maxAgeMs };
  const settleDeps = {
    recorder,
    mint,
    schedule,
    owner,
    random: Math.random,
    isCaught: destinations.isCaught,
  };
  const holds = createHolds({
    store,
    note: (lane, dueAt) => queue.note(lane, dueAt),
    clock,
    log: log.component("queue"),
  });
  const queue: Runner = createRunner({
    store,
    destinationOf: destinations.destinationOf,
    suppressedSince: destinations.suppressedSince(store),
    settlementOf: (job, outcome, now, group) => settlementOf(settleDeps, job, outcome, now, group),
    isPaused: (accountKey) => holds.isPaused(accountKey),
    onNoSource(lane) {
      const named = readLane(lane);
      if (named) pools.noteWaiting(named.accountKey, named.ipPool);
    },
    shaping,
    random: Math.random,
    owner,
    clock,
    log: log.component("queue"),
  });
  pools.onChange(() => {
    delivery.reconsider();
    queue.onSourcesChanged();
  });
  const runner: Runner = {
    ...queue,
    async stop() {
      const late = clock.after(cutShortMs, () => delivery.cutShort());
      await queue.stop();
      late.cancel();
    },
  };
  const submission = createSubmission({ store, domains, pools, runner, config, tokens, clock, mint });
  const notices = createNotices({
    store,
    runner,
    config,
    verifiedDomain: (name) => verifiedDomain(store, domains, name),
    signHeader,
    tokens,
    clock,
    mint,
    log: log.component("notices"),
  });
  const guard = createGuard({
    store,
    holds,
    notices,
    shares: config.guard,
    clock,
    log: log.component("guard"),
  });
  const webhooks = createWebhooks({
    store,
    recorder,
    config: config.webhooks,
    resolver,
    clock,
    log,
    onDeadLetter: ({ endpoint, eventId, attempts, lastStatus }) =>
      void notices.notify(
        `dead_letter:${endpoint.id}`,
        `events for ${new URL(endpoint.url).host} could not be delivered`,
        `The webhook endpoint ${endpoint.id} (${endpoint.url}) refused event ${eventId} in all ${attempts} attempts; ` +
          `its last answer was ${lastStatus ?? "none"}. The event stays in GET /v1/events for 30 days.\n\n` +
          `What to do: mend the endpoint, then look at what it missed with: svc events list --webhook ${endpoint.id}\n`,
      ),
  });
  const unsubscribe = store.onCommit(({ events }) => {
    if (events) webhooks.kick();
  });
  const reload = async (): Promise<void> => {
    const error = await certificates?.reload();
    if (error) log.error({ err: error }, "the new certificate is unusable; the old one stays");
    else log.info({}, "certificates were read again");
  };
  const prune = createPrune({ store, retention: config.retention, clock, log: log.component("prune") });
  const secondLooks = createSecondLooks({
    store,
    resolver: resolver.uncached,
    clock,
    log: log.component("suppressions"),
  });
  const jobs = createJobs(
    jobList({
      recheckDomains: () => domains.recheck(),
      secondLooks: () => secondLooks.run(),
      renewCertificates: reload,
      prune: () => prune.run(),
      foldStats: () => store.foldStats(),
      guard: () => guard.check(),
      releaseHeld: () => holds.release(),
      lookAtAddresses: () => pools.look(),
    }),
    clock,
    log.component("jobs"),
  );
  const relay =
    certificates === null
      ? null
      : createRelay({
          config,
          certificates,
          access,
          submission,
          store,
          maintenance,
          clock,
          log: log.component("relay"),
        });
  const feedback = createFeedback({
    store,
    recorder,
    verpSecret,
    tokens,
    resolver,
    readReturned: parsing.readReturned,
    readNotice: parsing.readNotice,
    config,
    notices,
    clock,
    log: log.component("feedback"),
  });
  const inbound = createInbound({
    config,
    certificates,
    feedback,
    store,
    maintenance,
    clock,
    log: log.component("inbound"),
  });
  const http = createHttp({
    config,
    certificates,
    store,
    access,
    submission,
    domains,
    webhooks,
    pools,
    parsing,
    maintenance,
    guard,
    clock,
    log: log.component("http"),
    mint,
    status: createStatus({
      store,
      config,
      maintenance,
      clock,
      version: __VERSION__,
      startedAt,
      poolProblems: () => pools.problems(),
      listeners: () => addresses(),
      jobs: () => jobs.states(),
    }),
  });
  const addresses = (): { name: string; address: string }[] => [
    ...http.addresses(),
    ...(relay?.addresses() ?? []),
    ...inbound.addresses(),
  ];

  const outside: Service = {
    name: "outside",
    async start() {},
    async stop() {
      unsubscribe();
      await delivery.stop();
      await signing.stop();
      await parsing.stop();
      resolver.stop();
    },
  };
  return {
    floors: [
      [outside, pools, access.security],
      [webhooks, holds, runner, prune, jobs, ...(relay ? [relay] : []), inbound, http],
    ],
    daemon: {
      addresses,
      reload,
      devCredentials: async () =>
        makeDevCredentials({ store, domains, access, clock }, await defaultAccountOf(store)),
    },
  };
}

/**
 * An MX at one of this machine's own outward addresses would be a loop (RFC 5321 §5.1), and so would a loopback address
 * that mail is taken at; what our host name resolves to is looked up by delivery.
 */
function ourAddresses(listeners: ListenAddress[]): (address: string, port: number) => boolean {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const outward = new Set(own.filter(({ internal }) => !internal).map(({ address }) => address));
  const loopback = new Set(own.filter(({ internal }) => internal).map(({ address }) => address));
  const listensAt = (address: string, port: number): boolean =>
    listeners.some((at) => {
      if ("path" in at || at.port !== port) return false;
      const all = at.host === "0.0.0.0" || at.host === "::";
      return at.host === address || (all && loopback.has(address));
    });
  return (address, port) => outward.has(address) || listensAt(address, port);
}

async function verifiedDomain(
  store: Store,
  domains: ReturnType<typeof createDomains>,
  name: string,
): Promise<SenderDomain | null> {
  const account = await defaultAccountOf(store);
  const found = await domains.senderFor(account.key, name);
  return found.ok ? found.domain : null;
}

/** The upper floor first; what has not ended by the deadline is left to the next start. */
async function stopAll(started: Service[][], store: Store, clock: Clock, log: Log): Promise<void> {
  const { promise: deadline, resolve } = Promise.withResolvers<void>();
  const timer = clock.after(drainMs, resolve);
  const stopOne = async (service: Service): Promise<void> => {
    try {
      await service.stop();
    } catch (error) {
      log.error({ service: service.name, err: error }, "a part did not stop cleanly");
    }
  };
  const all = async (): Promise<void> => {
    for (const floor of started) await Promise.all(floor.map(stopOne));
  };
  await Promise.race([all(), deadline]);
  timer.cancel();
  await store.close();
}

function once(run: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | null = null;
  return () => (done ??= run());
}

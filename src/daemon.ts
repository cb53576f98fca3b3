// The composition root: creates each module, starts the services in order and stops them in reverse. It is the only file
// that imports all modules, and has no rule and no text of theirs. Where two modules need each other, one offers a hook
// (onStatus, onReleased …) that is connected here once both exist. Over 300 lines: the wiring is one list.
import { createAccess } from "./access/access.ts";
import { createActivity } from "./activity/activity.ts";
import { createBackups } from "./backup/backup.ts";
import { createStoreChecks } from "./backup/check.ts";
import { createBoot } from "./boot.ts";
import { systemClock, type Clock } from "./clock.ts";
import { readShapingFile, type Config } from "./config.ts";
import { localAddresses, portsOf } from "./delivery/local-addresses.ts";
import { createTrust } from "./delivery/trust.ts";
import { createProbe } from "./delivery/probe.ts";
import { createDelivery } from "./delivery/smtp-delivery.ts";
import { createDoctor } from "./doctor/doctor.ts";
import { createWorld } from "./doctor/world.ts";
import { createDnsbl } from "./dnsbl/dnsbl.ts";
import { createDomains } from "./domains/manage.ts";
import { createRecorder } from "./events/record.ts";
import { createFeedback } from "./feedback/feedback.ts";
import { createHttps } from "./https.ts";
import { createHttp } from "./http/server.ts";
import { createIdMint, type IdMint } from "./ids.ts";
import { createJobs } from "./jobs.ts";
import { noLines, type Log, type LogLines } from "./log.ts";
import { createMessageTokens } from "./mail/message-token.ts";
import { operationsAccount } from "./model/account.ts";
import { theNode } from "./model/node.ts";
import type { Reloaded } from "./model/reload.ts";
import { createMetrics } from "./metrics/metrics.ts";
import { createFetch } from "./mta-sts/fetch.ts";
import { createMtaSts } from "./mta-sts/policies.ts";
import { createMaintenance } from "./maintenance/maintenance.ts";
import { notifyBackupFailed } from "./notifications/backup-notice.ts";
import { notifyCertificate } from "./notifications/certificate-notice.ts";
import { notifyDeadLetter } from "./notifications/dead-letter-notice.ts";
import { notifyDomainStatus } from "./notifications/domain-notice.ts";
import { notifyListings } from "./notifications/listing-notice.ts";
import { createNotices } from "./notifications/notices.ts";
import { notifyDoctor } from "./notifications/doctor-notice.ts";
import { notifyAccountPaused } from "./notifications/pause-notice.ts";
import { notifyPoolProblem } from "./notifications/pool-notice.ts";
import { createDestinations } from "./outbound/destinations.ts";
import { endAttemptsAtStop } from "./outbound/end-attempts.ts";
import { createSignedMessages } from "./outbound/signed-message.ts";
import { createParsing } from "./parsing/parsing.ts";
import { createPools } from "./pools/pools.ts";
import { createQueueAdmin } from "./queue/queue-admin.ts";
import { createQueuePauses } from "./queue/queue-pauses.ts";
import { capWaitUntil } from "./pools/warmup.ts";
import { createRunner } from "./queue/runner.ts";
import { settlementOf } from "./queue/settle.ts";
import { createShaping } from "./queue/shaping.ts";
import { createShapingRules } from "./queue/shaping-rules.ts";
import { createInbound } from "./relay/inbound.ts";
import { createRelay } from "./relay/relay.ts";
import { createRetention } from "./retention/retention.ts";
import { makeDevCredentials, type DevCredentials } from "./sandbox/credentials.ts";
import { createReactions } from "./sandbox/reactions.ts";
import { createAbuseGuard } from "./sending-pause/abuse-guard.ts";
import { createSendingPause } from "./sending-pause/sending-pause.ts";
import type { Service } from "./service.ts";
import { createServiceManager } from "./service-manager.ts";
import {
  defaultAccountOf,
  domainConfig,
  endAtOnce,
  endWithoutWriter,
  resolverOf,
  systemChoiceOf,
} from "./setup.ts";
import { createSigning } from "./signing/signing.ts";
import { createStatsFold } from "./stats/fold.ts";
import { createStatus } from "./status/status.ts";
import { openStore } from "./store/sqlite/sqlite-store.ts";
import type { Store } from "./store/store.ts";
import { createNxdomainRecheck } from "./suppressions/nxdomain-recheck.ts";
import { createSubmission } from "./submission/submit.ts";
import { createTlsReports } from "./tls-reports/reports.ts";
import { createTlsResults, tlsReportTest } from "./tls-reports/results.ts";
import { openTls } from "./tls/tls.ts";
import { openTrackingKeys } from "./tracking/keys.ts";
import { createTrackingTokens } from "./tracking/tokens.ts";
import { createUnsubscribes, unsubscribeMailtos } from "./tracking/unsubscribes.ts";
import { createVisits } from "./tracking/visits.ts";
import { createWebhooks } from "./webhooks/webhooks.ts";

declare const __VERSION__: string;

export interface RunningDaemon {
  addresses(): { name: string; address: string }[];
  /** For `serve --dev`: a fresh key and SMTP login of a verified domain example.test. */
  devCredentials(): Promise<DevCredentials>;
  /** Reads the certificates and the shaping file again; an unusable one is logged and what was read before stays. */
  reload(): Promise<Reloaded>;
  /** Finishes what is in flight, at most `drainMs`. */
  stop(): Promise<void>;
  /** Resolves when everything has stopped. */
  readonly finished: Promise<void>;
}

/** Attempts and requests in flight may take this long to end; the next start takes back the leases of the rest. */
const drainMs = 30_000;

/** Opens the store, starts every service and resolves when the listeners are open. Throws StoreLocked, or the error of what could not start, after everything has stopped again. */
export async function serve({
  config,
  log,
  clock = systemClock,
  changes = () => ({ changed: [] }),
  logLines = noLines,
  env = {},
}: {
  config: Config;
  log: Log;
  logLines?: LogLines;
  clock?: Clock;
  changes?: Changes;
  /** Of the process: what its service manager wants to hear. */
  env?: Readonly<Record<string, string | undefined>>;
}): Promise<RunningDaemon> {
  const { pid } = process;
  const manager = createServiceManager({ env, pid, clock, log: log.component("service-manager") });
  const mint = createIdMint();
  const startedAt = clock.now();
  const store = await openStore({
    dataDir: config.dataDir,
    node: theNode,
    clock,
    log,
    mint,
    minFreeShare: config.limits.minFreeSpaceShare,
    onLost: endWithoutWriter,
  });
  const started: Service[][] = [];
  try {
    const { layers, daemon } = await build({ config, log, clock, mint, store, startedAt, changes, logLines });
    for (const layer of layers) {
      const running: Service[] = [];
      started.unshift(running);
      for (const service of layer) {
        await service.start();
        running.unshift(service);
      }
    }
    const { promise: finished, resolve } = Promise.withResolvers<void>();
    const stop = once(async () => {
      manager.stopping();
      await stopAll(started, store, clock, log).finally(() => {
        manager.end();
        resolve();
      });
    });
    const listening = daemon.addresses().map(({ name, address }) => `${name} ${address}`);
    const ready = (): void => manager.ready(`Serving ${listening.join(", ")}`);
    const reload = (): Promise<Reloaded> => {
      manager.reloading();
      return daemon.reload().finally(ready);
    };
    manager.watch(store.writerAnswers);
    ready();
    return { ...daemon, reload, stop, finished };
  } catch (error) {
    await stopAll(started, store, clock, log);
    manager.end();
    throw error;
  }
}

/** Options that have another value now than `config` has; or the faults of the configuration as it is now. */
type Changes = () => { changed: string[] } | { faults: string[] };

interface Base {
  config: Config;
  log: Log;
  clock: Clock;
  mint: IdMint;
  store: Store;
  startedAt: number;
  changes: Changes;
  logLines: LogLines;
}

/**
 * Creates the modules, and says in which order their services start: the listeners last, so that mail is accepted only
 * once it can be delivered. A layer needs the one before it. The services of one layer are stopped together, so that the
 * slow client of one does not delay the others.
 */
async function build({
  config,
  log,
  clock,
  mint,
  store,
  startedAt,
  changes,
  logLines,
}: Base): Promise<{ layers: Service[][]; daemon: Omit<RunningDaemon, "stop" | "finished"> }> {
  const boot = createBoot({
    store,
    node: theNode,
    clock,
    log: log.component("boot"),
    onEnded: endAtOnce,
  });
  const owner = boot.id;
  const resolver = resolverOf(config, clock, log);
  const secureContext = createTrust();
  const tls = await openTls({
    config,
    isTrackingName: store.isTrackingName,
    trackingNames: store.trackingNames,
    // The operator names the ACME server: it may be one of a private network.
    https: createHttps({ resolver, allowNetworks: ["0.0.0.0/0", "::/0"], secureContext, clock }),
    clock,
    log: log.component("tls"),
  });
  const { certificates } = tls;
  const maintenance = createMaintenance({ store, clock });
  await maintenance.reload();
  const recorder = createRecorder({ clock, mint });
  const signing = createSigning(log.component("signing"));
  const { signHeader } = signing;
  const parsing = createParsing({ clock, log: log.component("parsing") });
  const access = createAccess({ store, clock, log, mint });
  const pools = createPools({
    store,
    resolver: resolver.uncached,
    hostname: config.hostname,
    drainListed: config.dnsbl.onListing === "drain",
    clock,
    log: log.component("pools"),
  });
  const dnsbl = createDnsbl({
    store,
    pools: pools.all,
    resolver: resolver.uncached,
    recorder,
    config: config.dnsbl,
    system: await systemChoiceOf(config, store),
    onShown: pools.changed,
    clock,
    log: log.component("dnsbl"),
    random: Math.random,
  });
  const domains = createDomains({
    store,
    resolver: resolver.uncached,
    config: domainConfig(config),
    poolAddresses: pools.addressesOf,
    clock,
    mint,
  });
  const shapingFile = readShapingFile(config.outbound.shapingFile);
  if ("faults" in shapingFile) throw new Error(shapingFile.faults.join("\n"));
  const shaping = createShaping(shapingFile.content, await store.shapingRules());
  const mailListeners = [...config.inbound.listen, ...config.relay.starttls, ...config.relay.implicitTls];
  const { allowNetworks } = config.outbound;
  const https = createHttps({ resolver, allowNetworks, secureContext, clock });
  const operations = await store.accountByName(operationsAccount);
  // TLS reports are about no mail of our own: else the report to a domain would be about the report before it.
  const isOwn = (account: number | string): boolean => account === operations?.key;
  const tlsResults = createTlsResults({ store, clock, log: log.component("tls-reports") });
  const mtaSts = createMtaSts({
    store,
    resolver,
    fetch: createFetch(https),
    onFailed: (result, owner) => void (isOwn(owner) || tlsResults.note(result)),
    clock,
    log: log.component("mta-sts"),
  });
  const delivery = createDelivery({
    resolver,
    outbound: config.outbound,
    hostname: config.hostname,
    isOurs: localAddresses(mailListeners),
    mailPorts: portsOf(mailListeners),
    mtaStsOf: mtaSts.policyOf,
    isTlsReport: tlsReportTest(operations?.key ?? null, config.operations.email),
    isCounted: ({ message }) => !isOwn(message.accountKey),
    onTls: tlsResults.note,
    secureContext,
    clock,
    log: log.component("delivery"),
    random: Math.random,
    limitsOf: shaping.limits,
    tlsFor: shaping.tlsFor,
    mayUse: pools.mayUse,
    onUnusable: pools.lookSoon,
  });
  const verpSecret = await store.secret("verp");
  const trackingKeys = await openTrackingKeys({ store, clock });
  const trackingTokens = createTrackingTokens(trackingKeys);
  const messages = createSignedMessages({
    store,
    signHeader,
    clock,
    sign: config.outbound.sign,
    tokens: trackingTokens,
    unsubscribeMailto: unsubscribeMailtos(
      verpSecret,
      config.inbound.listen.length > 0 ? config.hostname : null,
    ),
    publicUrl: config.publicUrl,
    log: log.component("outbound"),
  });
  const tokens = createMessageTokens(verpSecret);
  const queuePauses = createQueuePauses({ store, clock });
  const destinations = createDestinations({
    delivery,
    shaping,
    pools,
    unpaused: queuePauses.usable,
    messages,
    verpSecret,
    clock,
  });
  const schedule = { retryMs: config.outbound.retryMs, maxAgeMs: config.outbound.maxAgeMs };
  const settleDeps = {
    recorder,
    mint,
    schedule,
    owner,
    random: Math.random,
    isCaught: destinations.isCaught,
  };
  const reactions = { store, recorder, clock, log: log.component("tracking") };
  const visits = createVisits(reactions);
  const unsubscribes = createUnsubscribes(reactions);
  const sendingPause = createSendingPause({ store, clock, log: log.component("sending-pause") });
  const queue = createRunner({
    store,
    destinationOf: destinations.destinationOf,
    suppressedSince: destinations.suppressedSince(store),
    settlementOf(job, outcome, now, group, warmup) {
      const settlement = settlementOf(settleDeps, job, outcome, now, group, warmup);
      activity.settled(job.message.test, settlement);
      return settlement;
    },
    onDelivered: createReactions({ ...reactions, visits, unsubscribes }),
    isPaused: sendingPause.isPaused,
    isQueuePaused: queuePauses.isPaused,
    onNoSource: destinations.onNoSource,
    shaping,
    warmups: pools.warmups,
    capWaitUntil: (queuedAt, now) => capWaitUntil(queuedAt, config.outbound.maxAgeMs, now),
    random: Math.random,
    owner,
    leaseValid: boot.leaseValid,
    clock,
    log: log.component("queue"),
  });
  const activity = createActivity({
    store,
    clock,
    startedAt,
    egress: queue.egressNow,
    queue: queue.counts,
    connections: delivery.openConnections,
  });
  const shapingRules = createShapingRules({
    store,
    shaping,
    limiters: queue.limiters,
    connections: delivery.connections,
    mxGroupOf: delivery.groupOf,
    onChange: queue.onShapingChanged,
    readFile: () =>
      config.outbound.shapingFile === null ? null : readShapingFile(config.outbound.shapingFile),
    log: log.component("shaping"),
  });
  pools.onChange(() => {
    delivery.reconsider();
    queue.onSourcesChanged();
  });
  queuePauses.onChange(queue.onPausesChanged);
  sendingPause.onReleased(queue.note);
  const runner = endAttemptsAtStop(queue, delivery, clock);
  const submission = createSubmission({ store, domains, pools, runner, config, tokens, clock, mint });
  const notices = createNotices({
    store,
    runner,
    config,
    domains,
    signHeader,
    tokens,
    clock,
    mint,
    log: log.component("notices"),
  });
  const tlsReports = createTlsReports({
    store,
    resolver,
    https,
    notices,
    hostname: config.hostname,
    contact: config.operations.email,
    clock,
    log: log.component("tls-reports"),
  });
  const domainsLog = log.component("domains");
  domains.onStatus((domain, before) => void notifyDomainStatus(notices, domainsLog, domain, before));
  pools.onProblem((problem) => void notifyPoolProblem(notices, store, problem));
  tls.onTrouble((trouble) => void notifyCertificate(notices, trouble));
  dnsbl.onChanges((changes) => void notifyListings(notices, changes, config.dnsbl.onListing === "drain"));
  const guard = createAbuseGuard({
    store,
    pauses: sendingPause,
    onPaused: (account, reason, at) => notifyAccountPaused(notices, account, reason, at),
    shares: config.guard,
    clock,
    log: log.component("sending-pause"),
  });
  const webhooks = createWebhooks({
    store,
    owner,
    recorder,
    config: config.webhooks,
    resolver,
    clock,
    log,
    onDeadLetter: (letter) => void notifyDeadLetter(notices, letter),
    onAttempt: (endpoint, kind) => activity.posted(endpoint, kind === "retry" ? "failed" : kind),
  });
  const unsubscribe = store.onCommit(({ deliveries }) => {
    if (deliveries) webhooks.kick();
  });
  const retention = createRetention({
    store,
    retention: config.retention,
    clock,
    log: log.component("retention"),
  });
  const backups = createBackups({
    store,
    config,
    version: __VERSION__,
    onFailed: (error) => void notifyBackupFailed(notices, error),
    clock,
    log: log.component("backup"),
  });
  const storeChecks = createStoreChecks({
    store,
    dataDir: config.dataDir,
    isBackingUp: () => backups.running() !== null,
    clock,
    log: log.component("store-check"),
  });
  const nxdomainRecheck = createNxdomainRecheck({
    store,
    resolver: resolver.uncached,
    clock,
    log: log.component("suppressions"),
  });
  const doctor = createDoctor({
    world: createWorld({
      config,
      store,
      resolver: resolver.uncached,
      pools,
      dnsbl,
      certificate: () => certificates?.current().cert ?? null,
      certificates: tls.list,
      lastBackupAt: backups.newestAt,
      clock,
    }),
    onChanged: (changed) => void notifyDoctor(notices, changed),
    clock,
    log: log.component("doctor"),
  });
  const jobs = createJobs(
    [
      domains,
      tls,
      nxdomainRecheck,
      retention,
      backups,
      createStatsFold(store),
      guard,
      sendingPause,
      pools,
      dnsbl,
      tlsResults,
      tlsReports,
      doctor,
      trackingKeys,
    ],
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
    unsubscribes,
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
  const metrics = createMetrics({
    store,
    clock,
    version: __VERSION__,
    others: () => ({
      maintenance: maintenance.window() !== null,
      poolProblems: pools.problems().length,
      listings: dnsbl.summary().listed.length,
      certificate: certificates?.current().cert ?? null,
      failingCertificates: {
        host: tls.troubles().filter(({ isHost }) => isHost).length,
        tracking: tls.troubles().filter(({ isHost }) => !isHost).length,
      },
      backupAt: backups.newestAt(),
    }),
  });
  const reload = async (): Promise<Reloaded> => {
    const failed: Reloaded["failed"] = [];
    const note = (part: Reloaded["failed"][number]["part"], faults: string[]): void =>
      void (faults.length > 0 && failed.push({ part, faults }));
    note("shaping_file", shapingRules.reloadFile());
    const certificate = await tls.reload();
    note("certificates", certificate === null ? [] : [certificate.message]);
    const now = changes();
    if ("faults" in now) note("configuration", now.faults);
    const restartFor = "changed" in now ? now.changed : [];
    if (failed.length > 0 || restartFor.length > 0)
      log.warn({ failed, restart_needed_for: restartFor }, "reloaded, but not all of it is in use");
    return { failed, restartFor };
  };
  const listeners: Pick<RunningDaemon, "addresses">[] = [];
  const addresses: RunningDaemon["addresses"] = () => listeners.flatMap((one) => one.addresses());
  const http = createHttp({
    config,
    certificates,
    trackingCertificates: tls.tracking,
    tls,
    store,
    access,
    submission,
    domains,
    webhooks,
    pools,
    queuePauses,
    queueAdmin: createQueueAdmin({ store, recorder, note: queue.note, clock }),
    dnsbl,
    shapingRules,
    queue,
    probe: createProbe({
      delivery,
      resolver,
      sourcesOf: pools.sourcesOf,
      tlsFor: (domain, group) => shaping.tlsFor(domain, group) ?? config.outbound.tls,
      hostname: config.hostname,
      clock,
    }),
    parsing,
    tracking: { tokens: trackingTokens, visits, unsubscribes },
    maintenance,
    backups,
    storeChecks,
    retention,
    guard,
    clock,
    log: log.component("http"),
    logLines,
    mint,
    status: createStatus({
      store,
      config,
      maintenance,
      clock,
      version: __VERSION__,
      startedAt,
      poolProblems: pools.problems,
      certificateTroubles: tls.troubles,
      dnsbl,
      listeners: addresses,
      jobs: jobs.states,
    }),
    doctor,
    metrics: metrics.text,
    activity,
    reload,
  });
  listeners.push(http, ...(relay ? [relay] : []), inbound, tls);

  const outside: Service = {
    name: "outside",
    async start() {},
    async stop() {
      unsubscribe();
      metrics.stop();
      activity.stop();
      mtaSts.stop();
      const reported = tlsReports.stop();
      await delivery.stop();
      await tlsResults.keep();
      await signing.stop();
      await parsing.stop();
      resolver.stop();
      await reported;
    },
  };
  return {
    layers: [
      [boot, outside, tls, pools, dnsbl, queuePauses, access.security, visits],
      [
        webhooks,
        sendingPause,
        runner,
        retention,
        backups,
        storeChecks,
        jobs,
        ...(relay ? [relay] : []),
        inbound,
        http,
      ],
    ],
    daemon: {
      addresses,
      reload,
      devCredentials: async () =>
        makeDevCredentials({ store, domains, access, clock }, await defaultAccountOf(store)),
    },
  };
}

/** The last layer first; what has not ended by the deadline is left to the next start. */
async function stopAll(started: Service[][], store: Store, clock: Clock, log: Log): Promise<void> {
  const { promise: deadline, resolve } = Promise.withResolvers<void>();
  const timer = clock.after(drainMs, resolve);
  const stopOne = async (service: Service): Promise<void> => {
    try {
      await service.stop();
    } catch (error) {
      log.error({ service: service.name, err: error }, "a service did not stop cleanly");
    }
  };
  const all = async (): Promise<void> => {
    for (const layer of started) await Promise.all(layer.map(stopOne));
  };
  await Promise.race([all(), deadline]);
  timer.cancel();
  await store.close();
}

function once(run: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | null = null;
  return () => (done ??= run());
}

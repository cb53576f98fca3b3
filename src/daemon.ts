// The composition root: starts the services in order and stops them in reverse. The modules are created, and connected by
// their hooks (onStatus, onReleased …), in the parts in daemon/, each of which needs only those before it. No rule and no
// text of theirs is here.
import { systemClock, type Clock } from "./clock.ts";
import type { Config } from "./config.ts";
import { createIdMint } from "./ids.ts";
import { noLines, type Log, type LogLines } from "./log.ts";
import { theNode } from "./model/node.ts";
import type { Reloaded } from "./model/reload.ts";
import { makeDevCredentials, type DevCredentials } from "./sandbox/credentials.ts";
import type { Service } from "./service.ts";
import { createServiceManager } from "./service-manager.ts";
import { defaultAccountOf, endWithoutWriter } from "./setup.ts";
import { openStore } from "./store/sqlite/sqlite-store.ts";
import type { Store } from "./store/store.ts";
import { giveBackMemory } from "./thread.ts";
import type { Base, Changes, Listening } from "./daemon/base.ts";
import { createFoundation } from "./daemon/foundation.ts";
import { createInterfaces } from "./daemon/interfaces.ts";
import { createPeriodicJobs } from "./daemon/periodic-jobs.ts";
import { createReporting } from "./daemon/reporting.ts";
import { createSending } from "./daemon/sending.ts";
import { createUpkeep } from "./daemon/upkeep.ts";

export interface RunningDaemon extends Listening {
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
    giveBackMemory();
    ready();
    return { ...daemon, reload, stop, finished };
  } catch (error) {
    await stopAll(started, store, clock, log);
    manager.end();
    throw error;
  }
}

/**
 * Creates the modules, and says in which order their services start: the listeners last, so that mail is accepted only
 * once it can be delivered. A layer needs the one before it. The services of one layer are stopped together, so that the
 * slow client of one does not delay the others.
 */
async function build(
  base: Base,
): Promise<{ layers: Service[][]; daemon: Omit<RunningDaemon, "stop" | "finished"> }> {
  const foundation = await createFoundation(base);
  const sending = await createSending(base, foundation);
  const reporting = createReporting(base, foundation, sending);
  const upkeep = createUpkeep(base, foundation, sending, reporting);
  const jobs = createPeriodicJobs(base, foundation, sending, reporting, upkeep);
  const { addresses, http, inbound, relay, metrics, reload } = createInterfaces(
    base,
    foundation,
    sending,
    reporting,
    upkeep,
    jobs,
  );
  const { boot, pools, dnsbl, access, domains, tls } = foundation;
  const { queuePauses, visits, sendingPause, runner } = sending;
  const { retention, backups, storeChecks } = upkeep;
  const outside: Service = {
    name: "outside",
    async start() {},
    async stop() {
      reporting.unsubscribe();
      metrics.stop();
      sending.activity.stop();
      sending.mtaSts.stop();
      const reported = reporting.tlsReports.stop();
      await sending.delivery.stop();
      await sending.tlsResults.keep();
      await foundation.signing.stop();
      await foundation.parsing.stop();
      foundation.resolver.stop();
      await reported;
    },
  };
  return {
    layers: [
      [boot, outside, tls, pools, dnsbl, queuePauses, access.security, visits],
      [
        reporting.webhooks,
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
        makeDevCredentials({ ...base, domains, access }, await defaultAccountOf(base.store)),
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

// Retention: each minute the job `prune` deletes rows and files older than retention.* allows, a piece at a time until
// none is left. Other writes wait behind a piece, so one that took long makes the next one smaller, and after each the
// job waits as long as the piece took. Which rows are expired, and that unsent mail never is, the store decides.
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import { nothingPurged, type Purged } from "../model/retention.ts";
import type { HasJobs, Service } from "../service.ts";
import type { Store } from "../store/store.ts";

export interface Retention extends Service, HasJobs {
  /** Deletes until nothing expired is left, or the service stops. Rejects when the store refuses a write. */
  run(): Promise<void>;
}

export interface RetentionDeps {
  store: Pick<Store, "purge">;
  retention: Config["retention"];
  clock: Clock;
  log: Log;
}

const leastRows = 20;
/** Some hundred messages, 2 to 6 ms. Larger pieces are not cheaper, and their sync delays all other writes. */
const mostRows = 2000;
/** A piece that took longer, waiting included, halves the next one; one faster than `shortMs` doubles it. */
const longMs = 40;
const shortMs = 15;

export function createRetention({ store, retention, clock, log }: RetentionDeps): Retention {
  let limit = 200;
  let stopping = false;
  let running: Promise<void> = Promise.resolve();
  let wake: (() => void) | null = null;

  const piece = async (): Promise<Purged> => {
    const now = clock.now();
    const began = clock.monotonic();
    const purged = await store.purge({
      now,
      contentBefore: now - retention.contentMs,
      messagesBefore: now - retention.messagesMs,
      eventsBefore: now - retention.eventsMs,
      auditBefore: now - retention.auditMs,
      limit,
    });
    const tookMs = clock.monotonic() - began;
    if (tookMs > longMs) limit = Math.max(leastRows, Math.floor(limit / 2));
    else if (tookMs < shortMs) limit = Math.min(mostRows, limit * 2);
    if (purged.more) await pause(tookMs);
    return purged;
  };

  /** Ends early when the service stops. */
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = clock.after(ms, resolve);
      wake = () => {
        timer.cancel();
        resolve();
      };
    });

  const all = async (): Promise<void> => {
    const sum = { ...nothingPurged };
    for (let more = true; more && !stopping;) {
      const purged = await piece();
      for (const kind of Object.keys(sum) as (keyof typeof sum)[]) sum[kind] += purged[kind];
      ({ more } = purged);
    }
    if (Object.values(sum).some((count) => count > 0)) log.debug(sum, "retention deleted expired data");
  };

  const run = (): Promise<void> => (running = all());

  return {
    name: "retention",
    jobs: [{ name: "prune", cron: "* * * * *", run }],
    async start() {},
    run,
    async stop() {
      stopping = true;
      wake?.();
      await running.catch(() => undefined); // logged where the run was started
    },
  };
}

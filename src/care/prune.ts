// Retention, as a job: asks the store each minute to remove what is too old, in pieces, for as long as there is more.
// A piece that took long makes the next one smaller, since other writes wait behind it; after each, others have as
// much time as it took. What is too old, and that nothing unsent ever is, decides the store.
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import type { Purged } from "../model/retention.ts";
import type { Service } from "../service.ts";
import type { Store } from "../store/store.ts";

export interface Prune extends Service {
  /** Until nothing is too old any more, or the service is stopped. Rejects where the store refuses. */
  run(): Promise<void>;
}

export interface PruneDeps {
  store: Pick<Store, "purge">;
  retention: Config["retention"];
  clock: Clock;
  log: Log;
}

const leastRows = 20;
/** Some hundred messages, 2 to 6 ms. Larger pieces are no cheaper, and their sync holds everybody up. */
const mostRows = 2000;
/** A piece that took this long, waiting included, was too large; one under the other bound may grow. */
const longMs = 40;
const shortMs = 15;

export function createPrune({ store, retention, clock, log }: PruneDeps): Prune {
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

  /** Ends at once when the service is stopped. */
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = clock.after(ms, resolve);
      wake = () => {
        timer.cancel();
        resolve();
      };
    });

  const all = async (): Promise<void> => {
    const sum = {
      content: 0,
      messages: 0,
      events: 0,
      deliveries: 0,
      idempotency: 0,
      audit: 0,
      stats: 0,
      files: 0,
    };
    for (let more = true; more && !stopping;) {
      const purged = await piece();
      for (const kind of Object.keys(sum) as (keyof typeof sum)[]) sum[kind] += purged[kind];
      ({ more } = purged);
    }
    if (Object.values(sum).some((count) => count > 0)) log.debug(sum, "what was too old was removed");
  };

  return {
    name: "prune",
    async start() {},
    run: () => (running = all()),
    async stop() {
      stopping = true;
      wake?.();
      await running.catch(() => undefined); // told where it was started
    },
  };
}

// Retention: each minute the job `prune` deletes rows and files older than retention.* allows, a piece at a time until
// none is left. Other writes wait behind a piece, so one that took long makes the next one smaller, and after each the
// job waits as long as the piece took. Which rows are expired, and that unsent mail never is, the store decides. The operator
// may ask for a run, which also returns all free space of the store.
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import { Refusal } from "../errors.ts";
import type { Log } from "../log.ts";
import { nothingPurged, type Expired, type Purged, type PurgedCounts } from "../model/retention.ts";
import type { HasJobs, Service } from "../service.ts";
import type { Store } from "../store/store.ts";

export interface RunningPrune {
  startedAt: number;
  /** Until now. */
  deleted: PurgedCounts;
}

export interface EndedPrune extends RunningPrune {
  endedAt: number;
  /** Why it did not come to its end. */
  error: string | null;
}

export interface Retention extends Service, HasJobs {
  /** Deletes until nothing expired is left, or the service stops. Rejects when the store refuses a write. */
  run(): Promise<void>;
  /** Begins a run for the operator. Throws Refusal where one of those is running. */
  begin(): void;
  running(): RunningPrune | null;
  /** The last one that was asked for since the start of the program. */
  last(): EndedPrune | null;
  /** What a run would look at. */
  expired(): Promise<Expired>;
}

export interface RetentionDeps {
  store: Pick<Store, "purge" | "expired">;
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
  let over: Promise<void> = Promise.resolve();
  let asked: RunningPrune | null = null;
  let last: EndedPrune | null = null;
  let wake: (() => void) | null = null;

  const limits = (now: number) => ({
    contentBefore: now - retention.contentMs,
    messagesBefore: now - retention.messagesMs,
    eventsBefore: now - retention.eventsMs,
    auditBefore: now - retention.auditMs,
  });

  const piece = async (returnAll: boolean): Promise<Purged> => {
    const now = clock.now();
    const began = clock.monotonic();
    const request = { now, ...limits(now), limit };
    const purged = await store.purge(returnAll ? { ...request, returnAll } : request);
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

  const all = async (sum: PurgedCounts, returnAll: boolean): Promise<void> => {
    for (let more = true; more && !stopping;) {
      const purged = await piece(returnAll);
      for (const kind of Object.keys(sum) as (keyof typeof sum)[]) sum[kind] += purged[kind];
      ({ more } = purged);
    }
    if (Object.values(sum).some((count) => count > 0)) log.debug(sum, "retention deleted expired data");
  };

  const ask = async (state: RunningPrune, before: Promise<void>): Promise<void> => {
    let error: string | null = null;
    try {
      await before.catch(() => undefined); // it is the job's, which logs it
      await all(state.deleted, true);
      if (stopping) error = "the service stopped before it was done";
    } catch (thrown) {
      error = thrown instanceof Error ? thrown.message : String(thrown);
      log.error({ detail: error }, "retention could not delete expired data");
    }
    last = { ...state, endedAt: clock.now(), error };
    asked = null;
  };

  const run = (): Promise<void> => {
    if (!asked) over = all({ ...nothingPurged }, false);
    return over;
  };

  return {
    name: "retention",
    jobs: [{ name: "prune", cron: "* * * * *", run }],
    async start() {},
    run,
    begin() {
      if (asked)
        throw new Refusal("conflict", "Expired data is being deleted. Try again when that has ended.");
      asked = { startedAt: clock.now(), deleted: { ...nothingPurged } };
      over = ask(asked, over);
    },
    running: () => asked,
    last: () => last,
    expired: () => store.expired(limits(clock.now())),
    async stop() {
      stopping = true;
      wake?.();
      await over.catch(() => undefined); // logged where the run was started
    },
  };
}

// Opens and clicks on their way to the store. They gather while a batch is being written (visit-writes.ts), accounts taking
// turns. A visit that is answered is on disk, but where the store does not write: then it waits in memory, bounded in total
// and for each account; the latest is shed where there is no room.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { VisitKind } from "../model/reaction.ts";
import type { Service } from "../service.ts";
import { createClickBursts, isMachine, type Visitor } from "./machine.ts";
import { createRepeats } from "./repeats.ts";
import type { TokenContent } from "./tokens.ts";
import { createVisitWrites, type VisitWritesDeps } from "./visit-writes.ts";

export interface Visit extends Visitor {
  kind: VisitKind;
  of: TokenContent;
  /** Tells the links of a recipient apart: the MAC of the token. */
  link: string;
}

export interface Visits extends Service {
  /** Resolves when it is on disk, or is not to be recorded. */
  note(visit: Visit): Promise<void>;
}

export interface VisitsDeps extends Pick<VisitWritesDeps<unknown>, "store" | "recorder"> {
  clock: Clock;
  log: Log;
}

/** How many may wait; of one account half. */
export const mostWaiting = 10_000;
const mostOfAccount = mostWaiting / 2;
/** Visits that are written at once, and those of one account. */
const batchSize = 200;
const batchOfAccount = 100;
const retryMs = 1_000;
const shedLogMs = 60_000;

interface Waiting extends Visit {
  at: number;
  machine: boolean;
  done(): void;
}

export function createVisits({ store, recorder, clock, log }: VisitsDeps): Visits {
  const repeats = createRepeats(clock);
  const bursts = createClickBursts(clock);
  /** By account, in the order of their turns. */
  const queues = new Map<number, Waiting[]>();
  let waiting = 0;
  let shed = 0;
  let writing: Promise<void> | null = null;
  let stopping = false;
  /** Ends the wait for the store. */
  let resume: (() => void) | null = null;

  /** Of each account as many, so that none waits for another's thousands. */
  const nextBatch = (): Waiting[][] => {
    const share = Math.min(batchOfAccount, Math.max(1, Math.floor(batchSize / queues.size)));
    const accounts = [...queues].slice(0, batchSize);
    return accounts.map(([accountKey, own]) => {
      queues.delete(accountKey);
      if (own.length > share) queues.set(accountKey, own.slice(share)); // behind the others
      return own.slice(0, share);
    });
  };
  const putBack = (visits: Waiting[]): void => {
    const accountKey = visits[0]?.of.accountKey;
    if (accountKey !== undefined) queues.set(accountKey, [...visits, ...(queues.get(accountKey) ?? [])]);
  };

  const leave = (visits: readonly Waiting[]): void => {
    waiting -= visits.length;
    for (const { done } of visits) done();
  };

  const writes = createVisitWrites<Waiting>({ store, recorder, leave, log });
  /** False: some wait on. */
  const writeOf = async (visits: Waiting[]): Promise<boolean> => {
    const waitOn = await writes.write(visits);
    putBack(waitOn);
    return waitOn.length === 0;
  };

  /** A batch at a time, so that each sees what those before it have left. */
  const write = async (): Promise<void> => {
    while (waiting > 0) {
      const written = await Promise.all(nextBatch().map(writeOf));
      if (written.every(Boolean)) continue;
      if (stopping) {
        log.error({ visits: waiting }, "opens and clicks were lost: the store does not write");
        return;
      }
      log.warn({ visits: waiting }, "opens and clicks wait for the store");
      const { promise, resolve } = Promise.withResolvers<void>();
      resume = resolve;
      const timer = clock.after(retryMs, resolve);
      await promise;
      timer.cancel();
    }
  };
  const kick = (): Promise<void> => (writing ??= write().finally(() => (writing = null)));

  const noteShed = (): void => {
    shed += 1;
    if (shed > 1) return;
    clock.after(shedLogMs, () => {
      log.warn({ visits: shed }, "opens and clicks were not recorded: too many wait for the store");
      shed = 0;
    });
  };

  return {
    name: "tracking",
    note(visit) {
      const { accountKey, recipientKey } = visit.of;
      if (repeats.isRepeat(accountKey, visit.link)) return Promise.resolve();
      const own = queues.get(accountKey) ?? [];
      if (waiting >= mostWaiting || own.length >= mostOfAccount) {
        noteShed();
        return Promise.resolve();
      }
      // Also where the request shows itself: a burst is one of all of a recipient's links.
      const burst = visit.kind === "clicked" && bursts.isBurst(accountKey, recipientKey, visit.link);
      const { promise, resolve: done } = Promise.withResolvers<void>();
      own.push({
        ...visit,
        at: clock.now(),
        machine: burst || isMachine(visit),
        done,
      });
      queues.set(accountKey, own);
      waiting += 1;
      void kick();
      return promise;
    },
    async start() {},
    async stop() {
      stopping = true;
      resume?.();
      await writing;
    },
  };
}

// Opens and clicks on their way to the store. They gather while a batch is being written, and one call writes the next
// batch: the events, and what the recipients did. `first` is decided here, where one batch at a time is made of what all
// those before it have left. A visit that is answered is on disk, but where the store does not write: then it waits in memory,
// bounded in total and for each account; the latest is shed where there is no room.
import type { Clock } from "../clock.ts";
import type { Recorder } from "../events/record.ts";
import type { Log } from "../log.ts";
import type { Job } from "../model/queued-recipient.ts";
import { machineVisit, type NewVisit, type VisitKind } from "../model/reaction.ts";
import type { Service } from "../service.ts";
import { StoreUnavailable, type Store } from "../store/store.ts";
import { createClickBursts, isMachine, type Visitor } from "./machine.ts";
import { createRepeats } from "./repeats.ts";
import type { TokenContent } from "./tokens.ts";

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

export interface VisitsDeps {
  store: Pick<Store, "reactingRecipient" | "recordVisits">;
  recorder: Pick<Recorder, "ofRecipient">;
  clock: Clock;
  log: Log;
}

/** How many may wait; of one account half. */
export const mostWaiting = 10_000;
const mostOfAccount = mostWaiting / 2;
/** Visits that are written at once, of one account, and in one call: a millisecond or two of the writer's time. */
const batchSize = 200;
const batchOfAccount = 100;
const callSize = 25;
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

  /** The events of an account's visits, in their order; null: there is no such recipient any more. */
  const recorded = async (visits: readonly Waiting[]): Promise<(NewVisit | null)[]> => {
    const standings = new Map<number, Standing>();
    const made: (NewVisit | null)[] = [];
    for (const visit of visits) {
      const { messageId, recipientKey, accountKey } = visit.of;
      const sent = await store.reactingRecipient({ id: messageId }, recipientKey);
      if (sent?.job.message.accountKey !== accountKey) {
        made.push(null); // retention or an erasure took it
        continue;
      }
      const standing = standings.get(recipientKey) ?? standingOf(sent);
      const { event, after } = eventOf(visit, sent, standing, recorder);
      standings.set(recipientKey, after);
      const { kind, machine, at } = visit;
      const messageKey = sent.job.message.key;
      made.push({ accountKey, kind, machine, recipientKey, messageKey, at, event });
    }
    return made;
  };

  const leave = (visits: readonly Waiting[]): void => {
    waiting -= visits.length;
    for (const { done } of visits) done();
  };

  /** False: the store does not answer, and they wait on. What it throws is a fault of this program. */
  const isWritten = async (
    visits: readonly Waiting[],
    made: Promise<readonly (NewVisit | null)[]>,
  ): Promise<boolean> => {
    try {
      const found = (await made).filter((one) => one !== null);
      if (found.length > 0) await store.recordVisits(found);
    } catch (error) {
      if (error instanceof StoreUnavailable) return false;
      throw error;
    }
    leave(visits);
    return true;
  };

  /** After a fault that one of them may have caused: that one is lost, and no other. Those that wait on. */
  const oneByOne = async (visits: readonly Waiting[]): Promise<readonly Waiting[]> => {
    const faults: unknown[] = [];
    let at = 0;
    for (const visit of visits) {
      try {
        if (!(await isWritten([visit], recorded([visit])))) break;
      } catch (error) {
        faults.push(error);
        leave([visit]);
      }
      at += 1;
    }
    if (faults.length > 0)
      log.error({ err: faults[0], visits: faults.length }, "opens and clicks could not be recorded");
    return visits.slice(at);
  };

  /** False: the store does not write, and some wait on. */
  const writeOf = async (visits: Waiting[]): Promise<boolean> => {
    const made = recorded(visits);
    const waits = new Set<Waiting>();
    const failed = new Set<Waiting>();
    const calls: Promise<void>[] = [];
    for (let from = 0; from < visits.length; from += callSize) {
      const own = visits.slice(from, from + callSize);
      const call = isWritten(
        own,
        made.then((all) => all.slice(from, from + callSize)),
      );
      calls.push(
        call.then(
          (written) => void (written || own.forEach((visit) => waits.add(visit))),
          () => own.forEach((visit) => failed.add(visit)),
        ),
      );
    }
    await Promise.all(calls);
    // Behind the others of its recipients, which were made as if it had been written: those may be without a first.
    for (const visit of await oneByOne(visits.filter((visit) => failed.has(visit)))) waits.add(visit);
    putBack(visits.filter((visit) => waits.has(visit)));
    return waits.size === 0;
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

/** What a recipient has done so far, as far as the next event depends on it. */
interface Standing {
  person: Record<VisitKind, boolean>;
  machineVisits: number;
  lastEventAt: number;
}

type Sent = NonNullable<Awaited<ReturnType<VisitsDeps["store"]["reactingRecipient"]>>>;

function standingOf({ openedAt, clickedAt, machineVisits, job }: Sent): Standing {
  return {
    person: { opened: openedAt !== null, clicked: clickedAt !== null },
    machineVisits,
    lastEventAt: job.lastEventAt,
  };
}

function eventOf(
  { kind, machine, ip, userAgent, of, at }: Waiting,
  { job: sentJob, sendingIp, provider }: Sent,
  standing: Standing,
  recorder: Pick<Recorder, "ofRecipient">,
): { event: NewVisit["event"]; after: Standing } {
  const job: Job = { ...sentJob, lastEventAt: standing.lastEventAt };
  const first = machine ? (standing.machineVisits & machineVisit[kind]) === 0 : !standing.person[kind];
  const data = { ip_address: ip, user_agent: userAgent, first, machine };
  const counted = { first, machine, sendingIp, provider };
  const event =
    kind === "opened"
      ? recorder.ofRecipient("message.opened", job, at, data, counted)
      : recorder.ofRecipient("message.clicked", job, at, { ...data, url: of.target }, counted);
  const after: Standing = {
    person: machine ? standing.person : { ...standing.person, [kind]: true },
    machineVisits: machine ? standing.machineVisits | machineVisit[kind] : standing.machineVisits,
    lastEventAt: event.occurredAt,
  };
  return { event, after };
}

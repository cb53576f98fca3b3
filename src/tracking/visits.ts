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
const batchSize = 100;
const retryMs = 1_000;
const longestAgent = 512;

interface Waiting extends Visit {
  at: number;
  machine: boolean;
  done(): void;
}

export function createVisits({ store, recorder, clock, log }: VisitsDeps): Visits {
  const repeats = createRepeats(clock);
  const bursts = createClickBursts(clock);
  const ofAccount = new Map<number, number>();
  let waiting: Waiting[] = [];
  let shed = 0;
  let writing: Promise<void> | null = null;
  let stopping = false;
  /** Ends the wait for the store. */
  let resume: (() => void) | null = null;

  const leave = (visits: readonly Waiting[]): void => {
    for (const { of, done } of visits) {
      const left = (ofAccount.get(of.accountKey) ?? 1) - 1;
      if (left > 0) ofAccount.set(of.accountKey, left);
      else ofAccount.delete(of.accountKey);
      done();
    }
  };

  /** The events of a batch, in its order. */
  const recorded = async (batch: readonly Waiting[]): Promise<NewVisit[]> => {
    const standings = new Map<number, Standing>();
    const made: NewVisit[] = [];
    for (const visit of batch) {
      const { messageId, recipientKey, accountKey } = visit.of;
      const sent = await store.reactingRecipient({ id: messageId }, recipientKey);
      if (sent?.job.message.accountKey !== accountKey) continue; // retention or an erasure took it
      const standing = standings.get(recipientKey) ?? standingOf(sent);
      const { event, after } = eventOf(visit, sent, standing, recorder);
      standings.set(recipientKey, after);
      made.push({
        kind: visit.kind,
        machine: visit.machine,
        recipientKey,
        messageKey: sent.job.message.key,
        at: visit.at,
        event,
      });
    }
    return made;
  };

  const writeBatch = async (): Promise<void> => {
    const batch = waiting.slice(0, batchSize);
    try {
      const visits = await recorded(batch);
      if (visits.length > 0) await store.recordVisits(visits);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      log.error({ err: error, visits: batch.length }, "opens and clicks could not be recorded");
    }
    waiting = waiting.slice(batch.length);
    leave(batch);
  };

  const write = async (): Promise<void> => {
    while (waiting.length > 0) {
      try {
        await writeBatch();
      } catch (error) {
        if (stopping) {
          log.error({ err: error, visits: waiting.length }, "opens and clicks were lost");
          return;
        }
        log.warn({ err: error, visits: waiting.length }, "opens and clicks wait for the store");
        const { promise, resolve } = Promise.withResolvers<void>();
        resume = resolve;
        const timer = clock.after(retryMs, resolve);
        await promise;
        timer.cancel();
      }
    }
  };
  const kick = (): Promise<void> => (writing ??= write().finally(() => (writing = null)));

  const noteShed = (): void => {
    shed += 1;
    if (shed > 1) return;
    clock.after(60_000, () => {
      log.warn({ visits: shed }, "opens and clicks were not recorded: too many wait for the store");
      shed = 0;
    });
  };

  return {
    name: "tracking",
    note(visit) {
      const { accountKey, recipientKey } = visit.of;
      if (repeats.isRepeat(accountKey, visit.link)) return Promise.resolve();
      const own = ofAccount.get(accountKey) ?? 0;
      if (waiting.length >= mostWaiting || own >= mostOfAccount) {
        noteShed();
        return Promise.resolve();
      }
      // Also where the request shows itself: a burst is one of all of a recipient's links.
      const burst = visit.kind === "clicked" && bursts.isBurst(accountKey, recipientKey, visit.link);
      ofAccount.set(accountKey, own + 1);
      const { promise, resolve: done } = Promise.withResolvers<void>();
      waiting.push({
        ...visit,
        userAgent: visit.userAgent.slice(0, longestAgent),
        at: clock.now(),
        machine: burst || isMachine(visit),
        done,
      });
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

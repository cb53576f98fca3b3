// Writes a batch of an account's opens and clicks: the events, and what the recipients did. `first` is decided here, so a batch
// is written at a time, each made of what those before it have left. One that causes a fault is lost, and no other.
import type { Recorder } from "../events/record.ts";
import type { Log } from "../log.ts";
import type { Job } from "../model/queued-recipient.ts";
import { machineVisit, type NewVisit, type VisitKind } from "../model/reaction.ts";
import { StoreUnavailable, type Store } from "../store/store.ts";
import type { Visitor } from "./machine.ts";
import type { TokenContent } from "./tokens.ts";

export interface NotedVisit extends Visitor {
  kind: VisitKind;
  of: TokenContent;
  at: number;
  machine: boolean;
}

export interface VisitWrites<V> {
  /** Resolves with those that wait on, in their order: the store does not write. */
  write(visits: readonly V[]): Promise<V[]>;
}

export interface VisitWritesDeps<V> {
  store: Pick<Store, "reactingRecipient" | "recordVisits">;
  recorder: Pick<Recorder, "ofRecipient">;
  /** They are written, or lost. */
  leave(visits: readonly V[]): void;
  log: Log;
}

/** Visits in one call: a millisecond or two of the writer's time. */
const callSize = 25;

export function createVisitWrites<V extends NotedVisit>({
  store,
  recorder,
  leave,
  log,
}: VisitWritesDeps<V>): VisitWrites<V> {
  /** The events of an account's visits, in their order; null: there is no such recipient any more. */
  const recorded = async (visits: readonly NotedVisit[]): Promise<(NewVisit | null)[]> => {
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

  /** False: the store does not answer, and they wait on. What it throws is a fault of this program. */
  const isWritten = async (
    visits: readonly V[],
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
  const oneByOne = async (visits: readonly V[]): Promise<readonly V[]> => {
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

  const write = async (visits: readonly V[]): Promise<V[]> => {
    const made = recorded(visits);
    const waits = new Set<V>();
    const failed = new Set<V>();
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
    return visits.filter((visit) => waits.has(visit));
  };

  return { write };
}

/** What a recipient has done so far, as far as the next event depends on it. */
interface Standing {
  person: Record<VisitKind, boolean>;
  machineVisits: number;
  lastEventAt: number;
}

type Sent = NonNullable<Awaited<ReturnType<VisitWritesDeps<unknown>["store"]["reactingRecipient"]>>>;

function standingOf({ openedAt, clickedAt, machineVisits, job }: Sent): Standing {
  return {
    person: { opened: openedAt !== null, clicked: clickedAt !== null },
    machineVisits,
    lastEventAt: job.lastEventAt,
  };
}

function eventOf(
  { kind, machine, ip, userAgent, of, at }: NotedVisit,
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

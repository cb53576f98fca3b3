// What is sent now. Scheduled queues come due, are routed to a ready queue (due-queues.ts) and claimed as far as that has
// slots (serving.ts), so that a destination that hangs or a long backlog starves no other. Every claim is a lease on disk.
// While outcomes cannot be written (writes.ts), nothing new is claimed. Here the parts are connected, started and stopped.
import { forwardTime, type Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { WaitRule } from "../model/queue.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { WarmupCounts } from "../pools/warmup-counts.ts";
import type { Service } from "../service.ts";
import type { Store } from "../store/store.ts";
import { createAddressWaits } from "./address-waits.ts";
import { createAttempts, type AttemptsDeps } from "./attempts.ts";
import { createClaims } from "./claims.ts";
import { createDueQueues, type DueQueues } from "./due-queues.ts";
import type { EgressNow, LimiterState } from "./egress.ts";
import { createParkedQueues } from "./parked-queues.ts";
import { sandboxQueue } from "./queue-name.ts";
import { createReadyQueues } from "./ready-queues.ts";
import { createReservations, type Reservations } from "./reservations.ts";
import { createRouting, type Destination } from "./routing.ts";
import { createScheduledQueues } from "./scheduled-queues.ts";
import { createServing, type ServingDeps } from "./serving.ts";
import type { Shaping } from "./shaping.ts";
import { createWrites } from "./writes.ts";

export interface RunnerDeps
  extends
    Pick<
      AttemptsDeps,
      "settlementOf" | "suppressedSince" | "isPaused" | "isQueuePaused" | "leaseValid" | "onDelivered"
    >,
    Pick<ServingDeps, "onNoSource" | "capWaitUntil"> {
  store: Pick<Store, "scheduledQueues" | "claimDue" | "release" | "takeBackLeases" | "settle">;
  /** Routes a scheduled queue as of now; cheap when it is known. Never rejects for what a network does. */
  destinationOf(queueName: string): Promise<Destination>;
  shaping: Shaping;
  warmups: Pick<WarmupCounts, "capAt" | "takeBack">;
  /** [0, 1): which of a pool's addresses. */
  random(): number;
  /** This boot; what an earlier one of its node held is taken back at start. */
  owner: string;
  clock: Clock;
  log: Log;
}

export interface Runner extends Service, Reservations, Omit<DueQueues, "route"> {
  /** Recipients of `scheduled queue` wait in the store, the earliest until `dueAt`. */
  note(queueName: string, dueAt: number): void;
  /** What holds back a recipient of a scheduled queue that is due, or `claimed`; `is` tells its job. */
  waitOf(queueName: string, claimed: boolean, is: (job: Job) => boolean): QueueWait;
  /** What each address may do now at the groups that `of` chooses. */
  limiters(of: (group: string) => boolean): LimiterState[];
  /** Where attempts run, and where receivers have slowed us down: the latest `most` of these. */
  egressNow(most: number): EgressNow;
  /** Attempts that run now, and outcomes and returns that wait to be written. */
  counts(): { active: number; unwritten: number };
}

/** The rule, for how long it holds as far as that is known, milliseconds, and whose limits they are. */
export interface QueueWait {
  rule: WaitRule;
  ms: number | null;
  group: string | null;
  /** What each address may do there now. */
  limiters: LimiterState[];
}

const queuePage = 1000;

export function createRunner(deps: RunnerDeps): Runner {
  const { store, clock, log, owner } = deps;
  const now = forwardTime(clock);
  let started = false;
  let stopping = false;
  const onResume = (): void => {
    if (stopping) return;
    scheduled.run();
    for (const queue of ready.all()) serving.run(queue);
  };
  const writes = createWrites({ clock, log, onResume });
  const blocked = (): boolean => stopping || writes.holding();
  const routing = createRouting(deps);
  const waits = createAddressWaits();
  const scheduled = createScheduledQueues({
    clock,
    now,
    blocked,
    route: (queueName, goesOn) => due.route(queueName, goesOn),
  });
  const ready = createReadyQueues({ ...deps, run: (queue) => serving.run(queue) });
  const claims = createClaims({ store, scheduled, waits, writes, blocked, owner, now, log });
  const attempts = createAttempts({
    ...deps,
    ready,
    claims,
    writes,
    onDeferred: ({ queueName }, dueAt) => scheduled.add(queueName, dueAt),
    stopping: () => stopping,
    now,
  });
  const parked = createParkedQueues({ waits, scheduled, now });
  const parts = { ...deps, routing, ready, claims, attempts, parked, blocked, stopping: () => stopping, now };
  const serving = createServing(parts);
  const due = createDueQueues({ ...parts, scheduled, waits, serving });
  const reservations = createReservations({ ...parts, open: () => started && !blocked() });

  const loadQueues = async (): Promise<void> => {
    for (let after: string | null = null; !stopping;) {
      const page: { queueName: string; dueAt: number }[] = await store.scheduledQueues(after, queuePage);
      for (const { queueName, dueAt } of page) {
        if (dueAt <= now()) waits.overdue(queueName);
        scheduled.add(queueName, dueAt);
      }
      after = page.at(-1)?.queueName ?? null;
      if (page.length < queuePage) return;
    }
  };

  return {
    name: "queue",
    async start() {
      const taken = await store.takeBackLeases(owner, now(), sandboxQueue);
      if (taken > 0)
        log.warn(
          { recipients: taken },
          "requeued the recipients that the last run had claimed; a message whose attempt had begun may arrive twice",
        );
      started = true;
      scheduled.run();
      await loadQueues();
    },
    async stop() {
      stopping = true;
      writes.halt();
      scheduled.stop();
      const queues = [...ready.all()];
      for (const { wake } of queues) wake?.cancel();
      await serving.requeue(queues);
      await attempts.finished();
      await writes.finish();
    },
    ...reservations,
    note: scheduled.add,
    onSourcesChanged: due.onSourcesChanged,
    onPausesChanged: due.onPausesChanged,
    onShapingChanged: due.onShapingChanged,
    waitOf(queueName, claimed, is) {
      const to = routing.known(queueName);
      const nowhere = { ms: null, group: null, limiters: [] };
      if (!claimed && deps.isQueuePaused(queueName, to?.group ?? null)) return { ...nowhere, rule: "pause" };
      if (!to) return { ...nowhere, rule: claimed ? "attempt" : writes.holding() ? "store" : "route" };
      const at = { group: to.group, limiters: ready.states((group) => group === to.group) };
      if (claimed && !ready.isReady(to, is)) return { ...at, rule: "attempt", ms: null };
      return writes.holding() ? { ...at, rule: "store", ms: null } : { ...at, ...ready.waitOf(to) };
    },
    limiters: ready.states,
    egressNow: ready.now,
    counts: () => ({ active: attempts.active(), unwritten: writes.kept() }),
  };
}

// What is sent now. Scheduled queues come due, are routed to a ready queue and claimed as far as that has slots, so that
// a destination that hangs or a long backlog starves no other. Every claim is a lease on disk. While outcomes cannot be
// written (writes.ts), nothing new is claimed.
import { forwardTime, type Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { WaitRule } from "../model/queue.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { WarmupCounts } from "../pools/warmup-counts.ts";
import type { Service } from "../service.ts";
import type { Store } from "../store/store.ts";
import { createAddressWaits } from "./address-waits.ts";
import { createAttempts, type AttemptsDeps } from "./attempts.ts";
import { createClaims, faultRetryMs } from "./claims.ts";
import { sandboxQueue } from "./queue-name.ts";
import type { EgressNow, LimiterState } from "./egress.ts";
import { createReadyQueues, type ReadyQueue, type Slot } from "./ready-queues.ts";
import { createRouting, type Destination } from "./routing.ts";
import { createScheduledQueues } from "./scheduled-queues.ts";
import type { Shaping } from "./shaping.ts";
import { createWrites } from "./writes.ts";

export interface RunnerDeps extends Pick<
  AttemptsDeps,
  "settlementOf" | "suppressedSince" | "isPaused" | "isQueuePaused" | "leaseValid" | "onDelivered"
> {
  store: Pick<Store, "scheduledQueues" | "claimDue" | "release" | "takeBackLeases" | "settle">;
  /** Routes a scheduled queue as of now; cheap when it is known. Never rejects for what a network does. */
  destinationOf(queueName: string): Promise<Destination>;
  /** Mail of the scheduled queue waits, since its pool can use no address. */
  onNoSource(queueName: string): void;
  shaping: Shaping;
  warmups: Pick<WarmupCounts, "capAt" | "takeBack">;
  /** Until when a message accepted then waits where every address has reached its cap; null: it goes over the cap. */
  capWaitUntil(queuedAt: number, now: number): number | null;
  /** [0, 1): which of a pool's addresses. */
  random(): number;
  /** This boot; what an earlier one of its node held is taken back at start. */
  owner: string;
  clock: Clock;
  log: Log;
}

/** A slot that is promised to a recipient whose acceptance is on its way to the disk. */
export interface Reservation {
  leaseOwner: string;
  to: Destination;
  slot: Slot;
}

export interface Runner extends Service {
  /** A slot for a recipient that is about to be accepted, where its queue has one and nothing waits before it; else null. */
  reserve(queueName: string): Reservation | null;
  /** The acceptance failed: the slot is free again. */
  cancelReservation(reservation: Reservation): void;
  /** The job was inserted under its reservation's lease: it starts now. */
  run(reservation: Reservation, job: Job): void;
  /** Recipients of `scheduled queue` wait in the store, the earliest until `dueAt`. */
  note(queueName: string, dueAt: number): void;
  /** The usable addresses of a pool changed: mail that waited for one is routed again. */
  onSourcesChanged(): void;
  /** A pause of a part of the queue began or ended. */
  onPausesChanged(): void;
  /** The limits are others from now on: what is due is routed again, and goes by them. */
  onShapingChanged(): void;
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
/** Mail that is paused, or of a pool without a usable address, is routed again when that changes, and in any case after this. */
const noSourceMs = 600_000;

export function createRunner(deps: RunnerDeps): Runner {
  const { store, clock, log, owner } = deps;
  const now = forwardTime(clock);
  let started = false;
  let stopping = false;
  const onResume = (): void => {
    if (stopping) return;
    scheduled.run();
    for (const queue of ready.all()) pump(queue);
  };
  const writes = createWrites({ clock, log, onResume });
  const blocked = (): boolean => stopping || writes.holding();
  const routing = createRouting(deps);
  const waits = createAddressWaits();
  const scheduled = createScheduledQueues({ clock, now, blocked, route });
  const ready = createReadyQueues({ ...deps, run: (queue) => pump(queue) });
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

  function route(queueName: string, goesOn: boolean): void {
    if (deps.isQueuePaused(queueName, null)) return wait(queueName);
    const to = goesOn ? routing.known(queueName) : routing.fresh(queueName);
    if (to) enqueue(queueName, to);
    else void ask(queueName);
  }

  async function ask(queueName: string): Promise<void> {
    const to = await routing.ask(queueName);
    if (to) enqueue(queueName, to);
    else scheduled.comesBack(queueName, now() + faultRetryMs);
  }

  function enqueue(queueName: string, to: Destination): void {
    if (deps.isQueuePaused(queueName, to.group)) return wait(queueName);
    const queue = ready.of(to);
    if (ready.hasSource(queue)) waits.end(queueName, now());
    queue.due.push({ queueName, to });
    pump(queue);
  }

  /** Starts what was claimed as far as there are slots, then claims more. */
  function pump(queue: ReadyQueue): void {
    if (!ready.hasSource(queue)) return park(queue);
    while (queue.ready.length > 0 && !blocked() && ready.room(queue) > 0) {
      if (ready.isAtCap(queue) && waitForCap(queue)) continue;
      const slot = ready.take(queue);
      if (!slot) {
        ready.runAtNextTurn(queue);
        break;
      }
      const next = queue.ready.shift();
      if (next) attempts.start({ queue, slot, ...next, fresh: false });
    }
    void claim(queue);
  }

  async function claim(queue: ReadyQueue): Promise<void> {
    if (!(await claims.claim(queue, ready.room(queue)))) return;
    if (stopping) await requeue([queue]);
    else pump(queue);
  }

  /** Every address has sent what its warm-up allows today: puts off what may wait for more. False: nothing may. */
  function waitForCap(queue: ReadyQueue): boolean {
    const at = now();
    const later = Map.groupBy(queue.ready, ({ job }) => deps.capWaitUntil(job.message.queuedAt, at));
    queue.ready = later.get(null) ?? [];
    later.delete(null);
    for (const [until, claimed] of later)
      void claims.requeue(
        claimed.map(({ job }) => job),
        until ?? at,
      );
    return later.size > 0;
  }

  /** None of the pool's addresses can be used: nothing is claimed, and what is goes back untried. */
  function park(queue: ReadyQueue): void {
    if (blocked()) return;
    const queueName = queue.due[0]?.queueName ?? queue.ready[0]?.job.queueName;
    if (queueName !== undefined) deps.onNoSource(queueName);
    void requeue([queue]);
    for (const { queueName } of queue.due.splice(0)) wait(queueName);
  }

  /** Until it changes what may be sent. */
  function wait(queueName: string): void {
    waits.begin(queueName, now());
    scheduled.comesBack(queueName, now() + noSourceMs);
  }

  /** What waits for a change is looked at again. */
  function reconsider(): void {
    for (const queue of ready.all()) pump(queue);
    for (const queueName of waits.changed(now())) scheduled.add(queueName, now());
  }

  const requeue = (queues: ReadyQueue[]): Promise<void> =>
    claims.requeue(
      queues.flatMap(({ ready: claimed }) => claimed.splice(0).map(({ job }) => job)),
      now(),
    );

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
      await requeue(queues);
      await attempts.finished();
      await writes.finish();
    },
    reserve(queueName) {
      const to = started && !blocked() ? routing.known(queueName) : null;
      if (!to || deps.isQueuePaused(queueName, to.group)) return null;
      const queue = ready.of(to);
      if (queue.ready.length > 0 || queue.due.length > 0 || ready.room(queue) === 0) return null;
      if (ready.isAtCap(queue)) return null;
      const slot = ready.take(queue);
      return slot && { leaseOwner: owner, to, slot };
    },
    cancelReservation: ({ to, slot }) => ready.leave(ready.of(to), slot, false),
    run({ to, slot }, job) {
      const queue = ready.of(to);
      if (!stopping) return attempts.start({ queue, slot, job, to, fresh: true });
      ready.leave(queue, slot, false);
      return void claims.requeue([job], now());
    },
    note: scheduled.add,
    onSourcesChanged() {
      routing.forget(); // which families a pool has is a part of them
      reconsider();
    },
    onPausesChanged() {
      for (const { due } of ready.all())
        for (const next of due.splice(0))
          if (deps.isQueuePaused(next.queueName, next.to.group)) wait(next.queueName);
          else due.push(next);
      reconsider();
    },
    onShapingChanged() {
      routing.forget(); // which limits a domain's mail counts towards is a part of it
      ready.reshape();
      for (const queue of ready.all()) {
        for (const { queueName } of queue.due.splice(0)) route(queueName, false);
        pump(queue);
      }
    },
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

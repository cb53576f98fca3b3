// Ready queues: due mail of one account and pool for one group of destinations, and the slots that it sends with. A
// slot is one of all attempts together (attempt-slots.ts) and one at an address of the pool (egress.ts). A queue that
// finds none is noted, and run again when one is free, in turn with the others.
import type { Timer } from "../clock.ts";
import type { Owner } from "../fairness.ts";
import type { WaitRule } from "../model/queue.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { Source } from "../pools/sources.ts";
import { createAttemptSlots } from "./attempt-slots.ts";
import { createEgress, eligible, freeSlots, isFull, underCap } from "./egress.ts";
import type { Egress, EgressDeps, EgressLimiter, EgressSlot, TakenSlot } from "./egress.ts";
import type { Destination } from "./routing.ts";

export interface ReadyQueue {
  name: string;
  /** The account whose mail it is: the accounts share the slots. */
  account: Owner;
  group: string;
  sources: () => readonly Source[];
  /** `slots` are those of this list. */
  known: readonly Source[];
  slots: EgressSlot<ReadyQueue>[];
  /** Attempts that run, and slots promised to acceptances. */
  taken: number;
  /** When an attempt last ended at a server, monotonic milliseconds; null: none has. */
  movedAt: number | null;
  /** Claimed and waiting for a slot. */
  ready: { job: Job; to: Destination }[];
  /** Scheduled queues with due recipients, served in turn. */
  due: { queueName: string; to: Destination }[];
  claiming: boolean;
  /** Runs it again when the throttle has a token. */
  wake: Timer | null;
}
export type Slot = TakenSlot<ReadyQueue>;

export interface ReadyQueues extends Pick<Egress<ReadyQueue>, "states" | "now"> {
  of(to: Destination): ReadyQueue;
  all(): Iterable<ReadyQueue>;
  /** The pool has an address that can be used now. */
  hasSource(queue: ReadyQueue): boolean;
  /** Every address of the pool has sent what its warm-up allows today. */
  isAtCap(queue: ReadyQueue): boolean;
  /** How many attempts may start now; with 0 the queue is run when a slot is free. */
  room(queue: ReadyQueue): number;
  /** Takes a slot at the address whose turn it is; null: it has no room, or no token yet. */
  take(queue: ReadyQueue): Slot | null;
  /** Runs the queue when that address has a token, or is waited for no longer. */
  runAtNextTurn(queue: ReadyQueue): void;
  /** Takes a slot at one of `sources` in place of `slot`; null: none has room, and `slot` stays. */
  moveTo(sources: readonly Source[], queue: ReadyQueue, slot: Slot): Slot | null;
  /** Frees a slot and runs the queues that wait for one. `reached`: a server was connected. */
  leave(queue: ReadyQueue, slot: Slot, reached: boolean): void;
  /** Which rule holds back due mail of a destination, and for how long; null: as long as others take. */
  waitOf(to: Destination): { rule: WaitRule; ms: number | null };
  /** It is claimed and has no slot yet. */
  isReady(to: Destination, is: (job: Job) => boolean): boolean;
  /** The limits are others from now on: the queues are to be run. */
  reshape(): void;
}

export interface ReadyQueuesDeps extends EgressDeps {
  /** Starts what the queue has slots for. */
  run(queue: ReadyQueue): void;
}

/** From this many queues on, idle ones are forgotten. */
const queuesMost = 10_000;

export function createReadyQueues({ run, ...deps }: ReadyQueuesDeps): ReadyQueues {
  const { clock } = deps;
  const queues = new Map<string, ReadyQueue>();
  const egress = createEgress<ReadyQueue>(deps);
  const attempts = createAttemptSlots<ReadyQueue>(clock);
  let sweptAt = queuesMost;

  const slotsOf = (queue: ReadyQueue): EgressSlot<ReadyQueue>[] => {
    const sources = queue.sources();
    if (sources !== queue.known) {
      queue.known = sources;
      queue.slots = egress.slots(sources, queue.group);
    }
    return queue.slots;
  };

  /** A queue that does nothing and whose throttles are idle is the same as none. */
  const forgetIdle = (): void => {
    const used = new Set<EgressLimiter<ReadyQueue>>();
    for (const [name, queue] of queues) {
      if (isAtRest(queue)) queues.delete(name);
      else for (const { limiter } of queue.slots) used.add(limiter);
    }
    egress.forget(used);
    sweptAt = Math.max(queuesMost, 2 * queues.size);
  };

  /** Queues that share the limiter take turns: one that finds it full again stands behind the others. */
  const freeOf = (own: ReadyQueue, slot: Slot, reached: boolean): void => {
    const { limiter } = slot;
    egress.leave(slot, reached);
    let served = false;
    for (const queue of limiter.waiting) {
      if (isFull(limiter)) break;
      limiter.waiting.delete(queue);
      served ||= queue === own;
      run(queue);
    }
    if (!served) runLate(own);
  };

  /** The same for its tokens: the queue that got the last one stands behind the others. */
  const runLate = (own: ReadyQueue): void => {
    let served = false;
    for (const { limiter } of own.slots)
      for (const queue of limiter.late) {
        if (isFull(limiter) || limiter.throttle.waitMs() > 0) break;
        limiter.late.delete(queue);
        served ||= queue === own;
        run(queue);
      }
    if (!served) run(own);
  };

  const waitForToken = (queue: ReadyQueue): void => {
    for (const { limiter } of eligible(slotsOf(queue)))
      if (!isFull(limiter) && limiter.throttle.waitMs() > 0) limiter.late.add(queue);
  };

  const waitForRoom = (queue: ReadyQueue): void => {
    for (const { limiter } of eligible(slotsOf(queue))) if (isFull(limiter)) limiter.waiting.add(queue);
  };

  return {
    of(to) {
      let queue = queues.get(to.readyQueue);
      if (!queue) {
        if (queues.size >= sweptAt) forgetIdle();
        queue = emptyQueue(to);
        queues.set(to.readyQueue, queue);
      }
      return queue;
    },
    all: () => queues.values(),
    hasSource: (queue) => slotsOf(queue).length > 0,
    isAtCap: (queue) => underCap(slotsOf(queue)).length === 0,
    room(queue) {
      const free = freeSlots(eligible(slotsOf(queue)));
      if (free > 0) return attempts.room(queue, free);
      waitForRoom(queue);
      return 0;
    },
    take(queue) {
      const slot = egress.take(slotsOf(queue));
      if (!slot) return null;
      slot.limiter.late.delete(queue);
      attempts.take(queue);
      return slot;
    },
    runAtNextTurn(queue) {
      waitForRoom(queue);
      waitForToken(queue);
      queue.wake ??= clock.after(egress.waitMs(slotsOf(queue)), () => {
        queue.wake = null;
        runLate(queue);
      });
    },
    moveTo(sources, queue, slot) {
      const other = egress.takeAny(underCap(egress.slots(sources, queue.group)));
      if (other) freeOf(queue, slot, false);
      return other;
    },
    leave(queue, slot, reached) {
      attempts.leave(queue, reached);
      freeOf(queue, slot, reached);
      attempts.runWaiting(run);
    },
    waitOf(to) {
      const queue = queues.get(to.readyQueue);
      if (!queue) return { rule: to.sources().length === 0 ? "pool" : "turn", ms: null };
      const slots = slotsOf(queue);
      if (slots.length === 0) return { rule: "pool", ms: null };
      if (freeSlots(eligible(slots)) === 0) return { rule: "connections", ms: null };
      if (attempts.isFull(queue)) return { rule: "attempts", ms: null };
      const ms = Math.min(...slots.map(({ limiter }) => limiter.throttle.waitMs()));
      return ms > 0 ? { rule: "rate", ms } : { rule: "turn", ms: null };
    },
    isReady: (to, is) => queues.get(to.readyQueue)?.ready.some(({ job }) => is(job)) ?? false,
    reshape() {
      egress.reshape();
      for (const queue of queues.values()) {
        queue.wake?.cancel();
        queue.wake = null;
      }
    },
    states: egress.states,
    now: egress.now,
  };
}

function emptyQueue({ readyQueue: name, account, group, sources }: Destination): ReadyQueue {
  return {
    name,
    account,
    group,
    sources,
    known: [],
    slots: [],
    taken: 0,
    movedAt: null,
    ready: [],
    due: [],
    claiming: false,
    wake: null,
  };
}

function isAtRest({ taken, ready, due, claiming, wake, slots }: ReadyQueue): boolean {
  const unused = taken === 0 && ready.length === 0 && due.length === 0 && !claiming && wake === null;
  return unused && slots.every(({ limiter }) => limiter.throttle.isIdle());
}

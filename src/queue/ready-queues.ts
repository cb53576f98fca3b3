// Ready queues: due mail of one account and pool for one group of destinations, and the slots that it sends with. A
// slot is one of all attempts together (attempt-slots.ts) and one at an address of the pool (egress.ts). A queue that
// finds none is noted, and run again when one is free, in turn with the others.
import type { Clock, Timer } from "../clock.ts";
import type { Owner } from "../fairness.ts";
import type { WaitRule } from "../model/queue.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { Source } from "../pools/sources.ts";
import { createAttemptSlots } from "./attempt-slots.ts";
import { createEgress, freeSlots, isFull, takeSlot, tokenWaitMs } from "./egress.ts";
import type { Egress, EgressLimiter, EgressSlot } from "./egress.ts";
import type { Destination } from "./routing.ts";
import type { Shaping } from "./shaping.ts";

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
  /** Claimed and waiting for a slot. */
  ready: { job: Job; to: Destination }[];
  /** Scheduled queues with due recipients, served in turn. */
  due: { queueName: string; to: Destination }[];
  claiming: boolean;
  /** Runs it again when the throttle has a token. */
  wake: Timer | null;
}
export type Slot = EgressSlot<ReadyQueue>;

export interface ReadyQueues extends Pick<Egress<ReadyQueue>, "states"> {
  of(to: Destination): ReadyQueue;
  all(): Iterable<ReadyQueue>;
  /** The pool has an address that can be used now. */
  hasSource(queue: ReadyQueue): boolean;
  /** How many attempts may start now; with 0 the queue is run when a slot is free. */
  room(queue: ReadyQueue): number;
  /** Takes a slot where there is room; null: the throttle has no token yet. */
  take(queue: ReadyQueue): Slot | null;
  /** Runs the queue when the throttle has a token. */
  runAtNextToken(queue: ReadyQueue): void;
  /** Takes a slot at one of `sources` in place of `slot`; null: none has room, and `slot` stays. */
  moveTo(sources: readonly Source[], queue: ReadyQueue, slot: Slot): Slot | null;
  /** Frees a slot and runs the queues that wait for one. */
  leave(queue: ReadyQueue, slot: Slot): void;
  /** Which rule holds back due mail of a destination, and for how long; null: as long as others take. */
  waitOf(to: Destination): { rule: WaitRule; ms: number | null };
  /** It is claimed and has no slot yet. */
  isReady(to: Destination, is: (job: Job) => boolean): boolean;
  /** The limits are others from now on: the queues are to be run. */
  reshape(): void;
}

export interface ReadyQueuesDeps {
  shaping: Shaping;
  clock: Clock;
  /** [0, 1): which of a pool's addresses. */
  random(): number;
  /** Starts what the queue has slots for. */
  run(queue: ReadyQueue): void;
}

/** From this many queues on, idle ones are forgotten. */
const queuesMost = 10_000;

export function createReadyQueues({ shaping, clock, random, run }: ReadyQueuesDeps): ReadyQueues {
  const queues = new Map<string, ReadyQueue>();
  const egress = createEgress<ReadyQueue>(shaping, clock);
  const attempts = createAttemptSlots<ReadyQueue>();
  let sweptAt = queuesMost;

  const slotsOf = (queue: ReadyQueue): Slot[] => {
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
  const freeOf = (own: ReadyQueue, limiter: EgressLimiter<ReadyQueue>): void => {
    limiter.taken -= 1;
    let served = false;
    for (const queue of limiter.waiting) {
      if (isFull(limiter)) break;
      limiter.waiting.delete(queue);
      served ||= queue === own;
      run(queue);
    }
    if (!served) run(own);
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
    room(queue) {
      const slots = slotsOf(queue);
      const free = freeSlots(slots);
      if (free > 0) return attempts.room(queue, free);
      for (const { limiter } of slots) limiter.waiting.add(queue);
      return 0;
    },
    take(queue) {
      const slot = takeSlot(slotsOf(queue), random);
      if (slot) attempts.take(queue);
      return slot;
    },
    runAtNextToken(queue) {
      queue.wake ??= clock.after(tokenWaitMs(slotsOf(queue)), () => {
        queue.wake = null;
        run(queue);
      });
    },
    moveTo(sources, queue, { limiter }) {
      const other = takeSlot(egress.slots(sources, queue.group), random);
      if (other) freeOf(queue, limiter);
      return other;
    },
    leave(queue, { limiter }) {
      attempts.leave(queue);
      freeOf(queue, limiter);
      attempts.runWaiting(run);
    },
    waitOf(to) {
      const queue = queues.get(to.readyQueue);
      if (!queue) return { rule: to.sources().length === 0 ? "pool" : "turn", ms: null };
      const slots = slotsOf(queue);
      if (slots.length === 0) return { rule: "pool", ms: null };
      if (freeSlots(slots) === 0) return { rule: "connections", ms: null };
      if (attempts.isFull(queue)) return { rule: "attempts", ms: null };
      const ms = tokenWaitMs(slots);
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

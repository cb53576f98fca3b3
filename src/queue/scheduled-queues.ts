// Scheduled queues: mail that waits for its time, by recipient domain. They stand in a heap by due time; one that is due
// is routed, and is not looked at again until it comes back with its next time.
import type { Clock, Timer } from "../clock.ts";
import { createTimeHeap } from "./heap.ts";

export interface ScheduledQueues {
  /** Recipients of `scheduled queue` wait in the store, the earliest until `dueAt`. */
  add(queueName: string, dueAt: number): void;
  /** Its due recipients are claimed; the earliest that still waits is due at `dueAt`, null: none waits. */
  comesBack(queueName: string, dueAt: number | null): void;
  /** More of it is due now: it is routed again, behind the others of its ready queue. */
  goesOn(queueName: string): void;
  /** Routes what is due, and waits for the next. Nothing happens before the first call. */
  run(): void;
  stop(): void;
}

export interface ScheduledQueuesDeps {
  clock: Clock;
  /** Milliseconds since the epoch, by a clock that never goes back. */
  now(): number;
  /** Nothing is routed now. */
  blocked(): boolean;
  /** Takes a queue that is due; `comesBack` or `goesOn` ends it. `goesOn`: the last claim left more that was due. */
  route(queueName: string, goesOn: boolean): void;
}

/** Queues that become due in one turn of the event loop. */
const routedATurn = 1000;
/** The timer fires at least this often, since the wall clock may jump. */
const longestWaitMs = 30_000;

export function createScheduledQueues({ clock, now, blocked, route }: ScheduledQueuesDeps): ScheduledQueues {
  const waiting = createTimeHeap();
  /** Queues that are being routed or claimed, or wait in a ready queue; true: became due again meanwhile. */
  const busy = new Map<string, boolean>();
  let alarm: { at: number; timer: Timer } | null = null;
  let started = false;

  const arm = (): void => {
    const next = waiting.peek();
    if (blocked() || !started || next === null) return;
    if (alarm && alarm.at <= next) return;
    alarm?.timer.cancel();
    const timer = clock.after(Math.min(Math.max(0, next - now()), longestWaitMs), () => {
      alarm = null;
      routeDue();
    });
    alarm = { at: next, timer };
  };

  const begin = (queueName: string, goesOn: boolean): void => {
    busy.set(queueName, false);
    route(queueName, goesOn);
  };

  const routeDue = (): void => {
    for (let left = routedATurn; left > 0 && !blocked(); left--) {
      const queueName = waiting.popDue(now());
      if (queueName === null) break;
      if (busy.has(queueName)) busy.set(queueName, true);
      else begin(queueName, false);
    }
    arm();
  };

  return {
    add(queueName, dueAt) {
      waiting.push(queueName, dueAt);
      arm();
    },
    comesBack(queueName, dueAt) {
      const again = busy.get(queueName) === true;
      busy.delete(queueName);
      if (again) waiting.push(queueName, now());
      if (dueAt !== null) waiting.push(queueName, dueAt);
      arm();
    },
    goesOn: (queueName) => begin(queueName, true),
    run() {
      started = true;
      routeDue();
    },
    stop: () => alarm?.timer.cancel(),
  };
}

// One timer for the earliest of several times, of which each cancels a later one. It wakes at the latest after
// `longestSleepMs`: wall clocks jump, and others than the caller may change what is due.
import type { Clock, Timer } from "../clock.ts";

export interface WakeTimer {
  /** By the time that does not go back (`forwardTime`). */
  at(dueAt: number): void;
  cancel(): void;
}

export function createWakeTimer(deps: {
  clock: Clock;
  time: () => number;
  longestSleepMs: number;
  onWake(): void;
}): WakeTimer {
  const { clock, time, longestSleepMs, onWake } = deps;
  let wake: { at: number; timer: Timer } | null = null;
  return {
    at(dueAt) {
      const at = Math.min(dueAt, time() + longestSleepMs);
      if (wake !== null && wake.at <= at) return;
      wake?.timer.cancel();
      const timer = clock.after(at - time(), () => {
        wake = null;
        onWake();
      });
      wake = { at, timer };
    },
    cancel() {
      wake?.timer.cancel();
      wake = null;
    },
  };
}

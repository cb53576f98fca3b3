// Time, as a value that is passed in. The product reads the time and sets timers
// only through a Clock, so that tests move it by hand and nothing sleeps.

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, milliseconds since 1970-01-01 UTC. May jump in either direction. */
  now(): number;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonic(): number;
  /** Calls `run` once, `delayMs` from now. Any finite delay is right: longer ones than a Node timer takes are chained. */
  after(delayMs: number, run: () => void): Timer;
}

/** Node turns a longer delay into 1 ms (setTimeout, signed 32-bit milliseconds). */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, run) {
    let left = Math.max(0, delayMs);
    let handle: NodeJS.Timeout;
    const arm = (): void => {
      const step = Math.min(left, longestTimerMs);
      left -= step;
      handle = setTimeout(left > 0 ? arm : run, step);
    };
    arm();
    return { cancel: () => clearTimeout(handle) };
  },
};

/**
 * The wall clock for schedules: it never goes back. After a jump backwards it goes on by the
 * monotonic clock, so that nothing waits longer than its delay; a jump forward is followed.
 */
export function forwardTime(clock: Clock): () => number {
  let offset = clock.now() - clock.monotonic();
  return () => {
    const steady = clock.monotonic();
    offset = Math.max(offset, clock.now() - steady);
    return Math.round(steady + offset);
  };
}

/** ISO 8601 UTC with milliseconds, the form that REST, SMTP and the CLI show (`2026-11-27T09:15:22.123Z`). */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** The same, null where there is no time. */
export function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

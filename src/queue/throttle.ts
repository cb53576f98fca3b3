// The throttle of one group of destinations: how many attempts may run at once and begin in a
// second. It is halved when the receiver says that we are too fast and comes back by a tenth a minute.
import type { Clock } from "../clock.ts";
import type { Shape } from "./shaping.ts";

const lowest = 0.05;
const recoveryPerMs = 0.1 / 60_000;
/** Refusals of one burst count once. */
const refusalWindowMs = 5_000;

export interface Throttle {
  /** What is left of the shape while the receiver slows us down: above 0, at most 1. */
  factor(): number;
  /** Attempts that may run at once. */
  limit(): number;
  /** Takes the token of one attempt; false where there is none yet. */
  take(): boolean;
  /** Milliseconds until the next token, 0 where there is one. */
  waitMs(): number;
  /** The receiver said that we are too fast. */
  slowDown(): void;
  /** Nothing is left of what went before: a new throttle would be the same. */
  isIdle(): boolean;
}

/** A continuously refilled bucket of one second's messages over the group's shape. */
export function createThrottle(shape: Shape, clock: Clock): Throttle {
  /** Its rate is not limited: only the number of concurrent attempts slows it down. */
  const unlimited = shape.perSecond === Number.POSITIVE_INFINITY;
  let factor = 1;
  let tokens = Math.max(1, shape.perSecond);
  let seen = clock.monotonic();
  let slowedAt = Number.NEGATIVE_INFINITY;

  const refresh = (): void => {
    const now = clock.monotonic();
    const passed = now - seen;
    seen = now;
    factor = Math.min(1, factor + passed * recoveryPerMs);
    if (!unlimited) {
      const rate = shape.perSecond * factor;
      tokens = Math.min(Math.max(1, rate), tokens + (passed * rate) / 1000);
    }
  };

  return {
    factor() {
      refresh();
      return factor;
    },
    limit() {
      refresh();
      return Math.max(1, Math.floor(shape.connections * factor));
    },
    take() {
      refresh();
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    },
    waitMs() {
      refresh();
      return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 1000) / (shape.perSecond * factor));
    },
    slowDown() {
      refresh();
      if (seen - slowedAt < refusalWindowMs) return;
      slowedAt = seen;
      factor = Math.max(lowest, factor / 2);
      if (!unlimited) tokens = Math.min(tokens, 1);
    },
    isIdle() {
      refresh();
      return factor === 1 && tokens >= Math.max(1, shape.perSecond);
    },
  };
}

// The throttle of one group of destinations: how many attempts may run at once and begin in a
// second. It is halved when the receiver says that we are too fast and comes back by a tenth a minute; where less than a tenth
// is left, by no more than that each minute, so that the rate stays near a receiver's that takes one message in two seconds.
import { minuteMs, type Clock } from "../clock.ts";
import type { Shape } from "../model/shaping.ts";

/** One message in two seconds of the standard rate. */
const lowest = 0.005;
const recoveryAMinute = 0.1;
/** Refusals of one burst count once. */
const refusalWindowMs = 5_000;
/** A reply that slowed it down is kept up to this many characters. */
const replyMost = 300;

/** What a throttle does now. */
export interface ThrottleState {
  /** 1: all that its shape allows; a half after a refusal. */
  factor: number;
  /** Attempts that may run at once. */
  limit: number;
  /** Messages that may begin in a second; Infinity: no limit. */
  perSecond: number;
  /** Milliseconds until the next token. */
  waitMs: number;
  /** Since when it is below its shape, and the last reply that made it so; null: it is not. */
  slowed: { since: number; at: number; reply: string } | null;
}

export interface Throttle {
  /** What is left of the shape while the receiver slows us down: above 0, at most 1. */
  factor(): number;
  /** Attempts that may run at once. */
  limit(): number;
  /** Takes the token of one attempt; false where there is none yet. */
  take(): boolean;
  /** Milliseconds until the next token, 0 where there is one. */
  waitMs(): number;
  /** The receiver said that we are too fast, in these words. */
  slowDown(reply: string): void;
  /** When it was last slowed down, on the monotonic clock; null: it is not, unless it has come back meanwhile. */
  slowedAt(): number | null;
  /** Its group has other limits from now on; how far it is slowed stays. */
  reshape(shape: Shape): void;
  state(): ThrottleState;
  /** Nothing is left of what went before: a new throttle would be the same. */
  isIdle(): boolean;
}

/** A continuously refilled bucket of one second's messages over the group's shape. */
export function createThrottle(first: Shape, clock: Clock): Throttle {
  let shape = first;
  /** Its rate is not limited: only the number of concurrent attempts slows it down. */
  let unlimited = shape.perSecond === Number.POSITIVE_INFINITY;
  let factor = 1;
  let slowed: ThrottleState["slowed"] = null;
  let tokens = Math.max(1, shape.perSecond);
  let seen = clock.monotonic();
  let slowedAt = Number.NEGATIVE_INFINITY;

  const refresh = (): void => {
    const now = clock.monotonic();
    const passed = now - seen;
    seen = now;
    if (factor < 1) factor = recovered(factor, passed / minuteMs);
    if (factor === 1) slowed = null;
    if (!unlimited) {
      const rate = shape.perSecond * factor;
      tokens = Math.min(Math.max(1, rate), tokens + (passed * rate) / 1000);
    }
  };

  const limit = (): number => Math.max(1, Math.floor(shape.connections * factor));
  const waitMs = (): number =>
    tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 1000) / (shape.perSecond * factor));

  return {
    factor() {
      refresh();
      return factor;
    },
    limit() {
      refresh();
      return limit();
    },
    take() {
      refresh();
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    },
    waitMs() {
      refresh();
      return waitMs();
    },
    slowDown(reply) {
      refresh();
      if (seen - slowedAt < refusalWindowMs) return;
      slowedAt = seen;
      const at = clock.now();
      slowed = { since: slowed?.since ?? at, at, reply: reply.slice(0, replyMost) };
      factor = Math.max(lowest, factor / 2);
      if (!unlimited) tokens = Math.min(tokens, 1);
    },
    slowedAt: () => (slowed === null ? null : slowedAt),
    reshape(next) {
      refresh();
      const wasUnlimited = unlimited;
      shape = next;
      unlimited = shape.perSecond === Number.POSITIVE_INFINITY;
      if (unlimited || wasUnlimited) tokens = Math.max(1, shape.perSecond);
      tokens = Math.min(tokens, Math.max(1, shape.perSecond * factor));
    },
    state() {
      refresh();
      return { factor, limit: limit(), perSecond: shape.perSecond * factor, waitMs: waitMs(), slowed };
    },
    isIdle() {
      refresh();
      return factor === 1 && tokens >= Math.max(1, shape.perSecond);
    },
  };
}

/** Grows by its own size a minute up to a tenth, then by a tenth a minute. */
function recovered(factor: number, minutes: number): number {
  const slowly = Math.max(0, Math.min(minutes, Math.log(recoveryAMinute / factor)));
  return Math.min(1, factor * Math.exp(slowly) + (minutes - slowly) * recoveryAMinute);
}

// When a deferred recipient is tried again (RFC 5321 §4.5.4.1). Pure functions; the
// delays themselves are the option `outbound.retry` (config/options.ts), the last one repeated.
import { longestNamedDelayMs } from "../mail/named-delay.ts";
import type { AttemptDecision } from "../model/attempt.ts";

/** Added to each delay, so that what failed together does not come back together; never less than the delay. */
const spread = 0.2;
/** After so many attempts a delay that the receiver names counts only where it is longer than the schedule's. */
const attemptsByReceiver = 5;

export interface RetrySchedule {
  /** Delays after the first, second, … failed attempt, milliseconds; the last is repeated. */
  retryMs: readonly number[];
  /** Age at which a message that is still deferred is given up, milliseconds from `queuedAt`. */
  maxAgeMs: number;
}

export interface NextAttempt {
  at: number;
  decidedBy: Extract<AttemptDecision, "schedule" | "receiver">;
}

/**
 * The next attempt after failed attempt number `attempt` (1 for the first) at `now`; null: give up, it has expired.
 * The last attempt falls on the expiry itself, so that none is given up untried in its last hours.
 * A delay that the receiver names is obeyed as it is, up to an hour, and not for ever: a receiver that names a second each
 * time costs five attempts more.
 */
export function nextAttemptAt(
  schedule: RetrySchedule,
  attempt: number,
  queuedAt: number,
  now: number,
  named: { delayMs: number | null; random: number },
): NextAttempt | null {
  const expiresAt = queuedAt + schedule.maxAgeMs;
  if (now >= expiresAt) return null;
  const spreadOut = (delayMs: number): number => Math.round(delayMs * (1 + spread * named.random));
  const own = schedule.retryMs[Math.min(attempt, schedule.retryMs.length) - 1] ?? 60_000;
  if (named.delayMs === null) return { at: Math.min(now + spreadOut(own), expiresAt), decidedBy: "schedule" };
  const wanted = Math.min(named.delayMs, longestNamedDelayMs);
  return attempt <= attemptsByReceiver || wanted >= own
    ? { at: Math.min(now + wanted, expiresAt), decidedBy: "receiver" }
    : { at: Math.min(now + spreadOut(own), expiresAt), decidedBy: "schedule" };
}

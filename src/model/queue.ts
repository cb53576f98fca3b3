// The queue as a whole: how much is in it, and when mail of it could not be tried.

/** `held`: due, and not tried while the account's sending is paused. */
export const queueCountNames = ["scheduled", "queued", "deferred", "sending", "held"] as const;
export type QueueCountName = (typeof queueCountNames)[number];

export type QueueCounts = Record<QueueCountName, number> & { oldestDueAt: number | null };

/** A time in which mail of a scheduled queue could not be tried, since its pool could use no address. */
export interface Wait {
  from: number;
  until: number;
}

/**
 * What a recipient that is not final waits for: `send_at`, its time; `retry`, its next attempt's time; `warmup`, the next
 * look at its pool, of which every address has sent what its warm-up allows today; `account`, whose sending is paused;
 * `hold`, its release by the operator; `pause`, the end of the pause of its domain, provider or pool; `store`, which takes
 * no writes; `route`, the DNS's answer; `pool`, an address of its pool; `connections`, as many attempts run as may; `rate`,
 * the next message in its turn; `attempts`, a slot of all attempts together; `turn`, mail before it; `attempt`, the end of
 * its attempt, which runs.
 */
export const waitRules = [
  "send_at",
  "retry",
  "warmup",
  "account",
  "hold",
  "pause",
  "store",
  "route",
  "pool",
  "connections",
  "rate",
  "attempts",
  "turn",
  "attempt",
] as const;
export type WaitRule = (typeof waitRules)[number];

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

// When a webhook that failed is tried again: fixed delays counted from the end of the failed attempt, whatever
// the receiver asks for (a Retry-After changes nothing). The delays are `webhooks.schedule` of the configuration; its
// default is the specification's retry table: ten attempts within 23 h 42 min. Ten is the most, however long the list is.

const mostAttempts = 10;

/** Due time of the attempt after `attempt` (1 is the first), which failed at `failedAt`; null: that was the last one. */
export function nextAttemptAt(
  attempt: number,
  failedAt: number,
  scheduleMs: readonly number[],
): number | null {
  const delayMs = scheduleMs[attempt - 1];
  return delayMs === undefined || attempt >= mostAttempts ? null : failedAt + delayMs;
}

/** How many attempts there are in all. */
export function maxAttempts(scheduleMs: readonly number[]): number {
  return Math.min(scheduleMs.length + 1, mostAttempts);
}

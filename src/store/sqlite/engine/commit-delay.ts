// How long a batch gathers before it leaves. One is at the writer at a time, and a commit costs about the same for one
// call as for forty: where the last batch had several callers, the next waits a moment for as many, since who misses it
// waits for two syncs instead of one. Who is alone is not kept waiting.

/** What a batch waits for company at most: two milliseconds, and on a disk that is slower half of a sync. */
const leastWaitMs = 2;
const shareOfCommit = 0.5;
/** A disk that hung for seconds once says nothing of its next sync. */
const mostWaitMs = 20;

/** How long a batch of `calls` may wait to be joined, milliseconds; 0: it leaves at once. */
export function commitDelayMs(last: { calls: number; commitMs: number }, calls: number): number {
  if (last.calls < 2 || calls >= last.calls) return 0;
  return Math.min(mostWaitMs, Math.max(leastWaitMs, last.commitMs * shareOfCommit));
}

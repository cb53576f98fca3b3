// How long a batch gathers before it leaves. One is at the writer at a time, and a commit costs about the same for one
// call as for forty: where the last batch had several callers, the next waits a moment for as many, since who misses it
// waits for two syncs instead of one. Who is alone is not kept waiting; nor, where a sync takes less than the wait, is an
// account that writes little by one that writes much: a call whose account had none in the last batch does not wait for
// the calls that the others had.
import type { Owner } from "../../../fairness.ts";
import { noAccount } from "./write-queue.ts";

/** What a batch waits for company at most: two milliseconds, and on a disk that is slower half of a sync. */
const leastWaitMs = 2;
const shareOfCommit = 0.5;
/** A disk that hung for seconds once says nothing of its next sync. */
const mostWaitMs = 20;

export interface CommitDelay {
  /** A call waits for the next batch. */
  joined(owner: Owner): void;
  /** A batch left for the writer. */
  left(): void;
  /** It was committed, with a call of each of these. */
  committed(owners: readonly Owner[], commitMs: number): void;
  /** How long the next batch, of so many calls, may wait to be joined, milliseconds; 0: it leaves at once. */
  waitMs(calls: number): number;
}

export function createCommitDelay(): CommitDelay {
  let last = { owners: new Set<Owner>(), calls: 0, commitMs: 0 };
  /** Whose calls have come since the last batch left. */
  const joined = new Set<Owner>();
  let joinedCalls = 0;
  const isNew = (owner: Owner): boolean => owner !== noAccount && !last.owners.has(owner);
  return {
    joined(owner) {
      joined.add(owner);
      joinedCalls += 1;
    },
    left() {
      joined.clear();
      joinedCalls = 0;
    },
    committed(owners, commitMs) {
      last = { owners: new Set(owners), calls: owners.length, commitMs };
    },
    waitMs(calls) {
      const hasWaited = calls > joinedCalls; // some of them, for the whole last batch
      if (last.calls < 2 || calls >= last.calls || hasWaited) return 0;
      if (last.commitMs < leastWaitMs) for (const owner of joined) if (isNew(owner)) return 0;
      return Math.min(mostWaitMs, Math.max(leastWaitMs, last.commitMs * shareOfCommit));
    },
  };
}

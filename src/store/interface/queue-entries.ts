// The calls by which an operator looks at the queue and acts on it. A list or a count looks at a bounded number of rows a
// call and says where it goes on; an act takes the row ids that a list gave, changes those of them that are still in the
// queue, and touches none that an attempt has in its hands.
import type { Page, PageRequest } from "../../model/page.ts";
import type { Job } from "../../model/queued-recipient.ts";
import type {
  FailedRecipient,
  QueueEntry,
  QueueFilter,
  QueueGroup,
  QueueGrouping,
  QueuePart,
  ScheduledQueue,
} from "../../model/queue-entry.ts";

export interface QueueEntryStore {
  /** What waits by scheduled queue and due time, then what is held, then what is being sent. */
  listQueue(
    accountKey: number,
    filter: QueueFilter,
    parts: readonly QueuePart[],
    page: PageRequest,
  ): Promise<Page<QueueEntry>>;
  /** The counts of a stretch of the queue, which are to be added up until `next` is null. */
  countQueue(
    accountKey: number,
    by: QueueGrouping,
    filter: QueueFilter,
    parts: readonly QueuePart[],
    cursor: string | null,
  ): Promise<{ groups: QueueGroup[]; next: string | null }>;
  /** Those that wait for another attempt are due `at`; what is scheduled for later by its sender stays so. */
  retryQueued(
    accountKey: number,
    keys: number[],
    at: number,
  ): Promise<{ changed: number; scheduledQueues: ScheduledQueue[] }>;
  /** Holds them for the operator, until they are released. */
  holdQueued(accountKey: number, keys: number[], at: number): Promise<number>;
  /** Releases those that the operator holds: they are due by their old time, and the held time does not count towards their age. */
  releaseQueued(
    accountKey: number,
    keys: number[],
    at: number,
  ): Promise<{ changed: number; scheduledQueues: ScheduledQueue[] }>;
  /** Cancels them, without an event. */
  deleteQueued(accountKey: number, keys: number[], at: number): Promise<number>;
  /** Bounces them, with the event; answers how many. */
  failQueued(failed: FailedRecipient[]): Promise<number>;
  /** What an event of these recipients is made of. */
  queuedJobs(accountKey: number, keys: number[]): Promise<Job[]>;
}

// What an attempt came to, and how it is written down: delivered, due again, or dead after the last attempt.
// Results are written in batches that form by themselves: what ends while one is written is the next. A batch that the
// store refuses stays and goes first when it takes writes again. A dead letter is told only once it is on disk.
import type { DeliveryResult, DueDelivery, Endpoint, Store } from "../store/store.ts";
import type { Answer } from "./post.ts";
import { maxAttempts, nextAttemptAt } from "./schedule.ts";

const largestBatch = 500;

export interface DeadLetter {
  endpoint: Endpoint;
  eventId: string;
  attempts: number;
  /** HTTP status of the last attempt's answer; null where there was none. */
  lastStatus: number | null;
}

export interface Finished {
  result: DeliveryResult;
  /** Of a delivery that failed for the last time. */
  letter: DeadLetter | null;
}

/** `at`: when the attempt ended, by the schedule's clock, which never goes back. */
export function resultOf(
  endpoint: Endpoint,
  delivery: DueDelivery,
  answer: Answer,
  at: number,
  scheduleMs: readonly number[],
): Finished {
  const { eventSeq, eventId, attempt } = delivery;
  const { status } = answer;
  const finished = (result: DeliveryResult["result"], letter: DeadLetter | null): Finished => ({
    result: { accountKey: endpoint.accountKey, endpointKey: endpoint.key, eventSeq, attempt, at, status, result },
    letter,
  });
  if (answer.delivered) return finished({ kind: "delivered" }, null);
  const dueAt = nextAttemptAt(attempt, at, scheduleMs);
  if (dueAt !== null) return finished({ kind: "retry", dueAt }, null);
  const attempts = Math.min(attempt, maxAttempts(scheduleMs));
  return finished({ kind: "dead_lettered" }, { endpoint, eventId, attempts, lastStatus: status });
}

export interface ResultWriter {
  add(finished: Finished): void;
  /** Writes until nothing waits. Rejects where the store refuses; what was not written still waits. */
  write(): Promise<void>;
  /** How many wait. */
  waiting(): number;
  /** Lets go of what waits: leases bring those deliveries back. */
  forget(): void;
}

export function createResultWriter(deps: {
  store: Pick<Store, "settleDeliveries">;
  onDeadLetter(letter: DeadLetter): void;
  /** A delivery is due again at that time. */
  onRetry(dueAt: number): void;
}): ResultWriter {
  const waiting: Finished[] = [];
  return {
    add: (finished) => void waiting.push(finished),
    waiting: () => waiting.length,
    forget: () => void (waiting.length = 0),
    async write() {
      while (waiting.length > 0) {
        const batch = waiting.slice(0, largestBatch);
        await deps.store.settleDeliveries(batch.map(({ result }) => result));
        waiting.splice(0, batch.length);
        for (const { result, letter } of batch) {
          if (letter !== null) deps.onDeadLetter(letter);
          if (result.result.kind === "retry") deps.onRetry(result.result.dueAt);
        }
      }
    },
  };
}

// What an attempt came to, and how it is written down: delivered, due again, or dead after the last attempt.
// Results are written in batches that form by themselves, each of one account: what ends while one is written is the next. A batch that the
// store refuses stays and goes first when it takes writes again; a result that cannot be written by its own fault is left
// out, and its delivery queued again. A dead letter is reported only once it is on disk.
import type { Log } from "../log.ts";
import type { DeliveryResult, DueDelivery, LeasedDelivery } from "../model/webhook-delivery.ts";
import type { Endpoint } from "../model/webhook.ts";
import { StoreUnavailable } from "../store/store.ts";
import type { Store } from "../store/store.ts";
import type { Answer } from "./post.ts";
import { maxAttempts, nextAttemptAt } from "./schedule.ts";

const largestBatch = 100;

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
  const { accountKey, eventSeq, eventId, owner, attempt } = delivery;
  const { status, durationMs, failure: error, body: responseBody } = answer;
  const came = { status, durationMs, error, responseBody };
  const finished = (result: DeliveryResult["result"], letter: DeadLetter | null): Finished => ({
    result: { accountKey, endpointKey: endpoint.key, eventSeq, owner, attempt, at, ...came, result },
    letter,
  });
  if (answer.delivered) return finished({ kind: "delivered" }, null);
  const dueAt = nextAttemptAt(attempt, at, scheduleMs);
  if (dueAt !== null) return finished({ kind: "retry", dueAt }, null);
  const attempts = Math.min(attempt, maxAttempts(scheduleMs));
  return finished({ kind: "dead_lettered" }, { endpoint, eventId, attempts, lastStatus: status });
}

/** What was claimed and came to no result: due again `at`. `counted`: its attempt counts. */
export interface Requeued {
  deliveries: LeasedDelivery[];
  at: number;
  counted: boolean;
}

export interface ResultWriter {
  add(finished: Finished): void;
  requeue(back: Requeued): void;
  /** Writes until nothing waits. Rejects where the store refuses; what was not written still waits. */
  write(): Promise<void>;
  /** Some wait. */
  waiting(): boolean;
  /** Drops what waits: the next start takes those deliveries back. */
  forget(): void;
}

export interface ResultWriterDeps {
  store: Pick<Store, "settleDeliveries" | "requeueDeliveries">;
  log: Log;
  /** Called after the dead letter is on disk. */
  onDeadLetter(letter: DeadLetter): void;
  /** A delivery is due again at that time. */
  onRetry(dueAt: number): void;
  /** The result cannot be written, by its own fault. */
  onUnwritable(result: DeliveryResult): void;
}

export function createResultWriter(deps: ResultWriterDeps): ResultWriter {
  const { store, log } = deps;
  const waiting = new Map<number, Finished[]>();
  const back: Requeued[] = [];

  /** False: it cannot be written, by its own fault. */
  const writeOne = async ({ result }: Finished): Promise<boolean> => {
    // The likeliest fault is in what a stranger has said.
    for (const bare of [result, { ...result, error: null, responseBody: null }]) {
      try {
        await store.settleDeliveries([bare]);
        return true;
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        const { endpointKey, eventSeq, attempt } = result;
        log.error(
          { endpointKey, eventSeq, attempt, error: String(error) },
          "a webhook result was not recorded",
        );
      }
    }
    return false;
  };

  /** Written together; where one of them cannot be written, each by itself, so that it harms no other. */
  const writeAll = async (batch: Finished[]): Promise<Finished[]> => {
    try {
      await store.settleDeliveries(batch.map(({ result }) => result));
      return batch;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
    }
    const written: Finished[] = [];
    for (const finished of batch) {
      if (await writeOne(finished)) written.push(finished);
      else deps.onUnwritable(finished.result);
    }
    return written;
  };

  const writeRequeued = async ({ deliveries, at, counted }: Requeued): Promise<void> => {
    try {
      await store.requeueDeliveries(deliveries, at, { counted });
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      const events = deliveries.map(({ eventSeq }) => eventSeq);
      log.error({ events, error: String(error) }, "webhooks were not queued again; the next start does that");
    }
    back.shift();
  };

  const tell = ({ result, letter }: Finished): void => {
    if (result.result.kind === "retry") deps.onRetry(result.result.dueAt);
    if (letter === null) return;
    try {
      deps.onDeadLetter(letter);
    } catch (error) {
      log.error(
        { endpoint: letter.endpoint.id, error: String(error) },
        "the notification of a dead letter failed",
      );
    }
  };

  const writeOf = async (accountKey: number, own: Finished[]): Promise<void> => {
    const batch = own.slice(0, largestBatch);
    const written = await writeAll(batch);
    own.splice(0, batch.length);
    if (own.length === 0) waiting.delete(accountKey);
    written.forEach(tell);
  };

  /** An account's results do not wait for another's. */
  const writeEach = async (all: [number, Finished[]][]): Promise<void> => {
    const writes = await Promise.allSettled(all.map(([accountKey, own]) => writeOf(accountKey, own)));
    for (const write of writes) if (write.status === "rejected") throw write.reason;
  };

  return {
    add(finished) {
      const { accountKey } = finished.result;
      const own = waiting.get(accountKey);
      if (own) own.push(finished);
      else waiting.set(accountKey, [finished]);
    },
    requeue: (given) => void back.push(given),
    waiting: () => waiting.size > 0 || back.length > 0,
    forget() {
      waiting.clear();
      back.length = 0;
    },
    async write() {
      while (waiting.size > 0 || back.length > 0) {
        const [given] = back;
        if (given) {
          await writeRequeued(given);
          continue;
        }
        const [[accountKey, own] = [0, []]] = waiting;
        if (waiting.size === 1) await writeOf(accountKey, own);
        else await writeEach([...waiting]);
      }
    },
  };
}

// Serves ready queues: what was claimed starts as far as there are slots, then more is claimed. Where nothing may be sent now,
// since the pool can use no address or each has reached its cap of the day, what was claimed goes back untried.
import type { Attempts } from "./attempts.ts";
import type { Claims } from "./claims.ts";
import type { ParkedQueues } from "./parked-queues.ts";
import type { ReadyQueue, ReadyQueues } from "./ready-queues.ts";

export interface Serving {
  run(queue: ReadyQueue): void;
  /** What is claimed goes back untried. */
  requeue(queues: ReadyQueue[]): Promise<void>;
}

export interface ServingDeps {
  ready: Pick<ReadyQueues, "hasSource" | "isAtCap" | "room" | "take" | "runAtNextTurn">;
  claims: Claims;
  attempts: Pick<Attempts, "start">;
  parked: Pick<ParkedQueues, "park">;
  /** Mail of the scheduled queue waits, since its pool can use no address. */
  onNoSource(queueName: string): void;
  /** Until when a message accepted then waits where every address has reached its cap; null: it goes over the cap. */
  capWaitUntil(queuedAt: number, now: number): number | null;
  blocked(): boolean;
  stopping(): boolean;
  now(): number;
}

export function createServing(deps: ServingDeps): Serving {
  const { ready, claims, attempts, parked, blocked, now } = deps;

  const run = (queue: ReadyQueue): void => {
    if (!ready.hasSource(queue)) return park(queue);
    while (queue.ready.length > 0 && !blocked() && ready.room(queue) > 0) {
      if (ready.isAtCap(queue) && waitForCap(queue)) continue;
      const slot = ready.take(queue);
      if (!slot) {
        ready.runAtNextTurn(queue);
        break;
      }
      const next = queue.ready.shift();
      if (next) attempts.start({ queue, slot, ...next, fresh: false });
    }
    void claim(queue);
  };

  const claim = async (queue: ReadyQueue): Promise<void> => {
    if (!(await claims.claim(queue, ready.room(queue)))) return;
    if (deps.stopping()) await requeue([queue]);
    else run(queue);
  };

  /** Every address has sent what its warm-up allows today: puts off what may wait for more. False: nothing may. */
  const waitForCap = (queue: ReadyQueue): boolean => {
    const at = now();
    const later = Map.groupBy(queue.ready, ({ job }) => deps.capWaitUntil(job.message.queuedAt, at));
    queue.ready = later.get(null) ?? [];
    later.delete(null);
    for (const [until, claimed] of later)
      void claims.requeue(
        claimed.map(({ job }) => job),
        until ?? at,
      );
    return later.size > 0;
  };

  /** None of the pool's addresses can be used: nothing is claimed. */
  const park = (queue: ReadyQueue): void => {
    if (blocked()) return;
    const queueName = queue.due[0]?.queueName ?? queue.ready[0]?.job.queueName;
    if (queueName !== undefined) deps.onNoSource(queueName);
    void requeue([queue]);
    for (const due of queue.due.splice(0)) parked.park(due.queueName);
  };

  const requeue = (queues: ReadyQueue[]): Promise<void> =>
    claims.requeue(
      queues.flatMap(({ ready: claimed }) => claimed.splice(0).map(({ job }) => job)),
      now(),
    );

  return { run, requeue };
}

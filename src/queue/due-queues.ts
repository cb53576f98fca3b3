// Scheduled queues that are due: each is routed, and goes into the ready queue of its destination or is parked. When it
// changes what may be sent, or where, they are looked at again.
import type { AddressWaits } from "./address-waits.ts";
import { faultRetryMs } from "./claims.ts";
import type { ParkedQueues } from "./parked-queues.ts";
import type { ReadyQueues } from "./ready-queues.ts";
import type { Destination, Routing } from "./routing.ts";
import type { ScheduledQueues } from "./scheduled-queues.ts";
import type { Serving } from "./serving.ts";

export interface DueQueues {
  /** `goesOn`: the last claim left more that is due. */
  route(queueName: string, goesOn: boolean): void;
  /** The usable addresses of a pool changed: mail that waited for one is routed again. */
  onSourcesChanged(): void;
  /** A pause of a part of the queue began or ended. */
  onPausesChanged(): void;
  /** The limits are others from now on: what is due is routed again, and goes by them. */
  onShapingChanged(): void;
}

export interface DueQueuesDeps {
  routing: Pick<Routing, "known" | "fresh" | "ask" | "forget">;
  scheduled: Pick<ScheduledQueues, "comesBack">;
  parked: ParkedQueues;
  waits: Pick<AddressWaits, "end">;
  ready: Pick<ReadyQueues, "of" | "all" | "hasSource" | "reshape">;
  serving: Pick<Serving, "run">;
  /** Mail of the scheduled queue gets no attempt (queue-pauses.ts). `provider`: or group of its destination; null: not known yet. */
  isQueuePaused(queueName: string, provider: string | null): boolean;
  now(): number;
}

export function createDueQueues(deps: DueQueuesDeps): DueQueues {
  const { routing, scheduled, parked, waits, ready, serving, now } = deps;

  const route = (queueName: string, goesOn: boolean): void => {
    if (deps.isQueuePaused(queueName, null)) return parked.park(queueName);
    const to = goesOn ? routing.known(queueName) : routing.fresh(queueName);
    if (to) enqueue(queueName, to);
    else void ask(queueName);
  };

  const ask = async (queueName: string): Promise<void> => {
    const to = await routing.ask(queueName);
    if (to) enqueue(queueName, to);
    else scheduled.comesBack(queueName, now() + faultRetryMs);
  };

  const enqueue = (queueName: string, to: Destination): void => {
    if (deps.isQueuePaused(queueName, to.group)) return parked.park(queueName);
    const queue = ready.of(to);
    if (ready.hasSource(queue)) waits.end(queueName, now());
    queue.due.push({ queueName, to });
    serving.run(queue);
  };

  const lookAgain = (): void => {
    for (const queue of ready.all()) serving.run(queue);
    parked.changed();
  };

  return {
    route,
    onSourcesChanged() {
      routing.forget(); // which families a pool has is a part of them
      lookAgain();
    },
    onPausesChanged() {
      for (const { due } of ready.all())
        for (const next of due.splice(0))
          if (deps.isQueuePaused(next.queueName, next.to.group)) parked.park(next.queueName);
          else due.push(next);
      lookAgain();
    },
    onShapingChanged() {
      routing.forget(); // which limits a domain's mail counts towards is a part of it
      ready.reshape();
      for (const queue of ready.all()) {
        for (const { queueName } of queue.due.splice(0)) route(queueName, false);
        serving.run(queue);
      }
    },
  };
}

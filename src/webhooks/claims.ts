// Claims due deliveries for the free slots of an endpoint's queue, and begins their attempts. The attempt number and its
// lease are on disk before the attempt. An endpoint that brings out a fault of this program is paused for a while, and
// delays no other.
import type { Log } from "../log.ts";
import { StoreUnavailable, type Store } from "../store/store.ts";
import type { DeliveryAttempts } from "./attempts.ts";
import { isFailing, type EndpointQueue, type EndpointQueues } from "./endpoint-queues.ts";
import type { Work } from "./work.ts";
import { faultPauseMs, type Writes } from "./writes.ts";

export interface DeliveryClaims {
  /** Claims for a queue's free slots, again for as long as the store has more. `more`: it has some that is due now. */
  fill(queue: EndpointQueue, more: boolean): void;
  /** After a fault of this program that the endpoint brought out. */
  pause(queue: EndpointQueue, error: unknown): void;
}

export interface DeliveryClaimsDeps {
  store: Pick<Store, "claimDeliveries" | "endpointByKey">;
  queues: EndpointQueues;
  /** This boot. */
  owner: string;
  /** Milliseconds since the epoch, by a clock that never goes back. */
  time(): number;
  attempts: Pick<DeliveryAttempts, "start">;
  writes: Pick<Writes, "holding" | "refused" | "requeue" | "requeueAfterFault">;
  work: Work;
  /** The store is to be looked at then. */
  wakeAt(dueAt: number): void;
  log: Log;
}

export function createDeliveryClaims(deps: DeliveryClaimsDeps): DeliveryClaims {
  const { store, queues, owner, time, attempts, writes, work, wakeAt, log } = deps;

  const fill = (queue: EndpointQueue, more: boolean): void => {
    queue.more ||= more;
    if (queue.claiming || !queue.more || !work.running() || writes.holding()) return;
    if (queues.freeSlots(queue) <= 0) return;
    if (queue.pausedUntil > time()) return wakeAt(queue.pausedUntil);
    queue.claiming = true;
    work.track(
      claim(queue)
        .catch((error: unknown) => {
          if (error instanceof StoreUnavailable) writes.refused(error, "claiming webhooks");
          else pause(queue, error);
        })
        .finally(() => {
          queue.claiming = false;
          fill(queue, false);
        }),
    );
  };

  const pause = (queue: EndpointQueue, error: unknown): void => {
    queue.pausedUntil = time() + faultPauseMs;
    log.error(
      { endpointKey: queue.key, error: String(error) },
      "a webhook endpoint is paused after a fault of this program",
    );
  };

  const claim = async (queue: EndpointQueue): Promise<void> => {
    queue.more = false;
    const now = time();
    const mayBegin = queues.beginAt(queue) <= now;
    // Of a failing endpoint's events one is tried; what has begun keeps to its schedule, and is claimed after it.
    const probes = mayBegin && isFailing(queue);
    const limit = probes ? 1 : queues.freeSlots(queue);
    if (probes) queue.probeAt = now;
    queues.take(queue, limit);
    try {
      const { key: endpointKey, accountKey } = queue;
      const wanted = { owner, accountKey, endpointKey, limit, now, retriesOnly: !mayBegin };
      const claimed = await store.claimDeliveries(wanted);
      const { deliveries, nextDueAt } = claimed;
      if (nextDueAt !== null && nextDueAt > now) wakeAt(nextDueAt);
      if (deliveries.length === 0) return;
      queue.more ||= probes || (nextDueAt !== null && nextDueAt <= now);
      // Read after the claim: the secret and URL of now, and nothing for an endpoint that is gone or paused.
      const endpoint = await store.endpointByKey(queue.key).catch((error: unknown) => {
        writes.requeueAfterFault(deliveries);
        throw error;
      });
      if (!endpoint?.active) return writes.requeue({ deliveries, at: now, counted: false });
      for (const delivery of deliveries) attempts.start(queue, endpoint, delivery);
    } finally {
      queues.take(queue, -limit);
    }
  };

  return { fill, pause };
}

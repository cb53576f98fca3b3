// The queue, what of it is paused, and what `svc top` shows of it.
import { createActivity } from "../activity/activity.ts";
import { capWaitUntil } from "../pools/warmup.ts";
import { createRunner } from "../queue/runner.ts";
import { settlementOf } from "../queue/settle.ts";
import { createReactions } from "../sandbox/reactions.ts";
import { createSendingPause } from "../sending-pause/sending-pause.ts";
import type { Base } from "./base.ts";
import type { Delivering } from "./delivery.ts";
import type { Foundation } from "./foundation.ts";
import type { Outbound } from "./outbound.ts";
import type { Tokens } from "./tokens.ts";

export function createQueue(
  { config, log, clock, store, startedAt }: Base,
  { boot, owner, pools }: Foundation,
  { shaping, delivery }: Delivering,
  { reactions, visits, unsubscribes }: Tokens,
  { queuePauses, destinations, settling }: Outbound,
) {
  const sendingPause = createSendingPause({ store, clock, log: log.component("sending-pause") });
  const queue = createRunner({
    store,
    destinationOf: destinations.destinationOf,
    suppressedSince: destinations.suppressedSince(store),
    settlementOf(job, outcome, now, group, warmup) {
      const settlement = settlementOf(settling, job, outcome, now, group, warmup);
      activity.settled(job.message.test, settlement);
      return settlement;
    },
    onDelivered: createReactions({ ...reactions, visits, unsubscribes }),
    isPaused: sendingPause.isPaused,
    isQueuePaused: queuePauses.isPaused,
    onNoSource: destinations.onNoSource,
    shaping,
    warmups: pools.warmups,
    capWaitUntil: (queuedAt, now) => capWaitUntil(queuedAt, config.outbound.maxAgeMs, now),
    random: Math.random,
    owner,
    leaseValid: boot.leaseValid,
    clock,
    log: log.component("queue"),
  });
  const activity = createActivity({
    store,
    clock,
    startedAt,
    egress: queue.egressNow,
    queue: queue.counts,
    connections: delivery.openConnections,
  });
  return { sendingPause, queue, activity };
}

// The way out of a message: submission, the queue, what it routes and signs, delivery, and what their parts report to each
// other. One list of steps.
import { readShapingFile } from "../config.ts";
import { endAttemptsAtStop } from "../outbound/end-attempts.ts";
import { createShapingRules } from "../queue/shaping-rules.ts";
import { createSubmission } from "../submission/submit.ts";
import type { Base } from "./base.ts";
import { createDelivering } from "./delivery.ts";
import type { Foundation } from "./foundation.ts";
import { createOutbound } from "./outbound.ts";
import { createQueue } from "./queue.ts";
import { createTokens } from "./tokens.ts";

export type Sending = Awaited<ReturnType<typeof createSending>>;

export async function createSending(base: Base, foundation: Foundation) {
  const { config, log, clock, mint, store } = base;
  const { pools, domains } = foundation;
  const delivering = await createDelivering(base, foundation);
  const tokens = await createTokens(base, foundation);
  const outbound = createOutbound(base, foundation, delivering, tokens);
  const queued = createQueue(base, foundation, delivering, tokens, outbound);
  const { shaping, delivery } = delivering;
  const { queuePauses } = outbound;
  const { queue, sendingPause } = queued;
  const shapingRules = createShapingRules({
    store,
    shaping,
    limiters: queue.limiters,
    connections: delivery.connections,
    mxGroupOf: delivery.groupOf,
    onChange: queue.onShapingChanged,
    readFile: () =>
      config.outbound.shapingFile === null ? null : readShapingFile(config.outbound.shapingFile),
    log: log.component("shaping"),
  });
  pools.onChange(() => {
    delivery.reconsider();
    queue.onSourcesChanged();
  });
  queuePauses.onChange(queue.onPausesChanged);
  sendingPause.onReleased(queue.note);
  const runner = endAttemptsAtStop(queue, delivery, clock);
  const submission = createSubmission({
    store,
    domains,
    pools,
    runner,
    config,
    tokens: tokens.messageTokens,
    clock,
    mint,
  });
  return { ...delivering, ...tokens, ...queued, queuePauses, shapingRules, runner, submission };
}

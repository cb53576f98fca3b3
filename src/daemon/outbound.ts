// The way out of the queue: where mail goes and from which address, how it is signed, and what an outcome changes.
import { createDestinations } from "../outbound/destinations.ts";
import { createSignedMessages } from "../outbound/signed-message.ts";
import { createQueuePauses } from "../queue/queue-pauses.ts";
import type { SettleDeps } from "../queue/settle.ts";
import { unsubscribeMailtos } from "../tracking/unsubscribes.ts";
import type { Base } from "./base.ts";
import type { Delivering } from "./delivery.ts";
import type { Foundation } from "./foundation.ts";
import type { Tokens } from "./tokens.ts";

export type Outbound = ReturnType<typeof createOutbound>;

export function createOutbound(
  { config, log, clock, mint, store }: Base,
  { owner, recorder, signHeader, pools }: Foundation,
  { shaping, delivery }: Delivering,
  { verpSecret, trackingTokens }: Tokens,
) {
  const messages = createSignedMessages({
    store,
    signHeader,
    clock,
    sign: config.outbound.sign,
    tokens: trackingTokens,
    unsubscribeMailto: unsubscribeMailtos(
      verpSecret,
      config.inbound.listen.length > 0 ? config.hostname : null,
    ),
    publicUrl: config.publicUrl,
    log: log.component("outbound"),
  });
  const queuePauses = createQueuePauses({ store, clock });
  const destinations = createDestinations({
    delivery,
    shaping,
    pools,
    unpaused: queuePauses.usable,
    messages,
    verpSecret,
    clock,
  });
  const settling: SettleDeps = {
    recorder,
    mint,
    schedule: { retryMs: config.outbound.retryMs, maxAgeMs: config.outbound.maxAgeMs },
    owner,
    random: Math.random,
    isCaught: destinations.isCaught,
  };
  return { queuePauses, destinations, settling };
}

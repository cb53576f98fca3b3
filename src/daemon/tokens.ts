// What sent mail carries so that something comes back by it: signed return paths, tokens of messages and of tracked links; and
// what tracked links lead to.
import { createMessageTokens } from "../mail/message-token.ts";
import { openTrackingKeys } from "../tracking/keys.ts";
import { createTrackingTokens } from "../tracking/tokens.ts";
import { createUnsubscribes } from "../tracking/unsubscribes.ts";
import { createVisits } from "../tracking/visits.ts";
import type { Base } from "./base.ts";
import type { Foundation } from "./foundation.ts";

export type Tokens = Awaited<ReturnType<typeof createTokens>>;

export async function createTokens({ log, clock, store }: Base, { recorder }: Foundation) {
  const verpSecret = await store.secret("verp");
  const trackingKeys = await openTrackingKeys({ store, clock });
  const trackingTokens = createTrackingTokens(trackingKeys);
  const messageTokens = createMessageTokens(verpSecret);
  const reactions = { store, recorder, clock, log: log.component("tracking") };
  const visits = createVisits(reactions);
  const unsubscribes = createUnsubscribes(reactions);
  return { verpSecret, trackingKeys, trackingTokens, messageTokens, reactions, visits, unsubscribes };
}

// The SMTP listeners: the relay, which takes mail, and the inbound one with what comes back by mail.
import { createFeedback } from "../feedback/feedback.ts";
import { createInbound } from "../relay/inbound.ts";
import { createRelay } from "../relay/relay.ts";
import type { Base } from "./base.ts";
import type { Foundation } from "./foundation.ts";
import type { Reporting } from "./reporting.ts";
import type { Sending } from "./sending.ts";

export function createSmtp(
  { config, log, clock, store }: Base,
  { resolver, certificates, maintenance, recorder, parsing, access }: Foundation,
  { verpSecret, messageTokens, unsubscribes, submission }: Sending,
  { notices }: Reporting,
) {
  const relay =
    certificates === null
      ? null
      : createRelay({
          config,
          certificates,
          access,
          submission,
          store,
          maintenance,
          clock,
          log: log.component("relay"),
        });
  const feedback = createFeedback({
    store,
    recorder,
    verpSecret,
    tokens: messageTokens,
    unsubscribes,
    resolver,
    readReturned: parsing.readReturned,
    readNotice: parsing.readNotice,
    config,
    notices,
    clock,
    log: log.component("feedback"),
  });
  const inbound = createInbound({
    config,
    certificates,
    feedback,
    store,
    maintenance,
    clock,
    log: log.component("inbound"),
  });
  return { relay, inbound };
}

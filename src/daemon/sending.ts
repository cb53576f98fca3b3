// The way out of a message: submission, the queue, what it routes and signs, delivery, and what their parts report to each
// other. One list of steps.
import { createActivity } from "../activity/activity.ts";
import { readShapingFile } from "../config.ts";
import { localAddresses, portsOf } from "../delivery/local-addresses.ts";
import { createDelivery } from "../delivery/smtp-delivery.ts";
import { createHttps } from "../https.ts";
import { createMessageTokens } from "../mail/message-token.ts";
import { operationsAccount } from "../model/account.ts";
import { createFetch } from "../mta-sts/fetch.ts";
import { createMtaSts } from "../mta-sts/policies.ts";
import { createDestinations } from "../outbound/destinations.ts";
import { endAttemptsAtStop } from "../outbound/end-attempts.ts";
import { createSignedMessages } from "../outbound/signed-message.ts";
import { createQueuePauses } from "../queue/queue-pauses.ts";
import { capWaitUntil } from "../pools/warmup.ts";
import { createRunner } from "../queue/runner.ts";
import { settlementOf } from "../queue/settle.ts";
import { createShaping } from "../queue/shaping.ts";
import { createShapingRules } from "../queue/shaping-rules.ts";
import { createReactions } from "../sandbox/reactions.ts";
import { createSendingPause } from "../sending-pause/sending-pause.ts";
import { createSubmission } from "../submission/submit.ts";
import { createTlsResults, tlsReportTest } from "../tls-reports/results.ts";
import { openTrackingKeys } from "../tracking/keys.ts";
import { createTrackingTokens } from "../tracking/tokens.ts";
import { createUnsubscribes, unsubscribeMailtos } from "../tracking/unsubscribes.ts";
import { createVisits } from "../tracking/visits.ts";
import type { Base } from "./base.ts";
import type { Foundation } from "./foundation.ts";

export type Sending = Awaited<ReturnType<typeof createSending>>;

export async function createSending(
  { config, log, clock, mint, store, startedAt }: Base,
  { boot, owner, resolver, secureContext, recorder, signHeader, pools, domains }: Foundation,
) {
  const shapingFile = readShapingFile(config.outbound.shapingFile);
  if ("faults" in shapingFile) throw new Error(shapingFile.faults.join("\n"));
  const shaping = createShaping(shapingFile.content, await store.shapingRules());
  const mailListeners = [...config.inbound.listen, ...config.relay.starttls, ...config.relay.implicitTls];
  const { allowNetworks } = config.outbound;
  const https = createHttps({ resolver, allowNetworks, secureContext, clock });
  const operations = await store.accountByName(operationsAccount);
  // TLS reports are about no mail of our own: else the report to a domain would be about the report before it.
  const isOwn = (account: number | string): boolean => account === operations?.key;
  const tlsResults = createTlsResults({ store, clock, log: log.component("tls-reports") });
  const mtaSts = createMtaSts({
    store,
    resolver,
    fetch: createFetch(https),
    onFailed: (result, owner) => void (isOwn(owner) || tlsResults.note(result)),
    clock,
    log: log.component("mta-sts"),
  });
  const delivery = createDelivery({
    resolver,
    outbound: config.outbound,
    hostname: config.hostname,
    isOurs: localAddresses(mailListeners),
    mailPorts: portsOf(mailListeners),
    mtaStsOf: mtaSts.policyOf,
    isTlsReport: tlsReportTest(operations?.key ?? null, config.operations.email),
    isCounted: ({ message }) => !isOwn(message.accountKey),
    onTls: tlsResults.note,
    secureContext,
    clock,
    log: log.component("delivery"),
    random: Math.random,
    limitsOf: shaping.limits,
    tlsFor: shaping.tlsFor,
    mayUse: pools.mayUse,
    onUnusable: pools.lookSoon,
  });
  const verpSecret = await store.secret("verp");
  const trackingKeys = await openTrackingKeys({ store, clock });
  const trackingTokens = createTrackingTokens(trackingKeys);
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
  const tokens = createMessageTokens(verpSecret);
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
  const schedule = { retryMs: config.outbound.retryMs, maxAgeMs: config.outbound.maxAgeMs };
  const settleDeps = {
    recorder,
    mint,
    schedule,
    owner,
    random: Math.random,
    isCaught: destinations.isCaught,
  };
  const reactions = { store, recorder, clock, log: log.component("tracking") };
  const visits = createVisits(reactions);
  const unsubscribes = createUnsubscribes(reactions);
  const sendingPause = createSendingPause({ store, clock, log: log.component("sending-pause") });
  const queue = createRunner({
    store,
    destinationOf: destinations.destinationOf,
    suppressedSince: destinations.suppressedSince(store),
    settlementOf(job, outcome, now, group, warmup) {
      const settlement = settlementOf(settleDeps, job, outcome, now, group, warmup);
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
  const submission = createSubmission({ store, domains, pools, runner, config, tokens, clock, mint });
  return {
    shaping,
    https,
    tlsResults,
    mtaSts,
    delivery,
    verpSecret,
    trackingKeys,
    trackingTokens,
    tokens,
    queuePauses,
    visits,
    unsubscribes,
    sendingPause,
    queue,
    activity,
    shapingRules,
    runner,
    submission,
  };
}

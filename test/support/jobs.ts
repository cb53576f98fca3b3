// Jobs and outcomes for tests of the rooms that pass them along.
import { canonicalAddress, parseAddress } from "../../src/mail/address.ts";
import type { AttemptTrace, Outcome } from "../../src/mail/outcome.ts";
import type { Job, QueuedMessage } from "../../src/model/queued-recipient.ts";

export function makeMessage(over: Partial<QueuedMessage> = {}): QueuedMessage {
  return {
    key: 1,
    id: "msg_01jdkq4y8z0000000000000001",
    accountKey: 1,
    test: false,
    from: "shop@ok.test",
    signingDomain: "ok.test",
    returnPathDomain: "bounce.ok.test",
    subject: "Hello",
    tagsJson: "[]",
    metadataJson: "{}",
    messageIdHeader: "<1@mail.svc.test>",
    ipPool: "default",
    content: { kind: "inline", id: 1, sizeBytes: 100 },
    headerLength: 50,
    bodyHash: new Uint8Array(32),
    eightBit: false,
    smtpUtf8: false,
    tracking: null,
    queuedAt: 0,
    ...over,
  };
}

/** As acceptance makes it of the address. */
function canonicalOf(rcptTo: string): string {
  const address = parseAddress(rcptTo);
  return address.ok ? canonicalAddress(address.value) : rcptTo;
}

export function makeJob(key: number, over: Partial<Job> = {}): Job {
  const domain = over.domain ?? "x.test";
  return {
    key,
    message: makeMessage({ key }),
    rcptTo: `r${key}@${domain}`,
    canonical: canonicalOf(over.rcptTo ?? `r${key}@${domain}`),
    to: `r${key}@${domain}`,
    domain,
    queueName: `1.default/${domain}`,
    attempt: 1,
    lastEventAt: 0,
    ...over,
  };
}

export function makeTrace(over: Partial<AttemptTrace> = {}): AttemptTrace {
  return {
    startedAt: 0,
    endedAt: 0,
    sendingIp: "192.0.2.1",
    mx: [{ host: "mx.x.test", preference: 10 }],
    host: "mx.x.test",
    address: "192.0.2.25",
    tls: null,
    dialogue: [],
    ambiguous: false,
    ...over,
  };
}

export const deliveredOutcome = (): Outcome => ({
  kind: "delivered",
  reply: { code: 250, status: "2.0.0", text: "250 2.0.0 Ok" },
  trace: makeTrace(),
});

export const deferredOutcome = (over: Partial<Extract<Outcome, { kind: "deferred" }>> = {}): Outcome => ({
  kind: "deferred",
  reply: { code: 451, status: "4.3.0", text: "451 4.3.0 later" },
  classification: "receiver_error",
  retryAfterMs: null,
  trace: makeTrace(),
  ...over,
});

export const bouncedOutcome = (over: Partial<Extract<Outcome, { kind: "bounced" }>> = {}): Outcome => ({
  kind: "bounced",
  source: "smtp",
  reply: { code: 550, status: "5.1.1", text: "550 5.1.1 no such user" },
  classification: "invalid_recipient",
  trace: makeTrace(),
  ...over,
});

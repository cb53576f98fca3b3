// A job and an attempt's trace for tests of what is made of them.
import type { AttemptTrace } from "../../src/mail/outcome.ts";
import type { Job, QueuedMessage } from "../../src/model/queued-recipient.ts";

export const start = Date.parse("2026-11-27T09:00:00.000Z");

export function jobOf(change: Partial<Job> = {}, message: Partial<QueuedMessage> = {}): Job {
  return {
    key: 11,
    message: {
      key: 7,
      id: "msg_01jdq0000000000000000000aa",
      accountKey: 3,
      test: false,
      from: "info@shop.example",
      signingDomain: "shop.example",
      returnPathDomain: "bounces.shop.example",
      subject: 'Grüße "an" \u2028 alle',
      tagsJson: '["order","eu"]',
      metadataJson: '{"order":"4711"}',
      messageIdHeader: "<1@shop.example>",
      ipPool: "default",
      content: { kind: "inline", id: 1, sizeBytes: 100 },
      headerLength: 50,
      bodyHash: new Uint8Array(32),
      eightBit: false,
      smtpUtf8: false,
      tracking: null,
      queuedAt: start - 2500,
      ...message,
    },
    rcptTo: "Jane.Doe@xn--bcher-kva.example",
    canonical: "jane.doe@xn--bcher-kva.example",
    to: "Jane.Doe@bücher.example",
    domain: "xn--bcher-kva.example",
    queueName: "xn--bcher-kva.example",
    attempt: 2,
    lastEventAt: 0,
    ...change,
  };
}

export function traceOf(change: Partial<AttemptTrace> = {}): AttemptTrace {
  return {
    startedAt: start - 400,
    endedAt: start - 100,
    sendingIp: "192.0.2.10",
    mx: [{ host: "mx.bücher.example", preference: 10 }],
    host: "mx.xn--bcher-kva.example",
    address: "198.51.100.25",
    tls: { version: "TLSv1.3", cipher: "TLS_AES_256_GCM_SHA384", verified: true, policy: "none" },
    dialogue: [],
    ambiguous: false,
    ...change,
  };
}

// The made-up message behind the events of a webhook test, and what several types' samples share: names and addresses that
// documentation may use (RFC 2606, RFC 5737), so that a receiver that acts on one by mistake does no harm.
import { defaultPool } from "../model/ip-pool.ts";
import type { Job } from "../model/queued-recipient.ts";

/** A test message from info@shop.example to recipient@example.net, queued 1.2 s before `nowMs`. */
export function sampleJob(accountKey: number, messageId: string, nowMs: number): Job {
  return {
    key: 0,
    message: {
      key: 0,
      id: messageId,
      accountKey,
      test: true,
      from: "info@shop.example",
      signingDomain: "shop.example",
      returnPathDomain: "bounces.shop.example",
      subject: "Webhook test",
      tagsJson: '["webhook-test"]',
      metadataJson: "{}",
      messageIdHeader: `<${messageId}@shop.example>`,
      ipPool: defaultPool,
      content: { kind: "inline", id: 0, sizeBytes: 0 },
      headerLength: 0,
      bodyHash: new Uint8Array(32),
      eightBit: false,
      smtpUtf8: false,
      tracking: null,
      queuedAt: nowMs - 1200,
    },
    rcptTo: "recipient@example.net",
    canonical: "recipient@example.net",
    to: "recipient@example.net",
    domain: "example.net",
    queueName: "example.net",
    attempt: 1,
    lastEventAt: 0,
  };
}

export const sampleSession = { receiving_mta: "mx1.example.net", sending_ip: "192.0.2.10" };

export const sampleTls = {
  version: "TLSv1.3",
  cipher: "TLS_AES_256_GCM_SHA384",
  verified: true,
  policy: "none",
} as const;

export const sampleVisit = {
  ip_address: "198.51.100.7",
  user_agent: "Mozilla/5.0 (webhook test)",
  first: true,
  machine: false,
};

export const sampleListing = {
  ip_address: sampleSession.sending_ip,
  blacklist_name: "Example DNSBL",
  blacklist_zone: "dnsbl.example",
};

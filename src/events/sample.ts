// The made-up message behind the events of a webhook test: names and addresses that documentation may use
// (RFC 2606, RFC 5737), so that a receiver that acts on one by mistake harms nobody. record.ts writes the events.
import { hourMs, isoTime } from "../clock.ts";
import type { AttemptTrace, OutcomeReply } from "../mail/outcome.ts";
import { defaultPool } from "../model/ip-pool.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { EventType } from "./catalog.ts";

export const sampleReplies = {
  delivered: { code: 250, status: "2.0.0", text: "2.0.0 Ok: queued as 4XyZ12abcd" },
  deferred: { code: 450, status: "4.7.1", text: "4.7.1 Greylisted, please try again later" },
  bounced: {
    code: 550,
    status: "5.1.1",
    text: "5.1.1 The email account that you tried to reach does not exist",
  },
} satisfies Record<string, OutcomeReply>;

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
      queuedAt: nowMs - 1200,
    },
    rcptTo: "recipient@example.net",
    canonical: "recipient@example.net",
    to: "recipient@example.net",
    domain: "example.net",
    lane: "example.net",
    attempt: 1,
    lastEventAt: 0,
    leaseUntil: nowMs,
  };
}

export function sampleTrace(nowMs: number): AttemptTrace {
  return {
    startedAt: nowMs - 800,
    endedAt: nowMs,
    sendingIp: "192.0.2.10",
    mx: [{ host: "mx1.example.net", preference: 10 }],
    host: "mx1.example.net",
    address: "198.51.100.25",
    tls: { version: "TLSv1.3", cipher: "TLS_AES_256_GCM_SHA384", verified: true, policy: "none" },
    dialogue: [],
    ambiguous: false,
  };
}

type WithoutSmtp = Exclude<EventType, "message.delivered" | "message.deferred" | "message.bounced">;

/** The type's own fields, as the inside of a JSON object. */
export function sampleData(type: WithoutSmtp, nowMs: number): string {
  const at = isoTime(nowMs);
  const visit = {
    ip_address: "198.51.100.7",
    user_agent: "Mozilla/5.0 (webhook test)",
    first: true,
    machine: false,
  };
  const listing = {
    ip_address: "192.0.2.10",
    blacklist_name: "Example DNSBL",
    blacklist_zone: "dnsbl.example",
  };
  const fields: Record<WithoutSmtp, object> = {
    "message.opened": visit,
    "message.clicked": { url: "https://shop.example/", ...visit },
    "message.complained": {
      complaint_source: "generic_arf",
      complaint_type: "abuse",
      feedback_type: "abuse",
      reported_at: at,
      sending_ip: "192.0.2.10",
    },
    "message.unsubscribed": { method: "one_click" },
    "ip.blacklisted": {
      ...listing,
      listing_reason: "A webhook test",
      detected_at: at,
      affected_pools: [defaultPool],
      return_code: "127.0.0.2",
      removal_url: "https://dnsbl.example/remove",
      test: true,
    },
    "ip.delisted": {
      ...listing,
      listed_at: isoTime(nowMs - hourMs),
      delisted_at: at,
      duration_seconds: 3600,
      affected_pools: [defaultPool],
      test: true,
    },
  };
  return JSON.stringify(fields[type]).slice(1, -1);
}

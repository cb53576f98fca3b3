// Values for store tests: a message, a settlement, an event, an endpoint, with what a test cares about replaced.
import { systemClock } from "../../src/clock.ts";
import { isEventType } from "../../src/events/catalog.ts";
import { createRecorder } from "../../src/events/record.ts";
import { createIdMint } from "../../src/ids.ts";
import type { NewMessage } from "../../src/model/acceptance.ts";
import type { NewEvent } from "../../src/model/event.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import type { NewRecipient } from "../../src/model/recipient.ts";
import type { Settlement } from "../../src/model/settlement.ts";
import type { NewSuppression } from "../../src/model/suppression.ts";
import { everyEvent, type Endpoint } from "../../src/model/webhook.ts";
import type { Store } from "../../src/store/store.ts";

export const mint = createIdMint();
export const owner = "boot-1";
export const minute = 60_000;

/** A boot whose leases last for good. */
export function beginBoot(store: Pick<Store, "beginBoot">, id: string, node = "n"): Promise<void> {
  return store.beginBoot({ id, node, leaseUntil: Number.MAX_SAFE_INTEGER });
}

export interface MessageWishes {
  accountKey: number;
  to?: string[];
  at: number;
  lease?: boolean;
  sendAt?: number | null;
  subject?: string;
  tags?: string[];
  text?: string;
  source?: "api" | "smtp";
  queueName?: string;
  idempotency?: NewMessage["idempotency"];
  content?: NewMessage["content"];
  maxQueue?: number;
  quotas?: NewMessage["quotas"];
  share?: NewMessage["share"];
}

export function newMessage(wishes: MessageWishes): NewMessage {
  const { at, sendAt = null } = wishes;
  return {
    message: {
      id: mint("msg", at),
      accountKey: wishes.accountKey,
      test: false,
      from: "info@shop.example",
      fromName: "Shop",
      source: wishes.source ?? "api",
      apiKey: null,
      signingDomain: "shop.example",
      returnPathDomain: "rp.shop.example",
      subject: wishes.subject ?? "Your order",
      tagsJson: JSON.stringify(wishes.tags ?? ["orders"]),
      metadataJson: '{"order":"17"}',
      messageIdHeader: "<1@shop.example>",
      ipPool: "default",
      headerLength: 42,
      bodyHash: new Uint8Array(32).fill(7),
      eightBit: true,
      smtpUtf8: false,
      tracking: null,
      queuedAt: Math.max(at, sendAt ?? 0),
    },
    content: wishes.content ?? {
      kind: "inline",
      bytes: Buffer.from(wishes.text ?? "Subject: x\r\n\r\nHello\r\n"),
    },
    createdAt: at,
    sendAt,
    recipients: (wishes.to ?? ["ann@a.test"]).map((to) => newRecipient(to, wishes)),
    idempotency: wishes.idempotency ?? null,
    quotas: wishes.quotas ?? [],
    maxQueue: wishes.maxQueue ?? 0,
    share: wishes.share ?? null,
  };
}

function newRecipient(to: string, wishes: MessageWishes): NewRecipient {
  const domain = to.slice(to.indexOf("@") + 1).toLowerCase();
  return {
    type: "to",
    to,
    rcptTo: to,
    canonical: to.toLowerCase(),
    domain,
    queueName: wishes.queueName ?? domain,
    leaseOwner: wishes.lease ? owner : null,
  };
}

export function newEvent(wishes: Partial<NewEvent> & { accountKey: number; receivedAt: number }): NewEvent {
  const id = wishes.id ?? mint("evt", wishes.receivedAt);
  const type = wishes.type ?? "message.delivered";
  return {
    id,
    type,
    typeBit: 1,
    occurredAt: wishes.receivedAt,
    messageKey: null,
    recipient: null,
    counters: 0,
    facts: "",
    body: eventBody(type, id, wishes.receivedAt),
    ...wishes,
  };
}

/** A body as events/record.ts writes it, tagged `orders` where it is a message's. */
function eventBody(type: string, id: string, at: number): string {
  if (!isEventType(type)) throw new Error(`${type} is no type of event`);
  const recorder = createRecorder({
    clock: { ...systemClock, now: () => at },
    mint: (prefix, now) => (prefix === "evt" ? id : mint(prefix, now)),
  });
  const { body } = recorder.test({ accountKey: 1, eventMask: 0 } as Endpoint, type);
  return body.replace('"tags":["webhook-test"]', '"tags":["orders"]').replace(',"test":true', "");
}

export function settlementOf(job: Job, at: number, wishes: Partial<Settlement> = {}): Settlement {
  const outcome = wishes.outcome ?? "delivered";
  const { accountKey, key: messageKey } = job.message;
  const bit = { delivered: 1, deferred: 2, bounced: 4 }[outcome];
  return {
    recipientKey: job.key,
    messageKey,
    accountKey,
    owner,
    outcome,
    nextAttemptAt: outcome === "deferred" ? at + minute : null,
    at,
    attempt: job.attempt,
    record: {
      id: mint("att", at),
      startedAt: at - 20,
      endedAt: at,
      sendingIp: "192.0.2.7",
      mx: [{ host: "mx.a.test", preference: 10 }],
      host: "mx.a.test",
      address: "198.51.100.1",
      tls: { version: "TLSv1.3", cipher: "TLS_AES_256_GCM_SHA384", verified: true, policy: "none" },
      ambiguous: false,
      dialogue: [{ at_ms: 3, from: "them", text: "220 mx.a.test" }],
      decidedBy: outcome === "deferred" ? "schedule" : "final",
    },
    provider: "mx.a.test",
    smtpCode: outcome === "delivered" ? 250 : 550,
    smtpStatus: outcome === "delivered" ? "2.0.0" : "5.1.1",
    smtpResponse: "as told",
    event: newEvent({
      accountKey,
      messageKey,
      recipient: job.to.toLowerCase(),
      type: `message.${outcome}`,
      typeBit: bit,
      receivedAt: at,
    }),
    suppression: null,
    nxdomainRecheck: null,
    warmup: null,
    catchInInbox: false,
    ...wishes,
  };
}

export function newSuppression(
  accountKey: number,
  email: string,
  wishes: Partial<NewSuppression> = {},
): NewSuppression {
  return {
    accountKey,
    canonical: email.toLowerCase(),
    email,
    reason: "manual",
    source: "api",
    description: null,
    messageId: null,
    eventId: null,
    smtpCode: null,
    smtpStatus: null,
    expiresAt: null,
    ...wishes,
  };
}

export function newEndpoint(
  accountKey: number,
  at: number,
  wishes: Partial<Endpoint> = {},
): Omit<Endpoint, "key"> {
  return {
    id: mint("whk", at),
    accountKey,
    url: "https://hooks.example/in",
    eventMask: everyEvent,
    description: null,
    active: true,
    secret: "s".repeat(64),
    previousSecret: null,
    previousSecretUntil: null,
    createdAt: at,
    updatedAt: at,
    lastSuccessAt: null,
    lastFailureAt: null,
    consecutiveFailures: 0,
    failingSince: null,
    format: "svc",
    ...wishes,
  };
}

/** How an attempt at a webhook went, where a test does not care. */
export const took = { durationMs: 5, error: null, responseBody: null };

export async function accept(store: Store, message: NewMessage): Promise<Job[]> {
  const result = await store.acceptMessage(message);
  if (result.kind !== "accepted") throw new Error(`not accepted: ${result.kind}`);
  return result.jobs;
}

export async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

export async function* inChunks(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

import { expect, test } from "vitest";
import { eventTypes } from "../../src/events/catalog.ts";
import type { Bounced, Deferred, Delivered } from "../../src/events/record.ts";
import { createRecorder } from "../../src/events/record.ts";
import { eventMask } from "../../src/events/subscriptions.ts";
import { createIdMint, isId } from "../../src/ids.ts";
import type { Classification } from "../../src/model/classification.ts";
import type { NewEvent } from "../../src/model/event.ts";
import type { Endpoint } from "../../src/model/webhook.ts";
import { ManualClock } from "../support/clock.ts";
import { jobOf, start, traceOf } from "./jobs.ts";

const clock = new ManualClock(start);
const recorder = createRecorder({ clock, mint: createIdMint() });

interface Envelope {
  event: string;
  event_id: string;
  occurred_at: string;
  received_at: string;
  data: Record<string, unknown>;
}
const read = (event: NewEvent): Envelope => JSON.parse(event.body) as Envelope;

const delivered = (code = 250, status: string | null = "2.0.0"): Delivered => ({
  kind: "delivered",
  reply: { code, status, text: "2.0.0 Ok: queued" },
  trace: traceOf(),
});
const deferred: Deferred = {
  kind: "deferred",
  reply: { code: 421, status: "4.4.1", text: "[local] no connection" },
  classification: "connection_failed",
  retryAfterMs: null,
  trace: traceOf({ host: null, sendingIp: null, tls: null }),
};
const bounced = (code: number, classification: Classification, text = "5.1.1 No such user"): Bounced => ({
  kind: "bounced",
  source: "smtp",
  reply: { code, status: "5.1.1", text },
  classification,
  trace: traceOf(),
});

test("delivered carries the fields of the reference, in its order", () => {
  const event = recorder.delivered(jobOf(), delivered());
  expect(event).toMatchObject({
    accountKey: 3,
    type: "message.delivered",
    typeBit: 1,
    occurredAt: start - 100,
    receivedAt: start,
    messageKey: 7,
    recipient: "jane.doe@xn--bcher-kva.example",
  });
  expect(isId("evt", event.id)).toBe(true);
  const envelope = read(event);
  expect(Object.keys(envelope)).toEqual(["event", "event_id", "occurred_at", "received_at", "data"]);
  expect(envelope).toMatchObject({
    event: "message.delivered",
    event_id: event.id,
    occurred_at: "2026-11-27T08:59:59.900Z",
    received_at: "2026-11-27T09:00:00.000Z",
  });
  expect(Object.entries(envelope.data)).toEqual([
    ["message_id", "msg_01jdq0000000000000000000aa"],
    ["to", "Jane.Doe@bücher.example"],
    ["from", "info@shop.example"],
    ["subject", 'Grüße "an" \u2028 alle'],
    ["tags", ["order", "eu"]],
    ["metadata", { order: "4711" }],
    ["smtp_code", "250"],
    ["smtp_status", "2.0.0"],
    ["smtp_response", "2.0.0 Ok: queued"],
    ["receiving_mta", "mx.xn--bcher-kva.example"],
    ["sending_ip", "192.0.2.10"],
    ["attempt", 2],
    ["delivery_time_ms", 2400],
    ["tls", { version: "TLSv1.3", cipher: "TLS_AES_256_GCM_SHA384", verified: true, policy: "none" }],
  ]);
});

test("deferred adds when it is tried again and why, and leaves null what no server said", () => {
  const { data } = read(recorder.deferred(jobOf(), deferred, start + 60_000));
  expect(data).toMatchObject({
    smtp_code: "421",
    smtp_status: "4.4.1",
    smtp_response: "[local] no connection",
    receiving_mta: null,
    sending_ip: null,
    tls: null,
    next_attempt_at: "2026-11-27T09:01:00.000Z",
    bounce_type: "soft",
    bounce_classification: "connection_failed",
    bounce_category: "technical",
  });
});

test("bounced has every field of the specification's table", () => {
  const { data } = read(recorder.bounced(jobOf(), bounced(550, "invalid_recipient"), { suppressed: true }));
  expect(Object.keys(data).slice(6)).toEqual([
    "bounce_type",
    "bounce_classification",
    "bounce_category",
    "smtp_code",
    "smtp_status",
    "smtp_response",
    "receiving_mta",
    "sending_ip",
    "attempt",
    "source",
    "suppressed",
  ]);
  expect(data).toMatchObject({
    bounce_type: "hard",
    bounce_category: "recipient",
    smtp_code: "550",
    source: "smtp",
    suppressed: true,
  });
});

test("temporary or permanent is the reply code's first digit", () => {
  const type = (code: number): unknown =>
    read(recorder.bounced(jobOf(), bounced(code, "unclassified"), { suppressed: false })).data["bounce_type"];
  expect([554, 452, 354].map(type)).toEqual(["hard", "soft", "undetermined"]);
});

test("an expiry is a soft bounce that keeps the last reply as it was given", () => {
  const { data } = read(recorder.expired(jobOf(), deferred));
  expect(data).toMatchObject({
    bounce_type: "soft",
    bounce_classification: "message_expired",
    bounce_category: "technical",
    smtp_code: "421",
    smtp_status: "4.4.1",
    source: "local",
    suppressed: false,
  });
  expect(read(recorder.expired(jobOf(), null)).data).toMatchObject({
    smtp_code: "451",
    smtp_status: "4.4.7",
    smtp_response: expect.stringMatching(/^\[local\] /),
  });
});

test("a receiver without enhanced codes is reported as X.0.0", () => {
  expect(read(recorder.delivered(jobOf(), delivered(250, null))).data["smtp_status"]).toBe("2.0.0");
  const bare = { ...bounced(550, "unclassified"), reply: { code: 550, status: null, text: "no" } };
  expect(read(recorder.bounced(jobOf(), bare, { suppressed: false })).data["smtp_status"]).toBe("5.0.0");
});

test("test is there for a test key only", () => {
  expect(read(recorder.delivered(jobOf(), delivered())).data).not.toHaveProperty("test");
  expect(read(recorder.delivered(jobOf({}, { test: true }), delivered())).data["test"]).toBe(true);
});

test("no event is earlier than the recipient's last one, nor recorded before it happened", () => {
  const event = recorder.delivered(jobOf({ lastEventAt: start + 5000 }), delivered());
  expect([event.occurredAt, event.receivedAt]).toEqual([start + 5000, start + 5000]);
  expect(read(event).received_at).toBe("2026-11-27T09:00:05.000Z");
});

test("what a receiver says stays inside its string", () => {
  const text = '550 "}},{"event":"message.delivered" \\ \u0000 \ud800 \r\n';
  const event = recorder.bounced(jobOf(), bounced(550, "unclassified", text), { suppressed: false });
  expect(read(event).data["smtp_response"]).toBe(text);
  expect(Buffer.from(event.body).toString()).toBe(event.body);
});

test.each(eventTypes)("a synthetic %s is marked as a test and tied to no message", (type) => {
  const event = recorder.test(endpointOf(eventTypes), type);
  expect(event).toMatchObject({ type, accountKey: 3, messageKey: null, recipient: null });
  expect(read(event)).toMatchObject({ event: type, event_id: event.id, data: { test: true } });
});

test("a test without a type is of the first type that the endpoint subscribes to", () => {
  expect(recorder.test(endpointOf(["message.complained", "ip.delisted"])).type).toBe("message.complained");
});

function endpointOf(types: typeof eventTypes): Endpoint {
  return {
    key: 1,
    id: "whk_1",
    accountKey: 3,
    url: "https://hooks.example/",
    eventMask: eventMask(types),
    description: null,
    active: true,
    secret: "x".repeat(64),
    previousSecret: null,
    previousSecretUntil: null,
    createdAt: 0,
    updatedAt: 0,
    lastSuccessAt: null,
    lastFailureAt: null,
    consecutiveFailures: 0,
    failingSince: null,
    format: "svc",
  };
}

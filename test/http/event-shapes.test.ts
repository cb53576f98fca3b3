// What events/record.ts writes by hand is what the description says of each event.
import { describe, expect, test } from "vitest";
import { eventTypes } from "../../src/events/catalog.ts";
import { createRecorder, type Deferred } from "../../src/events/record.ts";
import { envelopeSchema } from "../../src/events/envelope.ts";
import { sampleJob } from "../../src/events/sample.ts";
import { createIdMint } from "../../src/ids.ts";
import type { Complaint } from "../../src/mail/arf.ts";
import type { NewEvent } from "../../src/model/event.ts";
import { traceOf } from "../events/jobs.ts";
import { newEndpoint } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";

const clock = new ManualClock();
const mint = createIdMint();
const recorder = createRecorder({ clock, mint });
const now = clock.now();
const job = sampleJob(1, mint("msg", now), now);
const trace = traceOf();
const clear = { ...trace, tls: null, sendingIp: null, host: null };
const reply = { code: 421, status: null, text: "[local] no connection" };
const deferral: Deferred = {
  kind: "deferred",
  reply,
  classification: "connection_failed",
  retryAfterMs: null,
  trace: clear,
};
const failure = { recipients: [], code: null, status: null, text: "gone", mta: null, reportedAt: null };
const complaint: Complaint = {
  feedbackType: "abuse",
  type: "abuse",
  source: null,
  recipients: [],
  reportedAt: null,
  sendingIp: null,
};
const nobody = { receivingMta: null, sendingIp: null, provider: null };
const endpoint = { ...newEndpoint(1, now), key: 1 };

const written: [string, NewEvent][] = [
  ...eventTypes.map((type): [string, NewEvent] => [`a test of ${type}`, recorder.test(endpoint, type)]),
  [
    "a delivery in clear",
    recorder.delivered(job, {
      kind: "delivered",
      reply: { code: 250, status: "2.0.0", text: "2.0.0 Ok" },
      trace: clear,
    }),
  ],
  ["a deferral without a reply", recorder.deferred(job, deferral, now + 60_000)],
  [
    "a bounce of our own",
    recorder.bounced(
      job,
      {
        kind: "bounced",
        source: "local",
        reply: { ...reply, code: 550 },
        classification: "routing_error",
        trace: clear,
      },
      { suppressed: true },
    ),
  ],
  ["an expiry after a try", recorder.expired(job, deferral)],
  ["an expiry without a try", recorder.expired(job, null)],
  ["a report that says little", recorder.reported(job, failure, nobody, { suppressed: false })],
  [
    "a report that says all",
    recorder.reported(
      job,
      { ...failure, code: 550, status: "5.1.1", mta: "mx.a.test", reportedAt: now },
      { receivingMta: "mx.a.test", sendingIp: "2001:db8::1", provider: null },
      { suppressed: true },
    ),
  ],
  ["a complaint", recorder.complained(job, complaint, nobody, "generic_arf", { confirmed: true })],
];

describe("holds to its shape:", () => {
  test.each(written)("%s", (_, { type, body }) => {
    const shape = envelopeSchema(eventTypes.find((known) => known === type) ?? "ip.delisted");
    expect(shape.safeParse(JSON.parse(body)).error?.issues).toBeUndefined();
  });
});

test("a field that the description does not have is seen", () => {
  const { body } = recorder.test(endpoint, "message.opened");
  const event = JSON.parse(body) as { data: object };
  const more = { ...event, data: { ...event.data, device: "phone" } };
  expect(envelopeSchema("message.opened").safeParse(more).success).toBe(false);
});

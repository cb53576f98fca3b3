// What each outcome changes: state, next attempt, event, suppression, inbox.
import { describe, expect, test } from "vitest";
import { eventCatalog } from "../../src/events/catalog.ts";
import type { EventEntry } from "../../src/events/entry.ts";
import { createRecorder } from "../../src/events/record.ts";
import { createIdMint } from "../../src/ids.ts";
import type { Outcome } from "../../src/mail/outcome.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import { settlementOf, type SettleDeps } from "../../src/queue/settle.ts";
import { ManualClock } from "../support/clock.ts";
import {
  bouncedOutcome,
  deferredOutcome,
  deliveredOutcome,
  makeJob,
  makeMessage,
  makeTrace,
} from "../support/jobs.ts";

const clock = new ManualClock();
const now = clock.now();
const hour = 3_600_000;
const mint = createIdMint();
const message = makeMessage({ queuedAt: now - 1000, accountKey: 3, key: 8 });
const jobOf = (over: Partial<Job> = {}): Job => makeJob(4, { message, ...over });
const trace = makeTrace({ startedAt: now - 200, endedAt: now });

function settle(job: Job, outcome: Outcome, over: Partial<SettleDeps> = {}, group = "provider.test") {
  const deps: SettleDeps = {
    recorder: createRecorder({ clock, mint }),
    mint,
    schedule: { retryMs: [60_000, 300_000], maxAgeMs: 48 * hour },
    owner: "boot",
    random: () => 0,
    isCaught: () => false,
    ...over,
  };
  const settlement = settlementOf(deps, job, outcome, now, group);
  const body = JSON.parse(settlement.event.body) as { event: string; data: Record<string, unknown> };
  return { settlement, event: body.event, data: body.data };
}

test("every settlement says whose it is and which attempt it ends", () => {
  for (const outcome of [deliveredOutcome(), deferredOutcome(), bouncedOutcome()]) {
    const { settlement } = settle(jobOf({ attempt: 3 }), outcome);
    expect(settlement).toMatchObject({
      recipientKey: 4,
      messageKey: 8,
      accountKey: 3,
      owner: "boot",
      attempt: 3,
      smtpCode: outcome.reply.code,
      smtpStatus: outcome.reply.status,
      smtpResponse: outcome.reply.text,
    });
    expect(settlement.at).toBe(settlement.event.occurredAt);
  }
});

test("a recipient comes into the state that the catalogue has of the event", () => {
  for (const outcome of [deliveredOutcome(), deferredOutcome(), bouncedOutcome()]) {
    const { settlement, event } = settle(jobOf(), outcome);
    const entry = Object.entries<EventEntry>(eventCatalog).find(([type]) => type === event)?.[1];
    expect(entry).toMatchObject({ about: "recipient", state: settlement.outcome });
  }
});

test("what is decided here counts for no provider", () => {
  const bounced = bouncedOutcome({ source: "local", classification: "invalid_domain" });
  expect(settle(jobOf({}), bounced).settlement.provider).toBe("provider.test");
  const { settlement } = settle(jobOf({}), bounced, {}, "local");
  expect([settlement.provider, settlement.event.facts]).toEqual([
    null,
    expect.not.stringContaining("\nlocal\n"),
  ]);
});

test("mail to a domain with limits of its own counts for the provider of its hosts", () => {
  expect(settle(jobOf(), deliveredOutcome(), {}, "own.test/google").settlement.provider).toBe("google");
});

test("the attempt is kept as it went", () => {
  const tls = { version: "TLSv1.3", cipher: "x", verified: true, policy: "none" } as const;
  const dialogue = [{ at_ms: 1, from: "us", text: "EHLO" } as const];
  const { settlement } = settle(jobOf(), {
    ...deliveredOutcome(),
    trace: { ...trace, tls, dialogue, ambiguous: true },
  });
  const { id, ...record } = settlement.record ?? { id: "" };
  expect(id).toMatch(/^att_/);
  expect(record).toEqual({ ...trace, tls, dialogue, ambiguous: true, decidedBy: "final" });
});

describe("delivered", () => {
  test("is final", () => {
    const { settlement, event, data } = settle(jobOf(), { ...deliveredOutcome(), trace });
    expect(settlement).toMatchObject({
      outcome: "delivered",
      nextAttemptAt: null,
      suppression: null,
      catchInInbox: false,
      at: now,
      record: { decidedBy: "final" },
    });
    expect(event).toBe("message.delivered");
    expect(data).toMatchObject({ smtp_code: "250", attempt: 1, delivery_time_ms: 1000, to: "r4@x.test" });
  });

  test("goes to the inbox where the mail is caught", () => {
    const caught = { isCaught: () => true };
    expect(settle(jobOf(), deliveredOutcome(), caught).settlement.catchInInbox).toBe(true);
    expect(settle(jobOf(), deferredOutcome(), caught).settlement.catchInInbox).toBe(false);
    expect(settle(jobOf(), bouncedOutcome(), caught).settlement.catchInInbox).toBe(false);
  });
});

describe("deferred", () => {
  test("is tried again by the schedule, with its spread", () => {
    const { settlement, event, data } = settle(jobOf({ attempt: 2 }), deferredOutcome(), {
      random: () => 0.5,
    });
    const next = now + 330_000;
    expect(settlement).toMatchObject({
      outcome: "deferred",
      nextAttemptAt: next,
      suppression: null,
      record: { decidedBy: "schedule" },
    });
    expect(event).toBe("message.deferred");
    expect(data).toMatchObject({
      next_attempt_at: new Date(next).toISOString(),
      bounce_type: "soft",
      bounce_classification: "receiver_error",
      attempt: 2,
    });
  });

  test("is tried again when the receiver said", () => {
    const { settlement } = settle(jobOf(), deferredOutcome({ retryAfterMs: 90_000 }), { random: () => 0.9 });
    expect(settlement).toMatchObject({ nextAttemptAt: now + 90_000, record: { decidedBy: "receiver" } });
  });

  test("does not suppress, whatever the cause", () => {
    const outcome = deferredOutcome({ classification: "invalid_recipient" });
    expect(settle(jobOf(), outcome).settlement.suppression).toBeNull();
  });

  test("for too long is bounced as expired, soft, with the last reply", () => {
    const old = jobOf({ message: makeMessage({ queuedAt: now - 48 * hour }) });
    const { settlement, event, data } = settle(
      old,
      deferredOutcome({ classification: "invalid_recipient", trace }),
    );
    expect(settlement).toMatchObject({
      outcome: "bounced",
      nextAttemptAt: null,
      suppression: null,
      smtpCode: 451,
      record: { decidedBy: "expired" },
    });
    expect(event).toBe("message.bounced");
    expect(data).toMatchObject({
      bounce_type: "soft",
      bounce_classification: "message_expired",
      smtp_code: "451",
      smtp_response: "451 4.3.0 later",
      suppressed: false,
    });
  });

  test("has a last attempt at its expiry", () => {
    const old = jobOf({ message: makeMessage({ queuedAt: now - 48 * hour + 10_000 }) });
    expect(settle(old, deferredOutcome()).settlement.nextAttemptAt).toBe(now + 10_000);
  });
});

describe("bounced", () => {
  test("by the recipient's own fault puts it on the list, and the event says so", () => {
    const job = jobOf({ rcptTo: "Zoe@x.test", to: "Zoe@X.test" });
    const { settlement, event, data } = settle(job, bouncedOutcome());
    expect(settlement).toMatchObject({
      outcome: "bounced",
      nextAttemptAt: null,
      record: { decidedBy: "final" },
    });
    expect(settlement.suppression).toMatchObject({
      accountKey: 3,
      canonical: "zoe@x.test",
      email: "Zoe@X.test",
      reason: "hard_bounce",
      messageId: message.id,
      eventId: settlement.event.id,
      smtpCode: "550",
      smtpStatus: "5.1.1",
    });
    expect(event).toBe("message.bounced");
    expect(data).toMatchObject({ bounce_type: "hard", source: "smtp", suppressed: true });
  });

  test("for another reason leaves the list alone", () => {
    for (const classification of ["reputation_block", "spam_content", "unclassified"] as const) {
      const { settlement, data } = settle(jobOf(), bouncedOutcome({ classification }));
      expect(settlement.suppression).toBeNull();
      expect(data).toMatchObject({ suppressed: false, bounce_classification: classification });
    }
  });

  test("in a test proves nothing about the address", () => {
    const job = jobOf({ message: makeMessage({ test: true }) });
    const { settlement, data } = settle(job, bouncedOutcome());
    expect(settlement.suppression).toBeNull();
    expect(data).toMatchObject({ suppressed: false, test: true });
  });

  test("because of the suppression list is not an attempt, and record and event tell the same", () => {
    const reply = { code: 550, status: "5.7.1", text: "[local] on the list" };
    const outcome = bouncedOutcome({
      source: "local",
      classification: "suppressed",
      reply,
      trace: makeTrace({ endedAt: now, host: null, sendingIp: null }),
    });
    const { settlement, data } = settle(jobOf({ attempt: 3 }), outcome);
    expect(settlement).toMatchObject({
      outcome: "bounced",
      record: null,
      suppression: null,
      smtpResponse: "[local] on the list",
    });
    expect(data).toMatchObject({
      bounce_type: "hard",
      bounce_classification: "suppressed",
      smtp_response: "[local] on the list",
      receiving_mta: null,
      sending_ip: null,
      source: "local",
      suppressed: false,
      attempt: 2, // those that were made
    });
    expect(settle(jobOf(), outcome).data).toMatchObject({ attempt: 0 });
  });
});

test("an event is never earlier than the recipient's last one, though the clock went back", () => {
  const later = now + hour;
  const { settlement } = settle(jobOf({ lastEventAt: later }), { ...deliveredOutcome(), trace });
  expect([settlement.at, settlement.event.occurredAt]).toEqual([later, later]);
});

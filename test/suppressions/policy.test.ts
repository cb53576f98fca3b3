import { expect, test } from "vitest";
import type { Classification } from "../../src/model/classification.ts";
import { bounceCategories } from "../../src/model/classification.ts";
import type { Outcome } from "../../src/mail/outcome.ts";
import {
  failureSuppresses,
  replySuppresses,
  suppressionFor,
  suppresses,
} from "../../src/suppressions/policy.ts";
import { nxdomainRecheckFor } from "../../src/suppressions/nxdomain-recheck.ts";
import { jobOf, traceOf } from "../events/jobs.ts";

function bounce(classification: Classification, code = 550, status: string | null = "5.1.1"): Outcome {
  return {
    kind: "bounced",
    source: "smtp",
    reply: { code, status, text: "No such user" },
    classification,
    trace: traceOf(),
  };
}
const all = Object.keys(bounceCategories) as Classification[];

test("of all causes only a mailbox or a domain that does not exist, or one that was closed, suppresses", () => {
  expect(all.filter((cause) => suppresses(jobOf(), bounce(cause)))).toEqual([
    "invalid_recipient",
    "invalid_domain",
    "inactive_mailbox",
  ]);
});

test("the entry says why, by which message and event, under the canonical address and in the first spelling", () => {
  expect(suppressionFor(jobOf(), bounce("invalid_recipient"), "evt_1")).toEqual({
    accountKey: 3,
    canonical: "jane.doe@xn--bcher-kva.example",
    email: "Jane.Doe@bücher.example",
    reason: "hard_bounce",
    source: "system",
    description: "No such user",
    messageId: "msg_01jdq0000000000000000000aa",
    eventId: "evt_1",
    smtpCode: "550",
    smtpStatus: "5.1.1",
    expiresAt: null,
  });
});

test("a null MX suppresses at once, a domain that our own resolver cannot find does not", () => {
  const byUs = (code: number, status: string) =>
    ({ ...bounce("invalid_domain", code, status), source: "local" }) as const;
  expect(suppresses(jobOf(), byUs(556, "5.1.10") as Outcome)).toBe(true);
  expect(suppressionFor(jobOf(), byUs(550, "5.1.2") as Outcome, "evt_1")).toBeNull();
});

test("a receiver's 550 5.1.2 suppresses, in a session as in a report, and asks for no recheck", () => {
  const outcome = bounce("invalid_domain", 550, "5.1.2");
  const failure = {
    recipients: ["a@b.test"],
    code: 550,
    status: "5.1.2",
    text: "host unknown",
    mta: null,
    reportedAt: null,
  };
  expect(suppresses(jobOf(), outcome)).toBe(true);
  expect(failureSuppresses(failure)).toBe(true);
  expect(replySuppresses({ code: 550, status: "5.1.2", text: "host unknown" })).toBe(true);
  expect(nxdomainRecheckFor(jobOf(), outcome, "evt_1", 0)).toBeNull();
});

test("550 with an enhanced 4.x.x bounces by its code and does not suppress", () => {
  expect(suppresses(jobOf(), bounce("inactive_mailbox", 550, "4.2.1"))).toBe(false);
  expect(suppresses(jobOf(), bounce("invalid_recipient", 550, "4.1.1"))).toBe(false);
  expect(suppresses(jobOf(), bounce("invalid_recipient", 550, null))).toBe(true);
  expect(replySuppresses({ code: 550, status: "4.2.1", text: "mailbox disabled" })).toBe(false);
});

test("a block for reputation by 550 5.7.1 suppresses none of the recipients it hits", () => {
  expect(suppressionFor(jobOf(), bounce("reputation_block", 550, "5.7.1"), "evt_1")).toBeNull();
});

test("no temporary failure suppresses, whatever it says", () => {
  const last = { reply: { code: 450, status: "4.2.1", text: "disabled" }, trace: traceOf() };
  expect(suppresses(jobOf(), bounce("invalid_recipient", 450))).toBe(false);
  expect(
    all.filter((classification) =>
      suppresses(jobOf(), { kind: "deferred", classification, retryAfterMs: null, ...last }),
    ),
  ).toEqual([]);
});

test("test messages and simulator addresses are never suppressed", () => {
  expect(suppresses(jobOf({}, { test: true }), bounce("invalid_recipient"))).toBe(false);
  expect(suppresses(jobOf({ domain: "simulator.svc" }), bounce("invalid_recipient"))).toBe(false);
});

test("a long reply is kept short in the entry", () => {
  const long = bounce("invalid_recipient");
  long.reply.text = "x".repeat(2000);
  expect(suppressionFor(jobOf(), long, "evt_1")?.description).toHaveLength(500);
});

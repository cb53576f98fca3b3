// Slots are promised before the commit and used or given back after it, in every case.
import { describe, expect, test } from "vitest";
import type { AcceptResult } from "../../src/model/acceptance.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { good, liveSender, makeRig, makeSuppression, startMs, testSender } from "./rig.ts";

test("recipients that have a slot start at once, the others wait in their queues", async () => {
  const rig = makeRig();
  rig.runner.slots = 2;
  await rig.send(good({ to: ["a@x.test", "b@y.test", "c@y.test", "d@z.test"] }));
  expect(rig.store.last().recipients.map(({ leaseOwner }) => leaseOwner !== null)).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(rig.runner.ran.map(({ rcptTo }) => rcptTo)).toEqual(["a@x.test", "b@y.test"]);
  expect(rig.runner.noted).toEqual([
    { queueName: "1.default/y.test", dueAt: startMs },
    { queueName: "1.default/z.test", dueAt: startMs },
  ]);
  expect(rig.runner.held.size).toBe(0);
});

test("the signature of a mail that has a slot begins before its commit, that of one that waits later", async () => {
  const rig = makeRig();
  rig.runner.slots = 1;
  await rig.send(good({ subject: "now" }));
  await rig.send(good({ subject: "later" }));
  expect(rig.runner.prepared.map(({ held }) => held)).toEqual([1]);
  expect(rig.runner.prepared[0]?.section).toMatch(/^[^]*Subject: now\r\n[^]*\r\n\r\n$/);
});

test("a job runs under the slot of its own recipient where others have none", async () => {
  const rig = makeRig();
  const reserve = rig.runner.reserve;
  rig.runner.slots = 5;
  rig.runner.reserve = (queueName) => (queueName.endsWith("/full.test") ? null : reserve(queueName));
  await rig.send(good({ to: ["a@full.test", "b@y.test", "c@full.test", "d@z.test"] }));
  expect(rig.runner.ran.map(({ rcptTo }) => rcptTo)).toEqual(["b@y.test", "d@z.test"]);
  expect(rig.runner.reserved).toEqual(["1.default/y.test", "1.default/z.test"]);
});

test("a scheduled message takes no slot and is due at its time", async () => {
  const rig = makeRig();
  rig.runner.slots = 5;
  const { body } = await rig.send(good({ send_at: "2026-11-27T10:00:00Z" }));
  expect(JSON.parse(body)).toMatchObject({ status: "scheduled", send_at: "2026-11-27T10:00:00.000Z" });
  expect(rig.runner.reserved).toEqual([]);
  expect(rig.runner.noted).toEqual([{ queueName: "1.default/x.test", dueAt: startMs + 3_600_000 }]);
  expect(rig.store.last()).toMatchObject({
    sendAt: startMs + 3_600_000,
    message: { queuedAt: startMs + 3_600_000 },
    recipients: [{ leaseOwner: null }],
  });
});

describe("mail that must not leave the machine has the sandbox's scheduled queue", () => {
  test("with a test key", async () => {
    const rig = makeRig();
    await rig.send(good({ to: ["a@x.test", "bounce@simulator.svc"] }), testSender);
    expect(rig.runner.noted.map(({ queueName }) => queueName)).toEqual(["~sandbox", "~sandbox"]);
    expect(rig.store.last().message.test).toBe(true);
  });

  test("with any key in dev mode", async () => {
    const rig = makeRig({ dev: true });
    await rig.send(good(), liveSender);
    expect(rig.runner.noted.map(({ queueName }) => queueName)).toEqual(["~sandbox"]);
    expect(rig.store.last().message.test).toBe(false);
  });
});

describe("slots are given back", () => {
  const answers: [string, AcceptResult | Error][] = [
    ["a suppressed recipient", { kind: "suppressed", entries: [makeSuppression("a@x.test")] }],
    ["a full queue", { kind: "queue_full" }],
    [
      "an account that was paused meanwhile",
      { kind: "not_sending", account: "shop", status: "active", pausedAt: 1, pauseReason: "bounces" },
    ],
    ["a replay", { kind: "replayed", status: 202, body: "{}" }],
    ["a conflict", { kind: "idempotency_conflict" }],
    ["a store that fails", new StoreUnavailable("failed", "no")],
    ["a fault of the program", new TypeError("a bug")],
  ];
  for (const [name, answer] of answers) {
    test(`after ${name}`, async () => {
      const rig = makeRig();
      rig.runner.slots = 2;
      rig.store.answer = answer;
      await rig.send(good({ to: ["a@x.test", "b@y.test"] })).catch(() => undefined);
      expect(rig.runner.reserved).toHaveLength(2);
      expect(rig.runner.held.size).toBe(0);
      expect(rig.runner.ran).toEqual([]);
      expect(rig.runner.noted).toEqual([]);
    });
  }

  test("where the runner itself fails midway", async () => {
    const rig = makeRig();
    const reserve = rig.runner.reserve;
    rig.runner.slots = 2;
    rig.runner.reserve = (queueName) => {
      if (queueName === "1.default/y.test") throw new TypeError("a bug");
      return reserve(queueName);
    };
    await expect(rig.send(good({ to: ["a@x.test", "b@y.test"] }))).rejects.toThrow(TypeError);
    expect(rig.runner.held.size).toBe(0);
  });
});

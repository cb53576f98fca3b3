// What is counted for `svc top`: a minute that moves on, in bounded memory, at a bounded cost to the store.
import { expect, test } from "vitest";
import { createActivity, type ActivityDeps } from "../../src/activity/activity.ts";
import { createMinutes } from "../../src/activity/windows.ts";
import { counterNames } from "../../src/model/counters.ts";
import type { QueueCounts } from "../../src/model/queue.ts";
import type { Settlement } from "../../src/model/settlement.ts";
import type { Store } from "../../src/store/store.ts";
import { ManualClock } from "../support/clock.ts";

type Commit = Parameters<Parameters<Store["onCommit"]>[0]>[0];
const queue: QueueCounts = { scheduled: 1, queued: 2, deferred: 3, sending: 4, held: 5, oldestDueAt: null };

function rig(more: Partial<ActivityDeps> = {}) {
  const clock = new ManualClock();
  let commit: (report: Commit) => void = () => undefined;
  const asked = { queue: 0, egress: 0 };
  const activity = createActivity({
    store: {
      onCommit(listener) {
        commit = listener;
        return () => undefined;
      },
      queueCounts: async () => {
        asked.queue += 1;
        return queue;
      },
    },
    clock,
    startedAt: clock.now(),
    egress() {
      asked.egress += 1;
      return { running: [], slowed: [] };
    },
    queue: () => ({ active: 6, unwritten: 0 }),
    connections: () => 7,
    ...more,
  });
  const count = (by: Partial<Record<(typeof counterNames)[number], number>>): void =>
    commit({ events: true, deliveries: false, counted: counterNames.map((name) => by[name] ?? 0) });
  return { clock, activity, asked, count };
}

const settled = (
  provider: string | null,
  outcome: Settlement["outcome"],
  sendingIp: string | null = "192.0.2.1",
): Parameters<ReturnType<typeof createActivity>["settled"]>[1] => ({
  provider,
  outcome,
  record: { sendingIp } as Settlement["record"],
});

test("what commits counted stands by second, the running one left out, and is gone after a minute", async () => {
  const { clock, activity, count } = rig();
  count({ accepted: 3 });
  count({ accepted: 2, delivered: 1 });
  await clock.advance(1000);
  count({ accepted: 100 });
  const first = (await activity.now()).seconds;
  expect([first.accepted.length, first.accepted.at(-1), first.delivered.at(-1)]).toEqual([60, 5, 1]);
  await clock.advance(59_000);
  const later = (await activity.now()).seconds.accepted;
  expect([later[0], later[1]]).toEqual([5, 100]);
  await clock.advance(2000);
  expect(Math.max(...(await activity.now()).seconds.accepted)).toBe(0);
});

test("after a long pause nothing of before is left", async () => {
  const { clock, activity, count } = rig();
  count({ accepted: 3 });
  await clock.advance(3_600_000);
  count({ accepted: 1 });
  await clock.advance(1000);
  const { accepted } = (await activity.now()).seconds;
  expect(accepted.filter((one) => one > 0)).toEqual([1]);
});

test("outcomes are counted by provider and by address, the busiest first; mail of test keys and what was not tried are left out", async () => {
  const { activity } = rig();
  for (const [provider, outcome, ip] of [
    ["google", "delivered", "192.0.2.1"],
    ["google", "deferred", "192.0.2.2"],
    ["acme.test", "bounced", "192.0.2.2"],
    [null, "bounced", "192.0.2.9"],
  ] as const)
    activity.settled(false, settled(provider, outcome, ip));
  activity.settled(true, settled("google", "delivered"));
  const { providers, ips } = await activity.now();
  expect(providers).toEqual([
    { key: "google", counts: { delivered: 1, deferred: 1, bounced: 0 }, attempts: 0 },
    { key: "acme.test", counts: { delivered: 0, deferred: 0, bounced: 1 }, attempts: 0 },
  ]);
  expect(ips.map(({ key }) => key)).toEqual(["192.0.2.2", "192.0.2.1"]);
});

test("attempts that run are added up by provider and address, also where nothing has ended yet", async () => {
  const { activity } = rig({
    egress: () => ({
      running: [
        { group: "google", address: "192.0.2.1", taken: 2 },
        { group: "acme.test/google", address: "192.0.2.2", taken: 1 },
        { group: "slow.test", address: null, taken: 4 },
      ],
      slowed: [],
    }),
  });
  activity.settled(false, settled("google", "delivered"));
  const { providers, ips } = await activity.now();
  expect(providers.map(({ key, attempts }) => [key, attempts])).toEqual([
    ["google", 3],
    ["slow.test", 4],
  ]);
  expect(ips.map(({ key, attempts }) => [key, attempts])).toEqual([
    ["192.0.2.1", 2],
    ["192.0.2.2", 1],
  ]);
});

test("attempts at webhook endpoints are counted by what they came to", async () => {
  const { activity } = rig();
  const endpoint = { id: "whk_1", url: "https://a.example/hook?x=1 2" };
  activity.posted(endpoint, "delivered");
  activity.posted(endpoint, "failed");
  activity.posted({ ...endpoint, id: "whk_2" }, "dead_lettered");
  expect((await activity.now()).webhooks).toEqual([
    { key: "whk_1", url: endpoint.url, counts: { delivered: 1, failed: 1, dead_lettered: 0 } },
    { key: "whk_2", url: endpoint.url, counts: { delivered: 0, failed: 0, dead_lettered: 1 } },
  ]);
});

test("many who ask within half a second share one snapshot", async () => {
  const { clock, activity, asked } = rig();
  await Promise.all(Array.from({ length: 50 }, () => activity.now()));
  expect(asked).toEqual({ queue: 1, egress: 1 });
  await clock.advance(500);
  await activity.now();
  expect(asked).toEqual({ queue: 1, egress: 2 });
  await clock.advance(500);
  await activity.now();
  expect(asked).toEqual({ queue: 2, egress: 3 });
});

test("a count of the queue that takes long is made for a tenth of the time, and nobody waits for it but the first", async () => {
  const began: number[] = [];
  const clock = new ManualClock();
  const { activity } = rig({
    clock,
    store: {
      onCommit: () => () => undefined,
      queueCounts() {
        began.push(clock.monotonic());
        return new Promise((resolve) => void clock.after(3000, () => resolve(queue)));
      },
    },
  });
  const first = activity.now();
  await clock.advance(3000);
  expect((await first).queue).toEqual(queue);
  for (let second = 0; second < 60; second++) {
    await clock.advance(1000);
    expect((await activity.now()).queue).toEqual(queue);
  }
  expect(began.length).toBe(3); // at 0, 30 and 60 seconds
});

test("a queue that cannot be counted is an error of that answer alone", async () => {
  let works = false;
  const { clock, activity } = rig({
    store: {
      onCommit: () => () => undefined,
      queueCounts: () => (works ? Promise.resolve(queue) : Promise.reject(new Error("closed"))),
    },
  });
  await expect(activity.now()).rejects.toThrow("closed");
  works = true;
  await clock.advance(1000);
  expect((await activity.now()).queue).toEqual(queue);
});

test("of more keys than are remembered, one that was not counted for longest goes", async () => {
  const clock = new ManualClock();
  const minutes = createMinutes(["seen"], clock, 2);
  for (const key of ["a", "b"]) minutes.add(key, "seen");
  await clock.advance(10_000);
  for (const key of ["a", "c"]) minutes.add(key, "seen");
  expect([minutes.size, minutes.top(9)]).toEqual([
    2,
    [
      { key: "a", counts: { seen: 2 } },
      { key: "c", counts: { seen: 1 } },
    ],
  ]);
});

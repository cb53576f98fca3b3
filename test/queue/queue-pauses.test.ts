// Pauses of parts of the queue: what they stop, when they end, and what the runner does meanwhile.
import { expect, test } from "vitest";
import type { QueuePause } from "../../src/model/queue-pause.ts";
import { createQueuePauses } from "../../src/queue/queue-pauses.ts";
import { queueNameOf } from "../../src/queue/queue-name.ts";
import { ManualClock } from "../support/clock.ts";
import { makeJob } from "../support/jobs.ts";
import { bench, from } from "./runner-rig.ts";

const clock = new ManualClock();
const pause = (of: Partial<QueuePause>): QueuePause => ({
  scope: "domain",
  accountKey: null,
  name: "a.test",
  since: clock.now(),
  until: null,
  ...of,
});
async function paused(...all: QueuePause[]) {
  const pauses = createQueuePauses({ store: { queuePauses: async () => all }, clock });
  await pauses.start();
  return pauses;
}

test("a pause of a domain or provider is every account's, that of a pool one account's", async () => {
  const pauses = await paused(
    pause({}),
    pause({ scope: "provider", name: "google" }),
    pause({ scope: "pool", accountKey: 2, name: "bulk" }),
  );
  const is = (account: number, pool: string, domain: string, group: string | null = null) =>
    pauses.isPaused(queueNameOf(account, pool, domain), group);
  expect([is(1, "default", "a.test"), is(2, "other", "a.test")]).toEqual([true, true]);
  expect([is(1, "default", "sub.a.test"), is(1, "default", "b.test")]).toEqual([false, false]);
  expect([is(1, "default", "b.test", "google"), is(1, "default", "b.test", "yahoo")]).toEqual([true, false]);
  expect(is(1, "default", "b.test", "b.test/google")).toBe(true);
  expect([is(2, "bulk", "b.test"), is(1, "bulk", "b.test")]).toEqual([true, false]);
  expect(pauses.isPaused("~sandbox", "sandbox")).toBe(false);
  await pauses.stop();
});

test("mail does not leave from a paused address; the list is the same one until a pause changes", async () => {
  const [one, two] = [from("192.0.2.1"), from("192.0.2.2")];
  const all = [one, two];
  const pauses = await paused(pause({ scope: "ip", name: "192.0.2.1" }));
  expect(pauses.usable(all)).toEqual([two]);
  expect(pauses.usable(all)).toBe(pauses.usable(all));
  await pauses.stop();
  expect((await paused()).usable(all)).toBe(all);
});

test("a pause ends by its time, and the listeners hear of it", async () => {
  const pauses = await paused(pause({ until: clock.now() + 3_600_000 }), pause({ name: "b.test" }));
  let changes = 0;
  pauses.onChange(() => (changes += 1));
  await clock.advance(3_599_999);
  expect([pauses.list().length, changes]).toEqual([2, 0]);
  await clock.advance(1);
  expect([pauses.list().map(({ name }) => name), changes]).toEqual([["b.test"], 1]);
  await pauses.stop();
});

const mail = (n: number, domain: string) => {
  const job = makeJob(n, { domain });
  return { ...job, queueName: queueNameOf(1, "default", domain) };
};

test("while a domain is paused none of its mail is claimed, other mail goes, and it goes when that ends", async () => {
  const stopped = new Set(["a.test"]);
  const { runner, queue, begun, clock: at } = bench({ stopped, groupOf: (name) => name.split("/")[1] ?? "" });
  queue.add(mail(1, "a.test"), at.now());
  queue.add(mail(2, "b.test"), at.now());
  await runner.start();
  await at.advance(60_000);
  expect(begun.map(({ domain }) => domain)).toEqual(["b.test"]);
  expect(queue.claims.map(({ queueName }) => queueName)).toEqual([queueNameOf(1, "default", "b.test")]);
  expect(runner.reserve(queueNameOf(1, "default", "a.test"))).toBeNull();
  stopped.clear();
  runner.onPausesChanged();
  await at.advance(0);
  expect(begun.map(({ domain }) => domain)).toEqual(["b.test", "a.test"]);
  await runner.stop();
});

test("a pause of a provider stops what waits for its slots and what is claimed; running attempts end", async () => {
  const stopped = new Set<string>();
  const options = { stopped, hangs: ["a.test", "b.test"], groupOf: () => "google" };
  const shaping = { groups: { google: { connections: 1 } } };
  const { runner, queue, begun, finish, clock: at } = bench({ ...options, shaping });
  for (let n = 1; n <= 3; n++) queue.add(mail(n, "a.test"), at.now());
  queue.add(mail(4, "b.test"), at.now());
  await runner.start();
  await at.advance(0);
  expect(begun).toHaveLength(1);
  stopped.add("google");
  runner.onPausesChanged();
  finish("a.test");
  await at.advance(60_000);
  expect(begun).toHaveLength(1);
  expect(queue.leased.size).toBe(0);
  expect(queue.waiting).toHaveLength(3);
  stopped.clear();
  runner.onPausesChanged();
  await at.advance(0);
  for (let n = 0; n < 3; n++) {
    finish(begun.at(-1)?.domain ?? "");
    await at.advance(1000);
  }
  expect(begun).toHaveLength(4);
  await runner.stop();
});

// Which destinations are known, whose look-ups wait for whose, and what is forgotten.
import { expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { systemSources } from "../../src/pools/sources.ts";
import { queueNameOf } from "../../src/queue/queue-name.ts";
import { createRouting, type Destination } from "../../src/queue/routing.ts";
import { ManualClock, settle } from "../support/clock.ts";

const to = (queueName: string, over: Partial<Destination> = {}): Destination => ({
  group: queueName,
  account: 1,
  readyQueue: queueName,
  sources: () => systemSources.usable(null),
  sourcesOf: () => [],
  prepare: () => undefined,
  attempt: () => Promise.reject(new Error("not tried here")),
  ...over,
});

function bench(find: (queueName: string) => Promise<Destination>, most?: number) {
  const clock = new ManualClock();
  const asked: string[] = [];
  const routing = createRouting({
    destinationOf: (queueName) => {
      asked.push(queueName);
      return find(queueName);
    },
    ...(most === undefined ? {} : { most }),
    clock,
    log: silentLog,
  });
  return { clock, routing, asked };
}

const silent = (): Promise<never> => new Promise(() => undefined);

test("what was known a minute ago serves while it is asked for again, once", async () => {
  const { clock, routing, asked } = bench((queueName) =>
    asked.length === 1 ? Promise.resolve(to(queueName)) : silent(),
  );
  const queueName = queueNameOf(1, "default", "a.test");
  expect(routing.known(queueName)).toBeNull();
  await routing.ask(queueName);
  await clock.advance(64_999);
  expect(routing.known(queueName)?.readyQueue).toBe(queueName);
  expect(routing.known(queueName)?.readyQueue).toBe(queueName);
  expect(asked).toHaveLength(2);
  await clock.advance(1);
  expect(routing.known(queueName)).toBeNull();
});

test("a retry goes by what was found out a moment ago, and is asked for after that", async () => {
  const { clock, routing } = bench((queueName) => Promise.resolve(to(queueName)));
  const queueName = queueNameOf(1, "default", "a.test");
  expect(routing.fresh(queueName)).toBeNull();
  await routing.ask(queueName);
  await clock.advance(4_999);
  expect(routing.fresh(queueName)?.readyQueue).toBe(queueName);
  await clock.advance(1);
  expect(routing.fresh(queueName)).toBeNull();
});

test("what was decided here without a receiver is asked for again at once when it is no longer fresh", async () => {
  const { clock, routing } = bench((queueName) => Promise.resolve(to(queueName, { onlyFresh: true })));
  const queueName = queueNameOf(1, "default", "a.test");
  await routing.ask(queueName);
  await clock.advance(4_999);
  expect(routing.known(queueName)).not.toBeNull();
  await clock.advance(1);
  expect(routing.known(queueName)).toBeNull();
});

test("an account whose name servers are silent delays another account's new destinations by nothing", async () => {
  const { routing } = bench((queueName) =>
    queueName.startsWith("1.") ? silent() : Promise.resolve(to(queueName)),
  );
  for (let i = 0; i < 3_000; i++) void routing.ask(queueNameOf(1, "default", `silent${i}.test`));
  for (let i = 0; i < 20; i++) {
    const queueName = queueNameOf(2, "default", `live${i}.test`);
    void routing.ask(queueName);
    await settle();
    expect(routing.known(queueName)?.readyQueue).toBe(queueName);
  }
});

test("an account's own live destinations do not wait until its silent ones are given up", async () => {
  const { clock, routing } = bench((queueName) =>
    queueName.includes("silent") ? silent() : Promise.resolve(to(queueName)),
  );
  for (let i = 0; i < 450; i++) void routing.ask(queueNameOf(1, "default", `silent${i}.test`));
  const queueName = queueNameOf(1, "default", "live.test");
  void routing.ask(queueName);
  await clock.advance(1_000);
  expect(routing.known(queueName)?.readyQueue).toBe(queueName);
});

test("a new destination does not wait behind thousands of its own account that are silent", async () => {
  const { clock, routing } = bench((queueName) =>
    queueName.includes("silent") ? silent() : Promise.resolve(to(queueName)),
  );
  for (let i = 0; i < 20_000; i++) void routing.ask(queueNameOf(1, "default", `silent${i}.test`));
  for (let i = 0; i < 10; i++) {
    const queueName = queueNameOf(1, "default", `live${i}.test`);
    void routing.ask(queueName);
    await clock.advance(1_000);
    expect(routing.known(queueName)?.readyQueue).toBe(queueName);
  }
});

test("what could not be routed when it was last asked for leaves the turns to what is new", async () => {
  const { clock, routing, asked } = bench((queueName) =>
    queueName.includes("dead") && clock.monotonic() < 5_000
      ? Promise.resolve(to(queueName, { onlyFresh: true }))
      : silent(),
  );
  const scheduledQueues = (name: string, count: number): string[] =>
    Array.from({ length: count }, (_, i) => queueNameOf(1, "default", `${name}${i}.test`));
  await Promise.all(scheduledQueues("dead", 1_000).map((queueName) => routing.ask(queueName)));
  await clock.advance(5_000);
  for (const queueName of [
    ...scheduledQueues("silent", 400),
    ...scheduledQueues("dead", 1_000),
    ...scheduledQueues("new", 100),
  ])
    void routing.ask(queueName);
  const begun = asked.length;
  await clock.advance(1_000);
  const after = asked.slice(begun);
  expect(after.filter((queueName) => queueName.includes("new")).length).toBeGreaterThanOrEqual(
    after.length / 3,
  );
  expect(after.filter((queueName) => queueName.includes("dead")).length).toBeLessThanOrEqual(
    after.length / 3,
  );
});

test("an account with more destinations than are remembered pushes out none of another's", async () => {
  const { routing } = bench((queueName) => Promise.resolve(to(queueName)), 400);
  const mine = Array.from({ length: 100 }, (_, i) => queueNameOf(1, "default", `mine${i}.test`));
  await Promise.all(mine.map((queueName) => routing.ask(queueName)));
  for (let i = 0; i < 1_000; i++) await routing.ask(queueNameOf(2, "default", `theirs${i}.test`));
  expect(mine.filter((queueName) => routing.known(queueName) === null)).toEqual([]);
  expect(routing.known(queueNameOf(2, "default", "theirs0.test"))).toBeNull();
});

test("what was being asked for when all is forgotten does not count", async () => {
  const answers: ((found: Destination) => void)[] = [];
  const { routing } = bench(() => new Promise((resolve) => answers.push(resolve)));
  const queueName = queueNameOf(1, "default", "a.test");
  const before = routing.ask(queueName);
  routing.forget();
  answers[0]?.(to("old"));
  await before;
  expect(routing.known(queueName)).toBeNull();
  const after = routing.ask(queueName);
  answers[1]?.(to("new"));
  await after;
  expect(routing.known(queueName)?.readyQueue).toBe("new");
});

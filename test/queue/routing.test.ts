// Which destinations are known, whose look-ups wait for whose, and what is forgotten.
import { expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { systemSources } from "../../src/pools/sources.ts";
import { laneOf } from "../../src/queue/lane.ts";
import { createRouting, type Destination } from "../../src/queue/routing.ts";
import { ManualClock, settle } from "../support/clock.ts";

const to = (lane: string, over: Partial<Destination> = {}): Destination => ({
  group: lane,
  account: 1,
  line: lane,
  sources: () => systemSources.usable(null),
  sourcesOf: () => [],
  prepare: () => undefined,
  attempt: () => Promise.reject(new Error("not tried here")),
  ...over,
});

function bench(find: (lane: string) => Promise<Destination>, most?: number) {
  const clock = new ManualClock();
  const asked: string[] = [];
  const routing = createRouting({
    destinationOf: (lane) => {
      asked.push(lane);
      return find(lane);
    },
    ...(most === undefined ? {} : { most }),
    clock,
    log: silentLog,
  });
  return { clock, routing, asked };
}

const silent = (): Promise<never> => new Promise(() => undefined);

test("what was known a minute ago serves while it is asked for again, once", async () => {
  const { clock, routing, asked } = bench((lane) =>
    asked.length === 1 ? Promise.resolve(to(lane)) : silent(),
  );
  const lane = laneOf(1, "default", "a.test");
  expect(routing.known(lane)).toBeNull();
  await routing.ask(lane);
  await clock.advance(64_999);
  expect(routing.known(lane)?.line).toBe(lane);
  expect(routing.known(lane)?.line).toBe(lane);
  expect(asked).toHaveLength(2);
  await clock.advance(1);
  expect(routing.known(lane)).toBeNull();
});

test("what was decided here without a receiver is asked for again at once when it is no longer fresh", async () => {
  const { clock, routing } = bench((lane) => Promise.resolve(to(lane, { onlyFresh: true })));
  const lane = laneOf(1, "default", "a.test");
  await routing.ask(lane);
  await clock.advance(4_999);
  expect(routing.known(lane)).not.toBeNull();
  await clock.advance(1);
  expect(routing.known(lane)).toBeNull();
});

test("an account whose name servers are silent delays another account's new destinations by nothing", async () => {
  const { routing } = bench((lane) => (lane.startsWith("1.") ? silent() : Promise.resolve(to(lane))));
  for (let i = 0; i < 3_000; i++) void routing.ask(laneOf(1, "default", `silent${i}.test`));
  for (let i = 0; i < 20; i++) {
    const lane = laneOf(2, "default", `live${i}.test`);
    void routing.ask(lane);
    await settle();
    expect(routing.known(lane)?.line).toBe(lane);
  }
});

test("an account's own live destinations do not wait until its silent ones are given up", async () => {
  const { clock, routing } = bench((lane) =>
    lane.includes("silent") ? silent() : Promise.resolve(to(lane)),
  );
  for (let i = 0; i < 450; i++) void routing.ask(laneOf(1, "default", `silent${i}.test`));
  const lane = laneOf(1, "default", "live.test");
  void routing.ask(lane);
  await clock.advance(1_000);
  expect(routing.known(lane)?.line).toBe(lane);
});

test("a new destination does not wait behind thousands of its own account that are silent", async () => {
  const { clock, routing } = bench((lane) =>
    lane.includes("silent") ? silent() : Promise.resolve(to(lane)),
  );
  for (let i = 0; i < 20_000; i++) void routing.ask(laneOf(1, "default", `silent${i}.test`));
  for (let i = 0; i < 10; i++) {
    const lane = laneOf(1, "default", `live${i}.test`);
    void routing.ask(lane);
    await clock.advance(1_000);
    expect(routing.known(lane)?.line).toBe(lane);
  }
});

test("what could not be routed when it was last asked for leaves the turns to what is new", async () => {
  const { clock, routing, asked } = bench((lane) =>
    lane.includes("dead") && clock.monotonic() < 5_000
      ? Promise.resolve(to(lane, { onlyFresh: true }))
      : silent(),
  );
  const lanes = (name: string, count: number): string[] =>
    Array.from({ length: count }, (_, i) => laneOf(1, "default", `${name}${i}.test`));
  await Promise.all(lanes("dead", 1_000).map((lane) => routing.ask(lane)));
  await clock.advance(5_000);
  for (const lane of [...lanes("silent", 400), ...lanes("dead", 1_000), ...lanes("new", 100)])
    void routing.ask(lane);
  const begun = asked.length;
  await clock.advance(1_000);
  const after = asked.slice(begun);
  expect(after.filter((lane) => lane.includes("new")).length).toBeGreaterThanOrEqual(after.length / 3);
  expect(after.filter((lane) => lane.includes("dead")).length).toBeLessThanOrEqual(after.length / 3);
});

test("an account with more destinations than are remembered pushes out none of another's", async () => {
  const { routing } = bench((lane) => Promise.resolve(to(lane)), 400);
  const mine = Array.from({ length: 100 }, (_, i) => laneOf(1, "default", `mine${i}.test`));
  await Promise.all(mine.map((lane) => routing.ask(lane)));
  for (let i = 0; i < 1_000; i++) await routing.ask(laneOf(2, "default", `theirs${i}.test`));
  expect(mine.filter((lane) => routing.known(lane) === null)).toEqual([]);
  expect(routing.known(laneOf(2, "default", "theirs0.test"))).toBeNull();
});

test("what was being asked for when all is forgotten does not count", async () => {
  const answers: ((found: Destination) => void)[] = [];
  const { routing } = bench(() => new Promise((resolve) => answers.push(resolve)));
  const lane = laneOf(1, "default", "a.test");
  const before = routing.ask(lane);
  routing.forget();
  answers[0]?.(to("old"));
  await before;
  expect(routing.known(lane)).toBeNull();
  const after = routing.ask(lane);
  answers[1]?.(to("new"));
  await after;
  expect(routing.known(lane)?.line).toBe("new");
});

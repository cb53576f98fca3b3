// Which rule holds back mail that is due, as `svc messages trace` says it.
import { expect, test } from "vitest";
import { queueNameOf } from "../../src/queue/queue-name.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { deferredOutcome, makeJob } from "../support/jobs.ts";
import { bench, from, jobsOf, system } from "./runner-rig.ts";

const x = queueNameOf(1, "default", "x.test");
const nobody = (): boolean => false;

test("as many attempts as may run: connections; one of them: the attempt; slowed down, by which reply", async () => {
  const { queue, clock, runner, finish } = bench({
    hangs: ["x.test"],
    shaping: { groups: { "x.test": { connections: 2 } } },
  });
  for (const job of jobsOf("x.test", 1, 9)) queue.add(job, clock.now());
  await runner.start();
  await clock.advance(10);
  expect(runner.waitOf(x, false, nobody)).toMatchObject({
    rule: "connections",
    group: "x.test",
    limiters: [{ taken: 2, limit: 2, slowed: null }],
  });
  expect(runner.waitOf(x, true, ({ key }) => key === 1)).toMatchObject({ rule: "attempt" });
  expect(
    runner.waitOf(x, true, ({ key }) => key === 3),
    "it is claimed",
  ).toMatchObject({ rule: "connections" });
  finish("x.test", deferredOutcome({ classification: "rate_limited" }));
  await clock.advance(10);
  expect(runner.waitOf(x, false, nobody).limiters).toMatchObject([
    { taken: 1, limit: 1, slowed: { reply: "451 451 4.3.0 later" } },
  ]);
});

test("the next message in its time: rate, and for how long", async () => {
  const { queue, clock, runner } = bench({ shaping: { groups: { "x.test": { per_second: 0.1 } } } });
  for (const job of jobsOf("x.test", 1, 9)) queue.add(job, clock.now());
  await runner.start();
  await clock.advance(1_000);
  expect(runner.waitOf(x, false, nobody)).toMatchObject({ rule: "rate", ms: 9_000 });
});

test("no usable address: pool; no answer of the DNS: route; nothing that holds it back: turn", async () => {
  let sources = [from("192.0.2.1")];
  let answers = true;
  const { queue, clock, runner } = bench({
    sources: () => sources,
    routing: () => (answers ? Promise.resolve() : new Promise(() => undefined)),
  });
  queue.add(makeJob(1, { domain: "x.test" }), clock.now());
  await runner.start();
  await clock.advance(10);
  expect(runner.waitOf(x, false, nobody)).toMatchObject({ rule: "turn" });
  sources = [];
  expect(runner.waitOf(x, false, nobody)).toMatchObject({ rule: "pool" });
  answers = false;
  runner.onSourcesChanged();
  expect(runner.waitOf(x, false, nobody)).toMatchObject({ rule: "route", group: null });
});

test("a store that takes no writes: store; all slots in use: attempts", async () => {
  const { queue, clock, runner } = bench({
    hangs: ["x.test", "y.test"],
    accountOf: () => 1,
    sources: () => system,
    shaping: { groups: { default: { connections: 1000, per_second: 100_000 } } },
  });
  for (const job of [...jobsOf("x.test", 1, 1100), ...jobsOf("y.test", 2001, 1100)])
    queue.add(job, clock.now());
  await runner.start();
  await clock.advance(2_000);
  expect(runner.waitOf(queueNameOf(1, "default", "y.test"), false, nobody)).toMatchObject({
    rule: "attempts",
    group: "y.test",
  });
  const { queue: other, clock: time, runner: held, finish } = bench({ hangs: ["x.test"] });
  other.add(makeJob(1, { domain: "x.test" }), time.now());
  await held.start();
  await time.advance(10);
  other.refuse = new StoreUnavailable("full", "no room");
  finish("x.test");
  await time.advance(10);
  expect(held.waitOf(x, false, nobody)).toMatchObject({ rule: "store" });
});

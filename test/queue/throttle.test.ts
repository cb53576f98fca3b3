import { expect, test } from "vitest";
import { createThrottle } from "../../src/queue/throttle.ts";
import { createShaping } from "../../src/queue/shaping.ts";
import { ManualClock } from "../support/clock.ts";

const shape = { connections: 10, perSecond: 100, messagesPerConnection: 100 };
const reply = "421 4.7.28 too fast";

test("lets a second's worth begin at once and then as many as the rate allows", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  let begun = 0;
  while (throttle.take()) begun += 1;
  expect(begun).toBe(100);
  await clock.advance(250);
  while (throttle.take()) begun += 1;
  expect(begun).toBe(125);
  expect(throttle.waitMs()).toBe(10);
});

test("halves when the receiver throttles and recovers by a tenth a minute", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  throttle.slowDown(reply);
  expect(throttle.limit()).toBe(5);
  await clock.advance(10 * 60_000);
  expect(throttle.limit()).toBe(10);
});

test("is at rest once its tokens and its rate are back", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  expect(throttle.isIdle()).toBe(true);
  throttle.take();
  expect(throttle.isIdle()).toBe(false);
  await clock.advance(10);
  expect(throttle.isIdle()).toBe(true);
  throttle.slowDown(reply);
  await clock.advance(60_000);
  expect(throttle.isIdle()).toBe(false);
  await clock.advance(240_000);
  expect(throttle.isIdle()).toBe(true);
});

test("a burst of refusals counts once, a later one again", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  for (let i = 0; i < 50; i++) throttle.slowDown(reply);
  expect(throttle.limit()).toBe(5);
  await clock.advance(6_000);
  throttle.slowDown(reply);
  expect(throttle.limit()).toBe(2);
});

test("a group of no rate, as a smart host is, that is throttled runs fewer at once and never stands still", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(createShaping(null).limits("smart-host"), clock);
  throttle.slowDown(reply);
  expect(throttle.limit()).toBe(25);
  for (let i = 0; i < 100; i++) expect([throttle.waitMs(), throttle.take()]).toEqual([0, true]);
  await clock.advance(10 * 60_000);
  expect([throttle.limit(), throttle.isIdle()]).toEqual([50, true]);
});

test("never falls below one attempt at a time", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  for (let i = 0; i < 40; i++) {
    throttle.slowDown(reply);
    await clock.advance(5_001);
  }
  expect(throttle.limit()).toBe(1);
});

test("a wall clock that jumps gives no burst and no stall", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  while (throttle.take());
  clock.jump(86_400_000);
  expect(throttle.take()).toBe(false);
  clock.jump(-2 * 86_400_000);
  await clock.advance(10);
  expect(throttle.take()).toBe(true);
});

test("says how far it is slowed, since when and by which reply, until it is back", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  expect(throttle.state()).toEqual({ factor: 1, limit: 10, perSecond: 100, waitMs: 0, slowed: null });
  const since = clock.now();
  throttle.slowDown(reply);
  await clock.advance(6_000);
  throttle.slowDown(`421 4.7.28 ${"x".repeat(70_000)}`);
  const { slowed, factor } = throttle.state();
  expect(factor).toBeCloseTo(0.255);
  expect(slowed).toMatchObject({ since, at: since + 6_000 });
  expect(slowed?.reply).toHaveLength(300);
  await clock.advance(8 * 60_000);
  expect(throttle.state()).toMatchObject({ factor: 1, slowed: null });
});

test("other limits hold at once, and do not undo what the receiver said", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  throttle.slowDown(reply);
  throttle.reshape({ connections: 4, perSecond: 2, messagesPerConnection: 100 });
  expect([throttle.limit(), throttle.take(), throttle.take(), throttle.waitMs()]).toEqual([
    2,
    true,
    false,
    1000,
  ]);
  throttle.reshape({ connections: 40, perSecond: 2000, messagesPerConnection: 100 });
  expect([throttle.limit(), throttle.waitMs()]).toEqual([20, 1]);
});

test("a rate that is taken away and set again is a rate", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  while (throttle.take());
  throttle.reshape({ ...shape, perSecond: Number.POSITIVE_INFINITY });
  for (let i = 0; i < 1000; i++) expect(throttle.take()).toBe(true);
  throttle.reshape({ ...shape, perSecond: 3 });
  let begun = 0;
  while (throttle.take()) begun += 1;
  expect(begun).toBe(3);
});

test("a receiver that takes five connections refuses less than one attempt in a hundred after two minutes", async () => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  const counted = { begun: 0, refused: 0 };
  for (let tenths = 0; tenths < 20 * 600; tenths++) {
    // Each attempt takes a tenth of a second; as many begin as may.
    const wanted = throttle.limit();
    let running = 0;
    while (running < wanted && throttle.take()) {
      running += 1;
      if (tenths >= 1_200) counted.begun += 1;
      if (running <= 5) continue;
      throttle.slowDown("421 4.7.28 too many connections");
      if (tenths >= 1_200) counted.refused += 1;
    }
    await clock.advance(100);
  }
  expect(counted.begun).toBeGreaterThan(20_000);
  expect(counted.refused / counted.begun).toBeLessThan(0.01);
});

test.each([0.5, 1, 2, 10])("settles near the rate of a receiver that takes %s a second", async (cap) => {
  const clock = new ManualClock();
  const throttle = createThrottle(shape, clock);
  const stepMs = 250;
  const minutes = 40;
  let room = 1;
  let [taken, refused] = [0, 0];
  for (let ms = 0; ms < minutes * 60_000; ms += stepMs) {
    await clock.advance(stepMs);
    room = Math.min(Math.max(1, 10 * cap), room + (cap * stepMs) / 1000);
    if (ms === 20 * 60_000) [taken, refused] = [0, 0]; // by then it has settled
    while (throttle.take()) {
      if (room >= 1) {
        [taken, room] = [taken + 1, room - 1];
        continue;
      }
      refused += 1;
      throttle.slowDown(reply);
    }
  }
  expect(taken / (20 * 60 * cap)).toBeGreaterThan(0.9);
  expect(refused / (taken + refused)).toBeLessThan(0.15);
});

test("recovers from its least in a quarter of an hour, however often it is looked at", async () => {
  const clock = new ManualClock();
  const [looked, left] = [createThrottle(shape, clock), createThrottle(shape, clock)];
  for (let i = 0; i < 10; i++) {
    for (const throttle of [looked, left]) throttle.slowDown(reply);
    await clock.advance(5_000);
  }
  expect(looked.state().perSecond).toBeLessThan(1);
  for (let i = 0; i < 600; i++) {
    await clock.advance(1_000);
    looked.factor();
  }
  expect(looked.factor()).toBeCloseTo(left.factor(), 5);
  await clock.advance(5 * 60_000);
  expect(left.state()).toMatchObject({ factor: 1, slowed: null });
});

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

test("a shaping file overrides rows of the table and leaves the others", () => {
  const shaping = createShaping({
    groups: { google: { connections: 2 }, "big.example": { per_second: 1000 } },
  });
  expect(shaping.limits("google")).toMatchObject({ connections: 2, perSecond: 50 });
  expect(shaping.limits("big.example")).toMatchObject({ connections: 10, perSecond: 1000 });
  expect(shaping.limits("other.example")).toMatchObject({ connections: 10, perSecond: 100 });
  expect(shaping.limits("smart-host").perSecond).toBe(Number.POSITIVE_INFINITY);
});

test("a shaping file of another form is refused", () => {
  expect(() => createShaping({ groups: { google: { connections: 0 } } })).toThrow();
  expect(() => createShaping({ groups: { google: { conections: 3 } } })).toThrow();
});

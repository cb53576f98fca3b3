import { expect, test } from "vitest";
import { createLockout, lockoutRule } from "../../src/access/lockout.ts";
import { ManualClock } from "../support/clock.ts";

function failTimes(lockout: ReturnType<typeof createLockout>, ip: string, times: number): void {
  for (let i = 0; i < times; i++) lockout.failed(ip);
}

test("the fiftieth failure in a row locks for five minutes, the forty-ninth does not", async () => {
  const clock = new ManualClock();
  const lockout = createLockout(clock);
  failTimes(lockout, "192.0.2.1", 49);
  expect(lockout.secondsLeft("192.0.2.1")).toBe(0);
  expect(lockout.failed("192.0.2.1")).toBe(true);
  expect(lockout.secondsLeft("192.0.2.1")).toBe(300);
  expect(lockout.secondsLeft("192.0.2.2")).toBe(0);
  await clock.advance(299_500);
  expect(lockout.secondsLeft("192.0.2.1")).toBe(1);
  await clock.advance(500);
  expect(lockout.secondsLeft("192.0.2.1")).toBe(0);
});

test("a success resets the count", () => {
  const lockout = createLockout(new ManualClock());
  failTimes(lockout, "192.0.2.1", 49);
  lockout.succeeded("192.0.2.1");
  failTimes(lockout, "192.0.2.1", 49);
  expect(lockout.secondsLeft("192.0.2.1")).toBe(0);
});

test("failures spread over more than ten minutes do not add up", async () => {
  const clock = new ManualClock();
  const lockout = createLockout(clock);
  failTimes(lockout, "192.0.2.1", 49);
  await clock.advance(lockoutRule.windowMs + 1);
  failTimes(lockout, "192.0.2.1", 49);
  expect(lockout.secondsLeft("192.0.2.1")).toBe(0);
});

test("after a lock the count starts from zero", async () => {
  const clock = new ManualClock();
  const lockout = createLockout(clock);
  failTimes(lockout, "192.0.2.1", 50);
  failTimes(lockout, "192.0.2.1", 10); // while locked: neither counted nor prolonging
  await clock.advance(lockoutRule.lockMs);
  failTimes(lockout, "192.0.2.1", 49);
  expect(lockout.secondsLeft("192.0.2.1")).toBe(0);
  lockout.failed("192.0.2.1");
  expect(lockout.secondsLeft("192.0.2.1")).toBe(300);
});

test("a jump of the wall clock neither lengthens nor lifts a lock", async () => {
  const clock = new ManualClock();
  const lockout = createLockout(clock);
  failTimes(lockout, "192.0.2.1", 50);
  clock.jump(-3_600_000);
  expect(lockout.secondsLeft("192.0.2.1")).toBe(300);
  clock.jump(7_200_000);
  expect(lockout.secondsLeft("192.0.2.1")).toBe(300);
});

test("all addresses of one IPv6 /64 are one source", () => {
  const lockout = createLockout(new ManualClock());
  for (let i = 1; i <= 50; i++) lockout.failed(`2001:db8:1:2::${i.toString(16)}`);
  expect(lockout.secondsLeft("2001:db8:1:2:ffff::1")).toBe(300);
  expect(lockout.secondsLeft("2001:db8:1:3::1")).toBe(0);
});

test("memory is bounded: the source that failed longest ago is forgotten", () => {
  const lockout = createLockout(new ManualClock(), { ...lockoutRule, maxSources: 1000 });
  for (let i = 0; i < 5000; i++) lockout.failed(`10.0.${i >> 8}.${i & 255}`);
  expect(lockout.size).toBe(1000);
});

import { expect, test } from "vitest";
import { nextAttemptAt } from "../../src/queue/schedule.ts";

const minute = 60_000;
const hour = 60 * minute;
const schedule = {
  retryMs: [1, 5, 15, 30, 60, 120, 240].map((minutes) => minutes * minute),
  maxAgeMs: 48 * hour,
};
const exact = { delayMs: null, random: 0 };

test("retries after 1, 5, 15, 30 minutes, 1, 2, 4 hours and then every 4 hours", () => {
  const delays = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(
    (attempt) => (nextAttemptAt(schedule, attempt, 0, 0, exact)?.at ?? 0) / minute,
  );
  expect(delays).toEqual([1, 5, 15, 30, 60, 120, 240, 240, 240]);
});

test("spreads each delay by up to a fifth, never shortening it", () => {
  expect(nextAttemptAt(schedule, 1, 0, 0, { delayMs: null, random: 0.999999 })?.at).toBeCloseTo(
    1.2 * minute,
    -2,
  );
  expect(nextAttemptAt(schedule, 1, 0, 0, exact)?.at).toBe(minute);
});

test("a message that is 48 hours old is given up", () => {
  expect(nextAttemptAt(schedule, 9, 0, 48 * hour, exact)).toBeNull();
  expect(nextAttemptAt(schedule, 9, 0, 48 * hour - 1, exact)).not.toBeNull();
});

test("the last attempt falls on the expiry, not after it", () => {
  expect(nextAttemptAt(schedule, 9, 0, 47 * hour, exact)?.at).toBe(48 * hour);
});

test("a delay that the receiver names is obeyed as it is, up to an hour", () => {
  expect(nextAttemptAt(schedule, 3, 0, 0, { delayMs: 300_000, random: 0.9 })).toEqual({
    at: 300_000,
    decidedBy: "receiver",
  });
  expect(nextAttemptAt(schedule, 3, 0, 0, { delayMs: 7 * hour, random: 0 })?.at).toBe(hour);
});

test("a whole life of deferrals takes at most 48 hours and never a burst", () => {
  let now = 0;
  let attempt = 1;
  for (
    let next = nextAttemptAt(schedule, attempt, 0, now, exact);
    next;
    next = nextAttemptAt(schedule, attempt, 0, now, exact)
  ) {
    expect(next.at - now).toBeGreaterThanOrEqual(minute);
    now = next.at;
    attempt += 1;
  }
  expect(now).toBe(48 * hour);
  expect(attempt).toBeGreaterThan(15);
});

test.each([1_000, 61_000, 300_000])(
  "a delay of %d ms that the receiver names each time is obeyed five times, and then only where it is longer than the schedule's",
  (delayMs) => {
    const gaps: number[] = [];
    let now = 0;
    for (let attempt = 1; ; attempt++) {
      const next = nextAttemptAt(schedule, attempt, 0, now, { delayMs, random: 0 });
      if (next === null) break;
      gaps.push(next.at - now);
      expect(next.decidedBy).toBe(attempt <= 5 ? "receiver" : "schedule");
      now = next.at;
    }
    expect(gaps.slice(0, 7)).toEqual([...Array<number>(5).fill(delayMs), 2 * hour, 4 * hour]);
    expect(gaps.length).toBeLessThan(25);
  },
);

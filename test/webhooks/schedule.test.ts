import { expect, test } from "vitest";
import { maxAttempts, nextAttemptAt } from "../../src/webhooks/schedule.ts";

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
/** The default of `webhooks.schedule`. */
const scheduleMs = [
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  hour,
  2 * hour,
  4 * hour,
  8 * hour,
  8 * hour,
];

test("ten attempts at exactly the ten cumulative times of the retry table, then no more", () => {
  const at: number[] = [0];
  for (let attempt = 1; ; attempt++) {
    const next = nextAttemptAt(attempt, at[attempt - 1] ?? 0, scheduleMs);
    if (next === null) break;
    at.push(next);
  }
  const minutes = at.map((ms) => ms / minute);
  expect(minutes).toEqual([0, 0.5, 2.5, 12.5, 42.5, 102.5, 222.5, 462.5, 942.5, 1422.5]);
  expect(maxAttempts(scheduleMs)).toBe(10);
});

test("a delay counts from when the attempt failed", () => {
  expect(nextAttemptAt(2, 1_000_000, scheduleMs)).toBe(1_000_000 + 2 * minute);
});

test("an interrupted attempt beyond the last is not due again", () => {
  expect(nextAttemptAt(11, 0, scheduleMs)).toBeNull();
});

test("a longer list of delays does not make more than ten attempts, a shorter one makes fewer", () => {
  const long = Array<number>(20).fill(second);
  expect([nextAttemptAt(9, 0, long), nextAttemptAt(10, 0, long), maxAttempts(long)]).toEqual([
    second,
    null,
    10,
  ]);
  expect([nextAttemptAt(1, 0, [second]), nextAttemptAt(2, 0, [second]), maxAttempts([second])]).toEqual([
    second,
    null,
    2,
  ]);
});

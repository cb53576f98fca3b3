import { expect, test } from "vitest";
import { createQueueLimit } from "../../src/store/queue-limit.ts";

const most = 1000;
const full = (unsent: number) => {
  const tally = { unsent };
  return { tally, isFull: createQueueLimit(tally) };
};

test("it is full at its limit, and not before", () => {
  const { tally, isFull } = full(999);
  expect(isFull(most, 0)).toBe(false);
  tally.unsent = 1000;
  expect(isFull(most, 0)).toBe(true);
  expect(isFull(0, 0), "no limit").toBe(false);
});

test("once full, it takes mail again when a twentieth is free and a second is over", () => {
  const { tally, isFull } = full(1000);
  expect(isFull(most, 0)).toBe(true);
  tally.unsent = 951;
  expect(isFull(most, 5000)).toBe(true);
  tally.unsent = 950;
  expect(isFull(most, 999)).toBe(true);
  expect(isFull(most, 1000)).toBe(false);
  tally.unsent = 999;
  expect(isFull(most, 1001), "open until it is full").toBe(false);
});

test("a queue that drains and fills a hundred times a second opens at most once a second", () => {
  const { tally, isFull } = full(1000);
  let opened = 0;
  let wasFull = isFull(most, 0);
  for (let at = 0; at < 10_000; at++) {
    if (isFull(most, at)) tally.unsent = Math.max(0, tally.unsent - 10);
    else tally.unsent = Math.min(most, tally.unsent + 50);
    const now = isFull(most, at);
    if (wasFull && !now) opened += 1;
    wasFull = now;
  }
  expect(opened).toBeGreaterThan(0);
  expect(opened).toBeLessThanOrEqual(10);
});

test("a clock that was set back shuts nobody out", () => {
  const { tally, isFull } = full(1000);
  expect(isFull(most, 1_000_000)).toBe(true);
  tally.unsent = 10;
  expect(isFull(most, 5)).toBe(false);
});

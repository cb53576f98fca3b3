import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { dayMs, systemClock } from "../src/clock.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test.each([30, 365])("a timer of %i days runs once, when they have passed, and not at once", async (days) => {
  let runs = 0;
  systemClock.after(days * dayMs, () => void runs++);
  await vi.advanceTimersByTimeAsync(days * dayMs - 1);
  expect(runs).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(runs).toBe(1);
  await vi.advanceTimersByTimeAsync(days * dayMs);
  expect(runs).toBe(1);
});

test("no delay is handed to Node that it would turn into one millisecond", () => {
  const set = vi.spyOn(globalThis, "setTimeout");
  systemClock.after(72 * 365 * dayMs, () => undefined).cancel();
  expect(set.mock.calls.map(([, ms]) => ms)).toEqual([2 ** 31 - 1]);
  set.mockRestore();
});

test("a timer of 30 days that is cancelled in its second part never runs", async () => {
  let runs = 0;
  const timer = systemClock.after(30 * dayMs, () => void runs++);
  await vi.advanceTimersByTimeAsync(29 * dayMs);
  timer.cancel();
  await vi.advanceTimersByTimeAsync(30 * dayMs);
  expect(runs).toBe(0);
});

test("a delay in the past runs next", async () => {
  const run = vi.fn<() => void>();
  systemClock.after(-dayMs, run);
  expect(run).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(0);
  expect(run).toHaveBeenCalledOnce();
});

// The clock of the program, on timers that the test holds. Files share a worker, so the real ones are put back whatever
// happens.
import { afterEach, expect, test, vi } from "vitest";
import { dayMs, systemClock } from "../src/clock.ts";

/** Timers that were set and neither ran nor were cancelled, in their order. */
let timers: { ms: number; run: () => void }[] = [];
const held = <T>(work: () => T): T => {
  vi.spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void, ms: number) => {
    const timer = { ms, run };
    timers.push(timer);
    return timer;
  }) as never);
  vi.spyOn(globalThis, "clearTimeout").mockImplementation(
    (timer) => void (timers = timers.filter((other) => other !== (timer as unknown))),
  );
  try {
    return work();
  } finally {
    vi.restoreAllMocks();
  }
};
afterEach(() => (timers = []));

/** Lets the next timer run, and answers how long it had to wait. */
const passNext = (): number => {
  const next = timers.shift();
  if (!next) throw new Error("no timer waits");
  held(next.run);
  return next.ms;
};

test.each([30, 365])("a timer of %i days runs once, when they have passed, and not at once", (days) => {
  const run = vi.fn<() => void>();
  held(() => systemClock.after(days * dayMs, run));
  let passed = 0;
  while (timers.length > 0) {
    expect(run).not.toHaveBeenCalled();
    passed += passNext();
  }
  expect([run.mock.calls.length, passed]).toEqual([1, days * dayMs]);
});

test("no delay is handed to Node that it would turn into one millisecond", () => {
  held(() => systemClock.after(72 * 365 * dayMs, () => undefined));
  expect(timers.map(({ ms }) => ms)).toEqual([2 ** 31 - 1]);
});

test("a timer of 30 days that is cancelled in its second part never runs", () => {
  const timer = held(() => systemClock.after(30 * dayMs, () => undefined));
  passNext();
  expect(timers).toHaveLength(1);
  held(() => timer.cancel());
  expect(timers).toEqual([]);
});

test("a delay in the past runs next", () => {
  const run = vi.fn<() => void>();
  held(() => systemClock.after(-dayMs, run));
  expect(run).not.toHaveBeenCalled();
  expect(passNext()).toBe(0);
  expect(run).toHaveBeenCalledOnce();
});

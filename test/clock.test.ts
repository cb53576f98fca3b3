import { expect, test, vi } from "vitest";
import { dayMs, systemClock } from "../src/clock.ts";

test("no delay is handed to Node that it would turn into one millisecond", () => {
  const set = vi.spyOn(globalThis, "setTimeout");
  try {
    systemClock.after(72 * 365 * dayMs, () => undefined).cancel();
    expect(set.mock.calls.map(([, ms]) => ms)).toEqual([2 ** 31 - 1]);
  } finally {
    set.mockRestore();
  }
});

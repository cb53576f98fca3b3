import { expect, test } from "vitest";
import { createProcessorTime } from "../../src/parsing/processor-time.ts";
import { ManualClock } from "../support/clock.ts";

const rule = { burstMs: 1_000, share: 1 / 4 };

function timed(clock: ManualClock, turn: Promise<void>): { at: number | null } {
  const seen: { at: number | null } = { at: null };
  void turn.then(() => (seen.at = clock.monotonic()));
  return seen;
}

test("a burst is free; what is beyond it waits until the account's share of the processor has paid for it", async () => {
  const clock = new ManualClock();
  const time = createProcessorTime(clock, rule);
  const began = clock.monotonic();
  time.spent("a", 1_000);
  const free = timed(clock, time.turn("a"));
  await clock.advance(0);
  expect(free.at).toBe(began);
  time.spent("a", 50);
  const late = timed(clock, time.turn("a"));
  await clock.advance(199);
  expect(late.at).toBeNull();
  await clock.advance(1);
  expect(late.at).toBe(began + 200);
});

test("one account's use is not another's, and time that passes gives the burst back and no more", async () => {
  const clock = new ManualClock();
  const time = createProcessorTime(clock, rule);
  time.spent("a", 5_000);
  const other = timed(clock, time.turn("b"));
  await clock.advance(60_000);
  expect(other.at).not.toBeNull();
  time.spent("a", 1_001);
  const late = timed(clock, time.turn("a"));
  await clock.advance(3);
  expect(late.at).toBeNull();
  await clock.advance(1);
  expect(late.at).not.toBeNull();
});

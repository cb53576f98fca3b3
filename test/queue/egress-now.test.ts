// What the egress says of now: where attempts run, and where receivers have slowed us down.
import { expect, test } from "vitest";
import { systemSources } from "../../src/pools/sources.ts";
import { createWarmupCounts } from "../../src/pools/warmup-counts.ts";
import { createEgress, type TakenSlot } from "../../src/queue/egress.ts";
import { createShaping } from "../../src/queue/shaping.ts";
import { ManualClock } from "../support/clock.ts";

function rig() {
  const clock = new ManualClock();
  const egress = createEgress<object>({
    shaping: createShaping(null),
    warmups: createWarmupCounts(clock),
    clock,
    random: () => 0,
  });
  const take = (group: string): TakenSlot<object> => {
    const slot = egress.take(egress.slots(systemSources.usable(null), group));
    if (!slot) throw new Error(`no slot at ${group}`);
    return slot;
  };
  return { clock, egress, take };
}

test("what runs is listed while it runs", () => {
  const { egress, take } = rig();
  const slot = take("a.test");
  take("b.test");
  expect(egress.now(10).running).toEqual([
    { group: "a.test", address: null, taken: 1 },
    { group: "b.test", address: null, taken: 1 },
  ]);
  egress.leave(slot, true);
  expect(egress.now(10).running).toEqual([{ group: "b.test", address: null, taken: 1 }]);
});

test("where we are slowed down stands the latest first, as many as are asked for, until it has come back", async () => {
  const { clock, egress, take } = rig();
  for (const group of ["a.test", "b.test", "c.test"]) {
    take(group).limiter.throttle.slowDown(`421 ${group}`);
    await clock.advance(1000);
  }
  take("fast.test");
  const of = (most: number) =>
    egress.now(most).slowed.map(({ group, factor, slowed }) => [group, factor < 1, slowed?.reply]);
  expect(of(2)).toEqual([
    ["c.test", true, "421 c.test"],
    ["b.test", true, "421 b.test"],
  ]);
  expect(of(9).length).toBe(3);
  await clock.advance(10 * 60_000);
  expect(of(9)).toEqual([]);
});

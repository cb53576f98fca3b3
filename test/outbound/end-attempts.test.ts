import { expect, test } from "vitest";
import { endAttemptsAtStop } from "../../src/outbound/end-attempts.ts";
import type { Runner } from "../../src/queue/runner.ts";
import { fake } from "../http/harness.ts";
import { ManualClock } from "../support/clock.ts";

/** A queue whose attempts end when `end` is called, or when they are cut. */
function makeRig() {
  const clock = new ManualClock();
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const cuts: number[] = [];
  const cutShort = (): void => {
    cuts.push(clock.monotonic());
    end();
  };
  const queue = fake<Runner>("runner", { stop: () => promise });
  return { clock, end, cuts, runner: endAttemptsAtStop(queue, { cutShort }, clock) };
}

test("attempts that end by themselves are not cut", async () => {
  const { runner, clock, end, cuts } = makeRig();
  const stopped = runner.stop();
  await clock.advance(4_999);
  end();
  await stopped;
  expect([cuts, clock.pending]).toEqual([[], 0]);
});

test("attempts that run 5 seconds after the stop began are cut", async () => {
  const { runner, clock, cuts } = makeRig();
  const stopped = runner.stop();
  await clock.advance(5_000);
  await stopped;
  expect(cuts).toEqual([5_000]);
});

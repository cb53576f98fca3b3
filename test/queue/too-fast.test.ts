// A receiver that takes five connections at once and refuses what comes beyond them, as large providers do.
import { expect, test } from "vitest";
import { deferredOutcome, deliveredOutcome } from "../support/jobs.ts";
import { bench, jobsOf } from "./runner-rig.ts";

const second = 1_000;
const takes = 5;

test("two minutes after a receiver of five connections refused ten, at most one attempt in a hundred is refused", async () => {
  const { queue, clock, runner, begun, finish } = bench({ hangs: ["x.test"] });
  for (const job of jobsOf("x.test", 1, 3_000)) queue.add(job, clock.now());
  await runner.start();
  const after = { attempts: 0, refused: 0 };
  let first = 0;
  let seen = 0;
  for (let at = 0; at < 600; at++) {
    await clock.advance(second); // which an attempt takes
    const running = begun.slice(seen);
    seen = begun.length;
    for (const i of running.keys()) {
      const refused = i >= takes;
      if (at === 0 && refused) first++;
      if (at >= 120) after.attempts++;
      if (at >= 120 && refused) after.refused++;
      finish("x.test", refused ? deferredOutcome({ classification: "rate_limited" }) : deliveredOutcome());
    }
  }
  expect(first).toBe(5);
  expect(after.attempts).toBeGreaterThan(1_500);
  expect(after.refused).toBeLessThanOrEqual(after.attempts / 100);
});

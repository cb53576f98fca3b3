// Addresses that warm up: the caps of the day, the mail beyond them, and that none is held for good.
import { describe, expect, test } from "vitest";
import { dayMs, hourMs } from "../../src/clock.ts";
import type { Source } from "../../src/pools/sources.ts";
import { deferredOutcome, deliveredOutcome, makeJob, makeTrace } from "../support/jobs.ts";
import { createWarmupCounts } from "../../src/pools/warmup-counts.ts";
import { ManualClock } from "../support/clock.ts";
import { bench, from, type Bench } from "./runner-rig.ts";

const start = new Date("2026-11-29T00:00:00Z").getTime();
const warm = from("192.0.2.1");
const cold: Source = { ...from("192.0.2.2"), warmingSince: start };

/** Attempts that reach the server, as far as the source is one that does. */
async function started(options: Parameters<typeof bench>[0], messages: number): Promise<Bench> {
  const rig = bench({
    takes: ({ address }) => ({
      ms: 100,
      outcome: { ...deliveredOutcome(), trace: makeTrace({ sendingIp: address }) },
    }),
    ...options,
  });
  await rig.clock.advance(start - rig.clock.now());
  await rig.runner.start();
  add(rig, 0, messages);
  return rig;
}

function add({ queue, runner, clock }: Bench, first: number, count: number): void {
  for (let i = first; i < first + count; i++) {
    const job = makeJob(i, { domain: "x.test" });
    queue.add({ ...job, message: { ...job.message, queuedAt: clock.now() } }, clock.now());
  }
  runner.note("1.default/x.test", clock.now());
}

const of = ({ left }: Bench, source: Source): number =>
  left.filter((entry) => entry.source === source).length;

describe("where every address has sent what its warm-up allows", () => {
  test("mail waits, untried, and goes over the cap six hours after it was accepted", async () => {
    const rig = await started({ sources: () => [cold] }, 200);
    await rig.clock.advance(5 * hourMs);
    expect([of(rig, cold), rig.queue.settled.length, rig.queue.leased.size]).toEqual([50, 50, 0]);
    await rig.clock.advance(hourMs + 120_000);
    expect(rig.queue.settled).toHaveLength(200);
    expect(rig.left.every(({ job }) => job.attempt === 1)).toBe(true);
  });

  test("mail of the evening is sent within the cap of the next day", async () => {
    const rig = await started({ sources: () => [cold] }, 50);
    await rig.clock.advance(22 * hourMs);
    add(rig, 50, 100);
    await rig.clock.advance(2 * hourMs - 1000);
    expect(of(rig, cold)).toBe(50);
    await rig.clock.advance(120_000);
    expect(of(rig, cold)).toBe(50 + 71);
  });

  test("an acceptance promises no slot", async () => {
    const rig = await started({ sources: () => [cold] }, 50);
    await rig.clock.advance(10_000);
    expect([of(rig, cold), rig.runner.reserve("1.default/x.test")]).toEqual([50, null]);
  });

  test("a warm address that comes takes the mail within an hour", async () => {
    let pool = [cold];
    const rig = await started({ sources: () => pool }, 100);
    await rig.clock.advance(60_000);
    pool = [cold, warm];
    rig.runner.onSourcesChanged();
    await rig.clock.advance(hourMs + 60_000);
    expect([of(rig, cold), of(rig, warm)]).toEqual([50, 50]);
  });
});

test("what is beyond the cap leaves from the warm addresses of the pool at once", async () => {
  const rig = await started({ sources: () => [cold, warm] }, 400);
  await rig.clock.advance(60_000);
  expect([of(rig, cold), of(rig, warm)]).toEqual([50, 350]);
  expect(rig.queue.settled.filter(({ warmup }) => warmup !== null)).toHaveLength(50);
});

test("an address takes its share alone when a new day raises its cap, and makes up for nothing", async () => {
  const rig = await started({ sources: () => [cold, warm] }, 1000);
  await rig.clock.advance(24 * hourMs);
  expect([of(rig, cold), of(rig, warm)]).toEqual([50, 950]);
  add(rig, 1000, 1000);
  await rig.clock.advance(500);
  const [colds, warms] = [of(rig, cold) - 50, of(rig, warm) - 950];
  expect(colds).toBeGreaterThan(25);
  expect(Math.abs(colds - warms)).toBeLessThan(20);
});

test("an attempt that reached no server counts nothing, one that was refused does", async () => {
  let reaches = false;
  const rig = await started(
    {
      sources: () => [cold],
      takes: ({ address }) => ({
        ms: 100,
        outcome: deferredOutcome({ trace: makeTrace({ sendingIp: reaches ? address : null }) }),
      }),
    },
    60,
  );
  await rig.clock.advance(10_000);
  expect(of(rig, cold)).toBe(60);
  reaches = true;
  await rig.clock.advance(hourMs);
  expect(of(rig, cold)).toBe(110);
});

test("each destination group of a provider counts at the same cap, for all its addresses each for itself", async () => {
  const other: Source = { ...from("192.0.2.3"), warmingSince: start };
  const rig = await started({ sources: () => [cold, other] }, 0);
  for (let i = 0; i < 200; i++) {
    const job = makeJob(i, { domain: `d${i}.test`, queueName: `1.default/d${i}.test` });
    rig.queue.add({ ...job, message: { ...job.message, queuedAt: rig.clock.now() } }, rig.clock.now());
    rig.runner.note(job.queueName, rig.clock.now());
  }
  await rig.clock.advance(60_000);
  expect([of(rig, cold), of(rig, other)]).toEqual([50, 50]);
});

test("a long backlog at its cap is looked at once an hour, and none of it is lost", async () => {
  const rig = await started({ sources: () => [cold] }, 3000);
  await rig.clock.advance(10 * 60_000);
  expect([of(rig, cold), rig.queue.waiting.length]).toEqual([50, 2950]);
  const claims = rig.queue.claims.length;
  await rig.clock.advance(40 * 60_000);
  expect(rig.queue.claims.length - claims).toBeLessThan(5);
  await rig.clock.advance(2 * dayMs);
  expect(rig.queue.settled).toHaveLength(3000);
});

test("a clock that was days ahead for a moment does not end the counting by days", () => {
  const clock = new ManualClock(start);
  const counts = createWarmupCounts(clock);
  const cap = counts.capAt(cold, "google");
  const sentAll = (): number => {
    let sent = 0;
    for (; cap?.isReached() === false && sent < 1000; sent++) cap.count();
    return sent;
  };
  expect(sentAll()).toBe(50);
  clock.jump(-1000);
  expect(sentAll(), "back over midnight").toBe(0);
  clock.jump(10 * dayMs);
  expect(cap?.isReached()).toBe(false);
  clock.jump(1000 - 9 * dayMs);
  expect([sentAll(), sentAll()]).toEqual([71, 0]);
  clock.jump(dayMs);
  expect(sentAll()).toBe(100);
});

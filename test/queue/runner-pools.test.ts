// Which of a pool's addresses mail leaves from, and within whose limits.
import { describe, expect, test } from "vitest";
import type { Source } from "../../src/pools/sources.ts";
import { deferredOutcome, makeJob } from "../support/jobs.ts";

import { bench, from, jobsOf, system } from "./runner-rig.ts";

describe("a pool's addresses", () => {
  const [one, two] = [from("192.0.2.1", 9), from("192.0.2.2")];

  test("have the limits of a group each for itself, and are full at once where much waits", async () => {
    const { queue, clock, runner, left } = bench({ hangs: ["x.test"], sources: () => pool });
    const pool = [one, two];
    for (const job of jobsOf("x.test", 1, 100)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(1000);
    const of = (source: Source): number => left.filter((entry) => entry.source === source).length;
    expect([of(one), of(two)]).toEqual([10, 10]);
  });

  test("share the mail by their weights", async () => {
    const pool = [one, two];
    const { queue, clock, runner, left } = bench({
      sources: () => pool,
      shaping: { groups: { "x.test": { connections: 1000, per_second: 100_000 } } },
    });
    for (const job of jobsOf("x.test", 1, 1000)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(10_000);
    expect(left).toHaveLength(1000);
    const share = left.filter(({ source }) => source === one).length;
    expect(share).toBeGreaterThan(850); // 900 are expected, five standard deviations are 47
    expect(share).toBeLessThan(950);
  });

  test("slow down each for itself when a receiver says that we are too fast", async () => {
    const pool = [one, two];
    const { queue, clock, runner, left, finish } = bench({ hangs: ["x.test"], sources: () => pool });
    for (const job of jobsOf("x.test", 1, 100)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(1000);
    const [first] = left;
    if (!first) throw new Error("nothing began");
    finish("x.test", deferredOutcome({ classification: "rate_limited" }));
    for (let i = 0; i < 19; i++) finish("x.test");
    await clock.advance(2000);
    const after = left.slice(20);
    expect(after.filter(({ source }) => source === first.source)).toHaveLength(5);
    expect(after.filter(({ source }) => source !== first.source)).toHaveLength(10);
  });

  test("that none of can be used hold the mail untried, until one can", async () => {
    let pool: Source[] = [];
    const noSource: string[] = [];
    const { queue, clock, runner, left } = bench({ sources: () => pool, noSource });
    await runner.start();
    runner.onSourcesChanged();
    expect(noSource).toEqual([]); // no mail waits for it
    for (const job of jobsOf("x.test", 1, 5)) queue.add(job, clock.now());
    runner.note("1.default/x.test", clock.now());
    await clock.advance(3 * 86_400_000);
    expect([left.length, queue.claims.length, queue.settled.length]).toEqual([0, 0, 0]);
    expect(new Set(noSource)).toEqual(new Set(["1.default/x.test"]));
    expect(runner.reserve("1.default/x.test")).toBeNull();
    pool = [two];
    runner.onSourcesChanged();
    await clock.advance(100);
    expect(queue.settled).toHaveLength(5);
    expect(left.every(({ source }) => source === two)).toBe(true);
  });

  test("that came or went are routed by at once, not by what was known of the destination before", async () => {
    let routed = 0;
    const { clock, runner } = bench({
      routing: async () => {
        routed += 1;
      },
    });
    await runner.start();
    const due = async (): Promise<void> => {
      runner.note("1.default/x.test", clock.now());
      await clock.advance(100);
    };
    await due();
    await due();
    expect(routed).toBe(1);
    runner.onSourcesChanged();
    expect(runner.reserve("1.default/x.test")).toBeNull();
    await due();
    expect(routed).toBe(2);
  });

  test("that are paused while mail is claimed take none of it; what was claimed goes back untried", async () => {
    let pool = [one];
    const { queue, clock, runner, left, finish } = bench({ hangs: ["x.test"], sources: () => pool });
    for (const job of jobsOf("x.test", 1, 50)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(100);
    expect(left).toHaveLength(10);
    pool = [];
    runner.onSourcesChanged();
    for (let i = 0; i < 10; i++) finish("x.test");
    await clock.advance(60_000);
    expect([left.length, queue.settled.length, queue.leased.size]).toEqual([10, 10, 0]);
    pool = [two];
    runner.onSourcesChanged();
    await clock.advance(100);
    expect(left.slice(10).every(({ source, job }) => source === two && job.attempt === 1)).toBe(true);
    expect(left).toHaveLength(20);
  });

  test("that turn out to be gone cost the mail no attempt, and it is tried again soon", async () => {
    let gone = true;
    const pool = [one];
    const { queue, clock, runner, left } = bench({ sources: () => pool, unsent: () => gone });
    queue.add(makeJob(1), clock.now());
    await runner.start();
    await clock.advance(9_000);
    expect([left.length, queue.settled.length]).toEqual([1, 0]);
    gone = false;
    await clock.advance(2_000);
    expect([left.length, queue.settled.length]).toEqual([2, 1]);
    expect(left[1]?.job.attempt).toBe(1);
  });

  test("never send another pool's mail, whatever is paused and resumed meanwhile", async () => {
    const pools: Record<string, Source[]> = { a: [one], b: [two], c: [...system] };
    const random = lcg(7);
    const { queue, clock, runner, left } = bench({
      readyQueueOf: (queueName) => queueName,
      groupOf: () => "x.test",
      sources: (queueName) => pools[queueName.slice(2, 3)] ?? [],
      random,
    });
    for (let i = 0; i < 300; i++) {
      const name = "abc".charAt(Math.floor(random() * 3));
      queue.add(makeJob(i, { queueName: `1.${name}/x.test` }), clock.now() + Math.floor(random() * 20_000));
    }
    await runner.start();
    const own: Record<string, Source[]> = { a: [one], b: [two] };
    for (let i = 0; i < 100; i++) {
      const name = random() < 0.5 ? "a" : "b";
      pools[name] = random() < 0.5 ? [] : [...(own[name] ?? [])];
      runner.onSourcesChanged();
      await clock.advance(250);
    }
    Object.assign(pools, own);
    runner.onSourcesChanged();
    await clock.advance(60_000);
    expect(queue.settled).toHaveLength(300);
    for (const { job, source } of left)
      expect(source.address).toBe({ a: one.address, b: two.address, c: null }[job.queueName.slice(2, 3)]);
  });

  test("of one group of hosts serve two pools' ready queues by turns", async () => {
    const { queue, clock, runner, left, finish } = bench({
      hangs: ["x.test"],
      readyQueueOf: (queueName) => queueName,
      groupOf: () => "x.test",
    });
    for (let i = 0; i < 60; i++) queue.add(makeJob(i, { queueName: "1.a/x.test" }), clock.now());
    for (let i = 100; i < 160; i++) queue.add(makeJob(i, { queueName: "2.a/x.test" }), clock.now());
    await runner.start();
    await clock.advance(100);
    for (let i = 0; i < 40; i++) {
      finish("x.test");
      await clock.advance(50);
    }
    const second = left.filter(({ job }) => job.queueName === "2.a/x.test").length;
    expect(left).toHaveLength(50);
    expect(second).toBeGreaterThanOrEqual(15);
  });
  describe("of the other family take what found no connection", () => {
    const six: Source = from("2001:db8::1");
    const rig = (options: Parameters<typeof bench>[0] = {}) =>
      bench({ sources: () => pool, sourcesOf: (family) => (family === 6 ? [six] : pool), ...options });
    const pool = [one];

    test("with that address's slots, and give those of the first back at once", async () => {
      const { queue, clock, runner, left, finish } = rig({
        hangs: ["x.test"],
        moves: ({ key }) => key <= 10,
      });
      for (const job of jobsOf("x.test", 1, 40)) queue.add(job, clock.now());
      await runner.start();
      await clock.advance(1000);
      const of = (source: Source): number => left.filter((entry) => entry.source === source).length;
      expect([of(six), of(one)]).toEqual([10, 10]);
      for (let i = 0; i < 20; i++) finish("x.test");
      await clock.advance(1000);
      expect([of(six), of(one)]).toEqual([10, 20]);
      expect(runner.counts().active).toBe(10);
    });

    test("only as far as that address has room; the others stay at theirs", async () => {
      const { queue, clock, runner, left } = rig({ hangs: ["x.test"], moves: () => true });
      for (const job of jobsOf("x.test", 1, 40)) queue.add(job, clock.now());
      await runner.start();
      await clock.advance(1000);
      const of = (source: Source): number => left.filter((entry) => entry.source === source).length;
      expect([of(six), of(one)]).toEqual([10, 10]);
    });

    test("and a receiver that says we are too fast slows down the address that it said it to", async () => {
      const shaping = { groups: { "x.test": { connections: 1 } } };
      let moves = true;
      const { queue, clock, runner, left, finish } = rig({ hangs: ["x.test"], shaping, moves: () => moves });
      for (const job of jobsOf("x.test", 1, 3)) queue.add(job, clock.now());
      await runner.start();
      await clock.advance(10);
      moves = false;
      finish("x.test", deferredOutcome({ classification: "rate_limited" }));
      await clock.advance(2000);
      expect(left.map(({ source }) => source)).toEqual([six, one]);
    });
  });
});

/** Numbers that are the same at each run. */
function lcg(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}

// A pool's weights: each address sends its share where every address has more mail than it may send, and none stops the others.
import { expect, test } from "vitest";
import type { Source } from "../../src/pools/sources.ts";
import { deferredOutcome, makeJob } from "../support/jobs.ts";
import { bench, from, jobsOf, type Bench } from "./runner-rig.ts";

const [six, three, one] = [from("192.0.2.6", 6), from("192.0.2.3", 3), from("192.0.2.1", 1)];
const pool = [three, six, one];

/** Which share of the attempts left from each of the pool. */
const shares = ({ left }: Pick<Bench, "left">, of: readonly Source[] = [six, three, one]): number[] =>
  of.map((source) => left.filter((entry) => entry.source === source).length / left.length);

const hold = (found: number[]): void =>
  [0.6, 0.3, 0.1].forEach((weight, i) => {
    expect(found[i]).toBeGreaterThan(weight * 0.95);
    expect(found[i]).toBeLessThan(weight * 1.05);
  });

async function started(options: Parameters<typeof bench>[0], messages: number): Promise<Bench> {
  const rig = bench({ sources: () => pool, random: lcg(11), ...options });
  for (const job of jobsOf("x.test", 1, messages)) rig.queue.add(job, rig.clock.now());
  await rig.runner.start();
  return rig;
}

test("weights hold where every address has a backlog and the same limits", async () => {
  const rig = await started({ takes: () => ({ ms: 200 }) }, 3000);
  await rig.clock.advance(20_000);
  expect(rig.left.length).toBeGreaterThan(1000); // 50 a second from the first address, 83 from all
  expect(rig.left.length).toBeLessThan(2000);
  hold(shares(rig));
});

test("weights hold where some attempts take much longer than others", async () => {
  const random = lcg(5);
  const rig = await started({ takes: () => ({ ms: 20 + 3000 * random() ** 4 }) }, 3000);
  await rig.clock.advance(25_000);
  expect(rig.left.length).toBeGreaterThan(400);
  hold(shares(rig));
});

test("weights hold where one attempt at a time is allowed, and where only the rate is limited", async () => {
  const single = await started(
    { takes: () => ({ ms: 700 }), shaping: { groups: { "x.test": { connections: 1 } } } },
    3000,
  );
  await single.clock.advance(300_000);
  hold(shares(single));
  const slow = await started(
    { shaping: { groups: { "x.test": { connections: 100, per_second: 5 } } } },
    3000,
  );
  await slow.clock.advance(60_000);
  expect(slow.left.length).toBeLessThan(600);
  hold(shares(slow));
});

test("equal weights leave no address unused while it has room", async () => {
  const equal = [from("192.0.2.1"), from("192.0.2.2"), from("192.0.2.3")];
  const random = lcg(3);
  const rig = await started({ sources: () => equal, takes: () => ({ ms: 100 + 200 * random() }) }, 5000);
  await rig.clock.advance(20_000);
  expect(rig.left.length).toBeGreaterThan(0.9 * 3000); // 30 attempts at a time, 5 in a second each
});

test("weights hold over many destinations that get a message each", async () => {
  const rig = bench({ sources: () => pool, random: lcg(17) });
  for (let i = 0; i < 3000; i++)
    rig.queue.add(makeJob(i, { domain: `d${i}.test`, queueName: `1.default/d${i}.test` }), rig.clock.now());
  await rig.runner.start();
  await rig.clock.advance(10_000);
  expect(rig.left).toHaveLength(3000);
  const found = shares(rig); // by chance: five standard deviations are 0.045
  [0.6, 0.3, 0.1].forEach((weight, i) => expect(Math.abs((found[i] ?? 0) - weight)).toBeLessThan(0.045));
});

test("an address whose attempts hang stops the others for half a second, and makes up for nothing afterwards", async () => {
  let hangs = true;
  const rig = await started({ takes: ({ weight }) => ({ ms: hangs && weight === 6 ? 30_000 : 200 }) }, 5000);
  await rig.clock.advance(10_000);
  const of = (source: Source): number => rig.left.filter((entry) => entry.source === source).length;
  expect(of(six)).toBe(10);
  expect(of(three)).toBeGreaterThan(400); // 50 a second
  expect(of(one)).toBeGreaterThan(130); // a third of the others'
  hangs = false;
  await rig.clock.advance(20_000);
  const before = rig.left.length;
  await rig.clock.advance(10_000);
  hold(shares({ left: rig.left.slice(before) }));
});

test("an address that one receiver serves much more slowly than the others does not set their speed", async () => {
  const rig = await started({ takes: ({ weight }) => ({ ms: weight === 6 ? 20_000 : 200 }) }, 5000);
  await rig.clock.advance(60_000);
  const others = rig.left.filter(({ source }) => source !== six).length;
  expect(others).toBeGreaterThan(0.5 * 60 * 66); // 66 a second where nothing is waited for
});

test("an address that the receiver slows down sends less, and the others no less", async () => {
  let last = -Infinity;
  const rig = await started(
    {
      takes: ({ weight }, { key }) => {
        const slowed = weight === 6 && key - last > 100;
        if (slowed) last = key;
        return { ms: 200, outcome: slowed ? deferredOutcome({ classification: "rate_limited" }) : undefined };
      },
    },
    8000,
  );
  await rig.clock.advance(60_000);
  const before = rig.left.length;
  await rig.clock.advance(10_000);
  const left = rig.left.slice(before);
  const of = (source: Source): number => left.filter((entry) => entry.source === source).length;
  expect(of(three)).toBeGreaterThan(400); // 50 a second
  expect(of(one)).toBeGreaterThan(130);
  expect(of(six)).toBeLessThan(200);
});

/** Numbers that are the same at each run. */
function lcg(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}

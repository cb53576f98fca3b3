import { expect, test } from "vitest";
import { createBuckets, rateTable, type RouteBucket } from "../../src/access/buckets.ts";
import type { Rates } from "../../src/model/limits.ts";
import { ManualClock } from "../support/clock.ts";

const spender = (key: number, rates: Rates = {}) => ({ key, rates });

/** How many of `tries` requests at one moment are let through. */
function burst(
  buckets: ReturnType<typeof createBuckets>,
  tries: number,
  bucket: RouteBucket,
  key = 1,
): number {
  return Array.from({ length: tries }, () => buckets.take(spender(key), spender(1), bucket)).filter(
    ({ allowed }) => allowed,
  ).length;
}

test("the table is the API's", () => {
  const rows = Object.entries(rateTable).map(
    ([name, { burst: most, perSecond }]) => `${name} ${most}/${perSecond}`,
  );
  expect(rows).toEqual([
    "messages-write 200/200",
    "messages-read 100/50",
    "suppressions-write 30/10",
    "suppressions-list 60/30",
    "suppressions-read 200/100",
    "suppressions-delete 30/10",
    "events-read 30/10",
    "stats-read 20/5",
    "webhooks-write 10/1",
    "default 100/30",
    "account 1000/1000",
    "unauthenticated 100/30",
    "open 100/30",
  ]);
});

test("of a burst of 300 exactly 200 pass, and the next says when", () => {
  const clock = new ManualClock();
  const buckets = createBuckets(clock);
  expect(burst(buckets, 300, "messages-write")).toBe(200);
  expect(buckets.take(spender(1), spender(1), "messages-write")).toEqual({
    allowed: false,
    bucket: "messages-write",
    limit: 200,
    remaining: 0,
    resetAt: Math.ceil(clock.now() / 1000 + 1),
    retryAfterSeconds: 1,
  });
});

test("refill is continuous and never exceeds the burst", async () => {
  const clock = new ManualClock();
  const buckets = createBuckets(clock);
  burst(buckets, 30, "events-read");
  await clock.advance(250);
  expect(burst(buckets, 30, "events-read")).toBe(2);
  await clock.advance(50); // with the half token that was left
  expect(burst(buckets, 30, "events-read")).toBe(1);
  await clock.advance(3_600_000);
  expect(burst(buckets, 100, "events-read")).toBe(30);
});

test("keys and buckets do not draw on one another", () => {
  const buckets = createBuckets(new ManualClock());
  burst(buckets, 200, "messages-write", 1);
  expect(burst(buckets, 200, "messages-write", 2)).toBe(200);
  expect(buckets.take(spender(1), spender(1), "messages-read")).toMatchObject({
    allowed: true,
    remaining: 99,
  });
});

test("ten keys of one account share its thousand, and the refusal names the bucket account", () => {
  const buckets = createBuckets(new ManualClock());
  let passed = 0;
  for (let key = 1; key <= 10; key++) passed += burst(buckets, 200, "messages-write", key);
  expect(passed).toBe(1000);
  expect(buckets.take(spender(11), spender(1), "messages-write")).toMatchObject({
    allowed: false,
    bucket: "account",
    limit: 1000,
  });
  expect(buckets.take(spender(11), spender(1), "messages-read").allowed).toBe(true);
  expect(buckets.take(spender(11), spender(2), "messages-write").allowed).toBe(true);
});

test("a request that the account's bucket refuses takes no token of the key's", () => {
  const buckets = createBuckets(new ManualClock(), { account: { burst: 5, perSecond: 1 } });
  expect(burst(buckets, 5, "messages-write", 1)).toBe(5);
  expect(burst(buckets, 50, "messages-write", 2)).toBe(0);
  expect(buckets.take(spender(2), spender(2), "messages-write").remaining).toBe(199);
});

test("several tokens are taken together or not at all, and the wait is until there are enough", () => {
  const clock = new ManualClock();
  const buckets = createBuckets(clock, { "messages-write": { burst: 10, perSecond: 2 } });
  expect(buckets.take(spender(1), spender(1), "messages-write", 6)).toMatchObject({
    allowed: true,
    remaining: 4,
  });
  expect(buckets.take(spender(1), spender(1), "messages-write", 7)).toMatchObject({
    allowed: false,
    remaining: 4,
    retryAfterSeconds: 2,
  });
  expect(buckets.take(spender(1), spender(1), "messages-write", 4)).toMatchObject({
    allowed: true,
    remaining: 0,
  });
});

test("a limit of the configuration replaces the table's", () => {
  const buckets = createBuckets(new ManualClock(), { "messages-write": { burst: 3, perSecond: 0.5 } });
  expect(burst(buckets, 10, "messages-write")).toBe(3);
  expect(buckets.take(spender(1), spender(1), "messages-write").retryAfterSeconds).toBe(2);
});

test("a wall clock that jumps back makes no negative wait and no free tokens", () => {
  const clock = new ManualClock();
  const buckets = createBuckets(clock);
  burst(buckets, 200, "messages-write");
  clock.jump(-25 * 3_600_000);
  const state = buckets.take(spender(1), spender(1), "messages-write");
  expect(state).toMatchObject({ allowed: false, retryAfterSeconds: 1 });
  clock.jump(50 * 3_600_000);
  expect(buckets.take(spender(1), spender(1), "messages-write").allowed).toBe(false);
});

test("a source without a key has its own bucket, shared by its /64", () => {
  const buckets = createBuckets(new ManualClock());
  for (let i = 0; i < 100; i++)
    expect(buckets.takeSource("unauthenticated", `2001:db8::${i.toString(16)}`).allowed).toBe(true);
  expect(buckets.takeSource("unauthenticated", "2001:db8::ffff")).toMatchObject({
    allowed: false,
    bucket: "unauthenticated",
  });
  expect(buckets.takeSource("unauthenticated", "192.0.2.1")).toMatchObject({ allowed: true, remaining: 99 });
});

test("buckets that are full again are forgotten", async () => {
  const clock = new ManualClock();
  const buckets = createBuckets(clock);
  for (let i = 0; i < 9_000; i++) buckets.takeSource("unauthenticated", `10.0.${i >> 8}.${i & 255}`);
  await clock.advance(10_000);
  for (let i = 0; i < 1_000; i++) buckets.takeSource("unauthenticated", `10.1.${i >> 8}.${i & 255}`);
  expect(buckets.size).toBeLessThanOrEqual(1_000);
});

test("ten thousand keys at once are limited each by itself, and forgotten once their buckets are full again", async () => {
  const clock = new ManualClock();
  const free = { burst: 1e6, perSecond: 1e6 };
  const buckets = createBuckets(clock, { account: free });
  let passed = 0;
  for (let key = 1; key <= 10_000; key++) passed += burst(buckets, 11, "webhooks-write", key);
  expect(passed).toBe(100_000);
  expect(buckets.size).toBe(10_001);
  await clock.advance(11_000);
  for (let i = 0; i < 10_000; i++) buckets.take(spender(1, { "stats-read": free }), spender(1), "stats-read");
  expect(buckets.size).toBeLessThan(10);
});

test("a rate that changes keeps what was spent, however often it changes", async () => {
  const clock = new ManualClock();
  const buckets = createBuckets(clock);
  const at = (most: number, perSecond = 1) =>
    buckets.take(spender(1, { "events-read": { burst: most, perSecond } }), spender(1), "events-read");
  expect(at(10).remaining).toBe(9);
  expect(at(100).remaining).toBe(98);
  expect(at(10).remaining).toBe(7);
  expect(at(3)).toMatchObject({ allowed: false, remaining: 0, limit: 3, retryAfterSeconds: 1 });
  await clock.advance(2_000);
  expect(at(3).remaining).toBe(1);
  expect(at(3, 0.001).remaining).toBe(0);
  expect(at(3, 0.001)).toMatchObject({ allowed: false, retryAfterSeconds: 1000 });
});

test("a large answer of an open route costs its source several tokens, at most what the bucket holds", () => {
  const clock = new ManualClock();
  const buckets = createBuckets(clock, { open: { burst: 50, perSecond: 10 } });
  expect(buckets.takeSource("open", "192.0.2.1", 20).remaining).toBe(30);
  expect(buckets.takeSource("open", "192.0.2.1", 20).remaining).toBe(10);
  expect(buckets.takeSource("open", "192.0.2.1", 20)).toMatchObject({ allowed: false, retryAfterSeconds: 1 });
  expect(buckets.refundSource("open", "192.0.2.1", 20).remaining).toBe(30);
  expect(buckets.takeSource("open", "192.0.2.2", 500)).toMatchObject({ allowed: true, remaining: 0 });
});

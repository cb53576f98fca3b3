// What the resolver remembers, for how long, and of whom.
import { expect, test } from "vitest";
import { createCache } from "../../src/dns/cache.ts";
import type { WireRecord } from "../../src/dns/message.ts";
import type { DnsAnswer } from "../../src/dns/resolver.ts";
import { ManualClock } from "../support/clock.ts";

const failed = { kind: "failed", why: "SERVFAIL" } as const;
const found = (records: number): DnsAnswer<WireRecord> => ({
  kind: "found",
  records: Array.from({ length: records }, () => ({
    name: "a.test",
    type: 1,
    ttlSeconds: 60,
    value: "192.0.2.1",
    preference: 0,
  })),
  ttlSeconds: 60,
  authenticated: false,
});

test("a full cache forgets what was put first", () => {
  const cache = createCache(new ManualClock(), { failureMs: 30_000, maxBytes: 700 });
  for (const key of ["a", "b", "c"]) cache.put(1, key, { kind: "nodata" }, 60);
  expect(["a", "b", "c"].map((key) => cache.get(key)?.kind)).toEqual([undefined, "nodata", "nodata"]);
});

test("an account with a million names pushes out its own, and no other's", () => {
  const cache = createCache(new ManualClock(), { failureMs: 30_000, maxBytes: 100_000 });
  for (let i = 0; i < 20; i++) cache.put(1, `mine${i}`, found(1), 60);
  for (let i = 0; i < 5000; i++) cache.put(2, `theirs${i}`, { kind: "nodata" }, 60);
  expect(Array.from({ length: 20 }, (_, i) => cache.get(`mine${i}`)?.kind)).toEqual(Array(20).fill("found"));
  expect(cache.get("theirs4999")?.kind).toBe("nodata");
  expect(cache.get("theirs0")).toBeNull();
});

test("answers of many records count for what they take, and one that is larger than all is not kept", () => {
  const cache = createCache(new ManualClock(), { failureMs: 30_000, maxBytes: 100_000 });
  for (let i = 0; i < 20; i++) cache.put(1, `small${i}`, found(1), 60);
  cache.put(2, "big", found(512), 60);
  cache.put(2, "another", found(512), 60);
  expect(cache.get("big")).toBeNull();
  expect(cache.get("another")).not.toBeNull();
  expect(cache.get("small0")).not.toBeNull();
  cache.put(2, "huge", found(5000), 60);
  expect(cache.get("huge")).toBeNull();
  expect(cache.get("another")).not.toBeNull();
});

test("a failure is kept for half a minute, longer each time that it fails again, never over five minutes", async () => {
  const clock = new ManualClock();
  const cache = createCache(clock, { failureMs: 30_000 });
  for (const seconds of [30, 60, 120, 240, 300, 300]) {
    cache.put(1, "a", failed, 0);
    await clock.advance(seconds * 1000 - 1);
    expect(cache.get("a")).toEqual(failed);
    await clock.advance(1);
    expect(cache.get("a")).toBeNull();
  }
  cache.put(1, "a", found(1), 60);
  await clock.advance(60_000);
  cache.put(1, "a", failed, 0);
  await clock.advance(30_000);
  expect(cache.get("a")).toBeNull();
});

test("a name that failed long ago fails for the first time again", async () => {
  const clock = new ManualClock();
  const cache = createCache(clock, { failureMs: 30_000 });
  cache.put(1, "a", failed, 0);
  await clock.advance(330_001);
  expect(cache.get("a")).toBeNull();
  cache.put(1, "a", failed, 0);
  await clock.advance(30_000);
  expect(cache.get("a")).toBeNull();
});

test("it is known for five minutes after a failure that a name failed, and an answer ends that", async () => {
  const clock = new ManualClock();
  const cache = createCache(clock, { failureMs: 30_000 });
  expect(cache.failedLately("a")).toBe(false);
  cache.put(1, "a", failed, 0);
  await clock.advance(329_999);
  expect([cache.get("a"), cache.failedLately("a")]).toEqual([null, true]);
  await clock.advance(1);
  expect(cache.failedLately("a")).toBe(false);
  cache.put(1, "b", failed, 0);
  cache.put(1, "b", found(1), 60);
  expect(cache.failedLately("b")).toBe(false);
});

test("a failure does not undo an answer that is still valid", async () => {
  const clock = new ManualClock();
  const cache = createCache(clock, { failureMs: 30_000 });
  cache.put(1, "a", found(1), 60);
  cache.put(2, "a", failed, 0);
  expect(cache.get("a")?.kind).toBe("found");
  await clock.advance(60_000);
  cache.put(2, "a", failed, 0);
  expect(cache.get("a")).toEqual(failed);
});

import { beforeEach, expect, test } from "vitest";
import { createShares, type Shares } from "../../src/parsing/shares.ts";
import { ManualClock } from "../support/clock.ts";

const limits = { total: 3, perAccount: 2, waitingPerAccount: 2, waitMs: 1000 };
let clock: ManualClock;
let shares: Shares;
beforeEach(() => {
  clock = new ManualClock();
  shares = createShares(clock, limits);
});

/** What has become of it, once all that is due has run. */
async function stateOf(entry: Promise<unknown>): Promise<string> {
  return Promise.race([
    entry.then(
      () => "in",
      (error: { code?: string }) => error.code ?? "?",
    ),
    new Promise<string>((resolve) => setImmediate(() => resolve("waits"))),
  ]);
}

test("an account over its share waits, and another passes it", async () => {
  await shares.enter(1);
  const release = await shares.enter(1);
  const third = shares.enter(1);
  const other = shares.enter(2);
  expect([await stateOf(third), await stateOf(other)]).toEqual(["waits", "in"]);
  release();
  release(); // twice is once
  expect(await stateOf(third)).toBe("in");
  expect(await stateOf(shares.enter(3))).toBe("waits");
});

test("too many that wait are refused at once, with a time to come again, and no other account with them", async () => {
  await shares.enter(1);
  await shares.enter(1);
  const waiting = [shares.enter(1), shares.enter(1)];
  const refused = shares.enter(1);
  await expect(refused).rejects.toMatchObject({
    code: "rate_limit_exceeded",
    extras: { retry_after_seconds: 5 },
  });
  await expect(refused).rejects.toThrow("At most 2 messages of an account");
  expect(await stateOf(shares.enter(2))).toBe("in");
  expect(await Promise.all(waiting.map(stateOf))).toEqual(["waits", "waits"]);
});

test("a wait has an end: the account's own limit is 429, everybody's is 503", async () => {
  const releases = [await shares.enter(1), await shares.enter(1), await shares.enter(2)];
  const own = shares.enter(1);
  const other = shares.enter(3);
  const ends = Promise.allSettled([own, other]);
  await clock.advance(limits.waitMs);
  expect(
    (await ends).map((end) => (end.status === "rejected" ? (end.reason as { code: string }).code : "")),
  ).toEqual(["rate_limit_exceeded", "service_overloaded"]);
  for (const release of releases) release();
  expect(await stateOf(shares.enter(3))).toBe("in");
});

test("who waited longest is first among those that may", async () => {
  const first = await shares.enter(1);
  await shares.enter(1);
  await shares.enter(2);
  const waiting = [shares.enter(1), shares.enter(3), shares.enter(2)];
  first();
  expect(await Promise.all(waiting.map(stateOf))).toEqual(["in", "waits", "waits"]);
});

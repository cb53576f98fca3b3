// The ramp of a warm-up, and what is counted of it.
import { expect, test } from "vitest";
import { dayMs, hourMs, minuteMs } from "../../src/clock.ts";
import { capOf, capsOf, capWaitUntil, isWarming, providerOf, warmupDayOf } from "../../src/pools/warmup.ts";
import { createWarmupCounts } from "../../src/pools/warmup-counts.ts";
import type { Source } from "../../src/pools/sources.ts";
import { ManualClock } from "../support/clock.ts";

const noon = Date.UTC(2026, 10, 29, 12);

test("a provider gets 50 messages on the first day, twice as many every second day, and any number after 30 days", () => {
  const days = [1, 2, 3, 5, 11, 21, 30, 31];
  expect(days.map((day) => capOf("google", day))).toEqual([50, 71, 100, 200, 1600, 51_200, 1_158_524, null]);
  expect(capsOf(1)).toEqual({ google: 50, microsoft: 50, yahoo: 50, apple: 50, default: 50 });
  expect(capOf("google", -3)).toBe(50); // a clock that was set back
});

test("receivers without a row of their own are counted together, a smart host is not counted", () => {
  const groups = ["google", "acme.test", "toString", "__proto__", "smart-host"];
  expect(groups.map(providerOf)).toEqual(["google", "default", "default", "default", null]);
});

test("a day begins at midnight UTC, and the day of the start is the first", () => {
  expect([0, 11 * hourMs, 12 * hourMs, 36 * hourMs].map((later) => warmupDayOf(noon, noon + later))).toEqual([
    1, 1, 2, 3,
  ]);
  expect([29, 30].map((days) => isWarming(noon, noon + days * dayMs))).toEqual([true, false]);
  expect(isWarming(null, noon)).toBe(false);
});

test("mail at the cap waits for the next day or an hour, whichever is sooner, and goes over it after six", () => {
  const maxAgeMs = 48 * hourMs;
  const until = (sinceMs: number, now = noon, most = maxAgeMs) => {
    const at = capWaitUntil(now - sinceMs, most, now);
    return at === null ? null : at - now;
  };
  expect(until(0)).toBe(hourMs);
  expect(until(5.5 * hourMs)).toBe(hourMs / 2);
  expect([until(6 * hourMs), until(40 * hourMs)]).toEqual([null, null]);
  expect(until(0, noon + 11.5 * hourMs)).toBe(hourMs / 2);
  // Mail that is given up sooner waits for a quarter of that at most.
  expect([until(0, noon, hourMs), until(15 * minuteMs, noon, hourMs)]).toEqual([15 * minuteMs, null]);
});

test("a message counts for the day on which it was begun, and not where it reached no server", async () => {
  const clock = new ManualClock(noon);
  const counts = createWarmupCounts(clock);
  const source: Source = { address: "192.0.2.1", hostname: null, weight: 1, warmingSince: noon };
  const sentToday = () => counts.today({ address: "192.0.2.1", warmupStartedAt: noon })?.sentToday["default"];
  const cap = counts.capAt(source, "acme.test");
  const other = counts.capAt(source, "other.test");
  counts.load([{ address: "192.0.2.1", provider: "default", day: Math.floor(noon / dayMs), sent: 48 }]);
  const first = cap?.count();
  expect([first?.provider, cap?.isReached()]).toEqual(["default", false]);
  other?.count();
  expect([cap?.isReached(), other?.isReached()]).toEqual([true, true]);
  expect(counts.capAt(source, "google")?.isReached()).toBe(false);
  expect(sentToday()).toBe(50);
  if (first) counts.takeBack(first);
  expect(cap?.isReached()).toBe(false);
  await clock.advance(12 * hourMs);
  expect([sentToday(), cap?.isReached()]).toEqual([0, false]);
  if (first) counts.takeBack(first); // of yesterday
  expect(sentToday()).toBe(0);
  await clock.advance(30 * dayMs);
  expect([cap?.count(), cap?.isReached()]).toEqual([null, false]);
});

test("neither an address that does not warm up nor the system's choice has a cap", () => {
  const counts = createWarmupCounts(new ManualClock(noon));
  const warm = { address: "192.0.2.1", hostname: null, weight: 1, warmingSince: null };
  expect(counts.capAt(warm, "google")).toBeNull();
  expect(counts.capAt({ ...warm, address: null, warmingSince: noon }, "google")).toBeNull();
});

// When certificates are ordered, as numbers.
import { expect, test } from "vitest";
import {
  againAt,
  askedTooOften,
  directoryRetryAt,
  renewAt,
  renewAtOf,
  retryAt,
} from "../../../src/tls/acme/schedule.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const life = (days: number, cert = "a") => ({ validFrom: 0, validUntil: days * day, cert });

test("a certificate is renewed by two thirds of its life, each at a time of its own that stays the same", () => {
  const times = Array.from({ length: 50 }, (_, n) => renewAt(life(90, `cert ${n}`)));
  expect(Math.max(...times)).toBeLessThanOrEqual(60 * day);
  expect(Math.min(...times)).toBeGreaterThanOrEqual(57 * day);
  expect(new Set(times).size).toBe(50);
  expect(renewAt(life(90))).toBe(renewAt(life(90)));
});

test("waits after failures grow to a week, of the host's own to a day; a longer wait that the server asks for holds", () => {
  const waits = [1, 2, 3, 4, 5, 7, 8, 100].map((failures) => retryAt(0, failures, false, 0) / hour);
  expect(waits).toEqual([0.25, 1, 4, 12, 24, 24, 168, 168]);
  expect([1, 5, 100].map((failures) => retryAt(0, failures, true, 0) / hour)).toEqual([0.25, 24, 24]);
  expect(retryAt(0, 1, true, 3 * day)).toBe(3 * day);
  expect([1, 2, 5, 100].map((failures) => directoryRetryAt(0, failures, 0) / minute)).toEqual([
    5, 15, 360, 360,
  ]);
});

test("no name has more than two failed checks an hour, of the five that Let's Encrypt allows", () => {
  const times: number[] = [];
  for (let now = 0, failures = 1; failures < 20; failures++) {
    times.push(now);
    now = retryAt(now, failures, false, 0);
  }
  for (const at of times)
    expect(times.filter((other) => other >= at && other < at + hour).length).toBeLessThan(3);
});

test("the server's window is kept to, within what keeps the certificate valid and the orders few", () => {
  const window = (from: number, until: number) =>
    renewAtOf(life(90), { from: from * day, until: until * day }) / day;
  expect(window(40, 41)).toBeGreaterThanOrEqual(40);
  expect(window(40, 41)).toBeLessThanOrEqual(41);
  expect(window(-500, -400)).toBe(1); // at once, as after a revocation: not in a loop
  expect(window(80_000, 90_000)).toBe(75);
});

test("a server whose certificates expire at once is asked every five minutes at most", () => {
  expect(againAt({ validFrom: 0, validUntil: 1_000, cert: "" }, 0)).toBe(5 * minute);
  expect(againAt(life(90), 0)).toBe(hour);
});

test("an operator may order four times a week, and after four failures within an hour waits for its end", () => {
  const now = 100 * day;
  const ago = (...times: number[]) => times.map((ms) => now - ms);
  expect(askedTooOften({ failed: [], issued: ago(6 * day, 2 * day, day) }, now)).toBeNull();
  expect(askedTooOften({ failed: [], issued: ago(6 * day, 2 * day, day, 0) }, now)).toBe(now + day);
  expect(askedTooOften({ failed: ago(50 * minute, 3, 2, 1), issued: [] }, now)).toBe(now + 10 * minute);
  expect(askedTooOften({ failed: ago(2 * hour, 3, 2, 1), issued: ago(8 * day) }, now)).toBeNull();
  // Times of a clock that was ahead do not count.
  expect(askedTooOften({ failed: ago(-day, -day, -day, -day), issued: [] }, now)).toBeNull();
});

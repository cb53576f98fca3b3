// The simulated day: what it counts is what it played, and a seed decides it. What it shows of the defaults is for people
// to read (bench/README.md), not for a test.
import { beforeAll, describe, expect, it } from "vitest";
import { playDay, type DayOptions } from "../../bench/simulate/day.ts";
import { EventHeap } from "../../bench/simulate/events.ts";
import type { Day, Row } from "../../bench/simulate/ledger.ts";
import { svgOf } from "../../bench/simulate/plot.ts";
import { createRandom } from "../../bench/simulate/random.ts";
import { linesOf, tableOf, warmupTableOf } from "../../bench/simulate/table.ts";
import { trafficOf } from "../../bench/simulate/traffic.ts";
import { hourMs, minuteMs } from "../../src/clock.ts";

const options: DayOptions = {
  messages: 20_000,
  addresses: 1,
  warmupDay: null,
  seed: 7,
  caps: 1,
  schedule: { retryMs: [1, 5, 15, 30, 60].map((minutes) => minutes * minuteMs), maxAgeMs: 24 * hourMs },
  shapingFile: null,
  endMs: 72 * hourMs,
};

function rowNamed({ rows }: Day, wanted: string): Row {
  const found = rows.find(({ name }) => name === wanted);
  if (!found) throw new Error(`no row ${wanted}`);
  return found.row;
}

describe("a simulated day", () => {
  let day: Day;
  beforeAll(() => {
    day = playDay(options);
  });

  it("is the same for the same seed, and another for another", () => {
    expect(playDay(options)).toEqual(day);
    expect(playDay({ ...options, seed: 8 })).not.toEqual(day);
  });

  it("delivers, bounces or expires every message", () => {
    const { total, rows } = day;
    expect(total.accepted).toBe(options.messages);
    for (const row of [total, ...rows.map((named) => named.row)]) {
      expect(row.delivered + row.bounced + row.expired).toBe(row.accepted);
      expect(row.backlog.at(-1)).toBe(0);
      expect(Math.max(...row.due)).toBeLessThanOrEqual(Math.max(...row.backlog));
    }
    expect(total.left).toBe(0);
  });

  it("leaves what is not done when it ends early", () => {
    const { total } = playDay({ ...options, endMs: 15 * hourMs });
    expect(total.left).toBeGreaterThan(0);
    expect(total.delivered + total.bounced + total.expired + total.left).toBe(total.accepted);
  });

  it("keeps a provider's mail while that answers nobody, and that of others goes on", () => {
    const [out, other] = [rowNamed(day, "microsoft"), rowNamed(day, "google")];
    expect(out.attempts.timed_out).toBeGreaterThan(0);
    expect(out.delays.p95).toBeGreaterThan(hourMs);
    expect(other.delays.p95).toBeLessThan(2_000);
    expect(out.expired).toBeLessThan(out.accepted / 100);
  });

  it("greylists mail to domains of the tail, which is delivered within the hour", () => {
    const tail = rowNamed(day, "others");
    expect(tail.attempts.greylisted).toBeGreaterThan(0);
    expect(tail.delays.p99).toBeLessThan(hourMs);
  });

  it("is refused more often by receivers that stand less", () => {
    const strict = playDay({ ...options, caps: 0.01, endMs: 11 * hourMs });
    expect(day.total.attempts.rate_limited).toBe(0);
    expect(strict.total.attempts.rate_limited).toBeGreaterThan(0);
  });

  it("follows the limits of a shaping file", () => {
    const shapingFile = { groups: { google: { connections: 1, per_second: 0.05 } } };
    const slow = playDay({ ...options, shapingFile, endMs: 24 * hourMs });
    expect(rowNamed(slow, "google").left).toBeGreaterThan(1_000);
    expect(rowNamed(slow, "yahoo").left).toBeLessThan(100);
  });

  it("has new addresses send their caps, keeps the rest for six hours, and expires nothing for it", () => {
    const few = { ...options, messages: 4_000, addresses: 4 };
    const young = playDay({ ...few, warmupDay: 1 });
    expect(young.total.overCap).toBeGreaterThan(2_000);
    expect(rowNamed(young, "google").delays.p95).toBeLessThan(7 * hourMs);
    const later = playDay({ ...few, warmupDay: 20 });
    expect(later.total.overCap).toBe(0);
    expect(young.total.expired).toBe(later.total.expired);
    const table = warmupTableOf([{ addresses: 4, warmupDay: 1, day: young }]);
    expect(table.split("\n")).toHaveLength(3);
  });

  it("is shown as a table, as lines and as a drawing", () => {
    const played = { addresses: 2, warmupDay: null, day };
    expect(tableOf(played)).toMatch(/^### 2 addresses\n\n\|.*accepted/);
    expect(linesOf(played).split("\n")).toHaveLength(7);
    expect(svgOf([played])).toMatch(/^<svg [^]*<\/svg>\n$/);
  });
});

describe("the traffic of a day", () => {
  it("is in the order of time, within the day, and as many messages as were asked for", () => {
    let [count, last] = [0, 0];
    for (const { at } of trafficOf(5_000, createRandom(1))) {
      expect(at).toBeGreaterThanOrEqual(last);
      [count, last] = [count + 1, at];
    }
    expect(count).toBe(5_000);
    expect(last).toBeLessThan(24 * hourMs);
  });
});

describe("the heap of events", () => {
  it("gives them in the order of their times, however they came", () => {
    const [heap, random] = [new EventHeap(), createRandom(3)];
    const times = Array.from({ length: 5_000 }, () => Math.floor(random() * 1_000));
    for (const at of times) heap.push(at, at);
    expect(times.map(() => heap.pop())).toEqual(times.toSorted((a, b) => a - b));
    expect(heap.nextAt()).toBe(Number.POSITIVE_INFINITY);
  });
});

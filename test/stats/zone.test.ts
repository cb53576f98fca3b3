// Days, weeks and hours as the clocks of a zone show them, and the ranges that are made of them.
import { describe, expect, test } from "vitest";
import { dayMs } from "../../src/clock.ts";
import { periodsOf, rangeOf } from "../../src/stats/range.ts";
import { dateAt, startOfDate, zoneOf, type Granularity, type Zone } from "../../src/stats/zone.ts";

const at = (text: string): number => Date.parse(text);
const date = (text: string): number => at(text) / dayMs;
const iso = (ms: number): string => new Date(ms).toISOString().slice(0, 16);

function zone(name: string): Zone {
  const found = zoneOf(name);
  if (!found) throw new Error(`${name} is unknown here`);
  return found;
}

const now = at("2026-11-27T09:00:00Z");

function periods(
  timezone: string,
  granularity: Granularity,
  from: string,
  to: string,
  moment = now,
): { starts: string[]; bounds: string[] } {
  const range = rangeOf({ timezone, from: { date: date(from) }, to: { date: date(to) } }, moment);
  const { starts, bounds } = periodsOf(range, granularity, moment);
  return { starts: starts.map(iso), bounds: bounds.map(iso) };
}

test.each([
  ["UTC", "2026-11-27", "2026-11-27T00:00"],
  ["Asia/Kathmandu", "2026-11-27", "2026-11-26T18:15"],
  ["Asia/Kolkata", "2026-11-27", "2026-11-26T18:30"],
  ["Pacific/Chatham", "2026-11-27", "2026-11-26T10:15"],
  ["America/St_Johns", "2026-11-27", "2026-11-27T03:30"],
  ["Europe/Berlin", "2026-03-29", "2026-03-28T23:00"],
  ["Europe/Berlin", "2026-03-30", "2026-03-29T22:00"],
  ["Africa/Cairo", "2026-04-24", "2026-04-23T22:00"], // midnight is skipped: the day begins at 01:00
  ["Pacific/Kiritimati", "2026-11-27", "2026-11-26T10:00"],
])("in %s the %s begins at %s UTC", (name, day, begins) => {
  const start = startOfDate(zone(name), date(day));
  expect(iso(start)).toBe(begins);
  expect(dateAt(zone(name), start)).toBe(date(day));
  expect(dateAt(zone(name), start - 1)).toBe(date(day) - 1);
});

test("a name that is none is not a zone, nor is an offset", () => {
  for (const name of ["", "Mars/Olympus", "+05:30", "UTC\n", "x".repeat(70)]) expect(zoneOf(name)).toBe(null);
});

describe("hours", () => {
  const count = (from: string, to: string, moment: number): number =>
    periods("Europe/Berlin", "hour", from, to, moment).starts.length;

  test("the day on which clocks go forward has 23, the one on which they go back 25", () => {
    expect(count("2026-03-29", "2026-03-30", at("2026-04-02T00:00:00Z"))).toBe(23);
    expect(count("2026-10-25", "2026-10-26", now)).toBe(25);
    expect(count("2026-10-26", "2026-10-27", now)).toBe(24);
  });

  test("begin where the zone's clocks show a full hour", () => {
    const { starts } = periods("Asia/Kathmandu", "hour", "2026-11-27", "2026-11-28");
    expect(starts.slice(0, 2)).toEqual(["2026-11-26T18:15", "2026-11-26T19:15"]);
    expect(starts).toHaveLength(24);
  });
});

test("weeks begin on Monday, months on the first; at the edges a part is counted", () => {
  expect(periods("UTC", "week", "2026-11-18", "2026-12-01")).toEqual({
    starts: ["2026-11-16T00:00", "2026-11-23T00:00", "2026-11-30T00:00"],
    bounds: ["2026-11-18T00:00", "2026-11-23T00:00", "2026-11-30T00:00", "2026-12-01T00:00"],
  });
  expect(periods("UTC", "month", "2026-10-31", "2026-11-02")).toEqual({
    starts: ["2026-10-01T00:00", "2026-11-01T00:00"],
    bounds: ["2026-10-31T00:00", "2026-11-01T00:00", "2026-11-02T00:00"],
  });
  expect(periods("Europe/Berlin", "month", "2026-10-01", "2026-12-01").starts).toEqual([
    "2026-09-30T22:00",
    "2026-10-31T23:00",
  ]);
});

test("moments are widened to quarters of an hour", () => {
  const range = { from: { at: at("2026-11-27T08:07:00Z") }, to: { at: at("2026-11-27T08:31:00Z") } };
  const { from, to } = rangeOf({ timezone: "UTC", ...range }, now);
  expect([iso(from), iso(to)]).toEqual(["2026-11-27T08:00", "2026-11-27T08:45"]);
});

test("what lies further back than quarters are kept is counted by the same dates of UTC", () => {
  const { starts, bounds } = periods("Asia/Tokyo", "day", "2026-08-27", "2026-09-01");
  expect(starts).toEqual([
    "2026-08-27T00:00",
    "2026-08-28T00:00",
    "2026-08-29T00:00",
    "2026-08-29T15:00", // from here on there are quarters
    "2026-08-30T15:00",
  ]);
  expect(bounds.at(-1)).toBe("2026-08-31T15:00");
});

test("the last thirty days are those of the zone, today among them", () => {
  const { from, to } = rangeOf({ timezone: "America/New_York" }, at("2026-11-27T02:00:00Z"));
  expect([iso(from), iso(to)]).toEqual(["2026-10-28T04:00", "2026-11-27T05:00"]);
});

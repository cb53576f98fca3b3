// Charts at every width, and their scale.
import { describe, expect, test } from "vitest";
import { barChart, columnChart, type Point } from "../../src/cli/chart.ts";
import { glyphsOf, sparkline } from "../../src/cli/glyphs.ts";
import { widthOf } from "../../src/cli/text.ts";

const unicode = glyphsOf({ env: { LANG: "C.UTF-8" } });
const ascii = glyphsOf({ env: {} });

const points = (values: readonly number[]): Point[] =>
  values.map((value, i) => ({ label: `2026-11-${String(i + 1).padStart(2, "0")}`, value }));

test("columns stand on an axis with its numbers, the first and the last day below", () => {
  expect(columnChart(points([0, 5, 10]), 30, ascii)).toEqual([
    "10 |                #######",
    "   |                #######",
    "   |                #######",
    "   |                #######",
    "   |                #######",
    " 5 |        ####### #######",
    "   |        ####### #######",
    "   |        ####### #######",
    "   |        ####### #######",
    "   |        ####### #######",
    " 0 +------------------------",
    "    2026-11-01    2026-11-03",
  ]);
});

test.each([1, 5])("the axis stands straight where half of %d has more digits", (most) => {
  const axis = columnChart(points([most]), 30, ascii).slice(0, 10);
  expect(new Set(axis.map((line) => line.indexOf("|")))).toEqual(new Set([4]));
});

test("a column is as high as an eighth of a line tells, and never nothing where there is something", () => {
  const chart = columnChart(points([1, 1000, 625, 0]), 20, unicode);
  const column = (at: number): string =>
    chart
      .slice(0, 10)
      .map((line) => line.padEnd(22)[7 + at * 3] ?? "")
      .join("");
  expect(chart[0]).toMatch(/^1,000 │/);
  expect(column(0)).toBe("         ▁");
  expect(column(1)).toBe("██████████");
  expect(column(2)).toBe("   ▂██████");
  expect(column(3).trim()).toBe("");
});

test("more points than columns are added up, and it says so", () => {
  const chart = columnChart(points(Array<number>(100).fill(2)), 40, ascii);
  expect(chart.at(-1)).toMatch(/a column is [34] of these together$/);
  expect(chart[0]).toMatch(/^10 \|/);
});

describe.each([1, 5, 10, 40, 60, 80, 200])("on %d columns", (columns) => {
  test.each([0, 1, 2, 7, 31, 365, 1000])("a chart of %d values is no wider", (count) => {
    for (const glyphs of [unicode, ascii])
      for (const scale of [0, 1, 123_456_789]) {
        const values = Array.from({ length: count }, (_, i) => i * scale);
        const bars = values
          .slice(-20)
          .map((value, i) => ({ name: `${"日本".repeat(30)}\x1b[2J${i}`, value }));
        for (const line of [
          ...columnChart(points(values), columns, glyphs),
          ...barChart(bars, columns, glyphs),
        ]) {
          expect(widthOf(line)).toBeLessThanOrEqual(columns);
          // oxlint-disable-next-line no-control-regex
          expect(line).not.toMatch(/[\x00-\x1f]/);
        }
      }
  });
});

test("a sparkline has a column a value, the last ones where there are more, and shows nothing only for nothing", () => {
  expect(sparkline([0, 1, 50, 100], 10, unicode)).toBe("▁▂▅█");
  expect(sparkline([100, 0, 1], 2, ascii)).toBe("_#");
  expect(sparkline([0, 0], 5, unicode)).toBe("▁▁");
  expect(sparkline([1, 2], 0, unicode)).toBe("");
});

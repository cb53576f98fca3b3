// Charts for a terminal, as lines no wider than it: columns over time with an axis, and bars by name. Pure.
import type { Glyphs } from "./glyphs.ts";
import { fitted, neutralised, widthOf } from "./text.ts";

export interface Point {
  /** `2026-11-27` or `2026-11-27 09:00` */
  label: string;
  value: number;
}

const rows = 10;
const widestColumn = 8;

/** A column a point, or one of several neighbours, added up, where there is not room for each. */
export function columnChart(points: readonly Point[], columns: number, glyphs: Glyphs): string[] {
  if (points.length === 0) return [];
  const most = Math.max(0, ...points.map(({ value }) => value));
  // Neighbours that are added up are higher: the axis has room for the largest number there can be.
  const margin = Math.max(3, numberText(roundedUp(most * points.length)).length) + 2;
  const room = Math.max(1, columns - margin);
  const each = Math.ceil(points.length / room);
  const shown = merged(points, each);
  const width = Math.max(1, Math.min(widestColumn, Math.floor(room / shown.length)));
  const top = roundedUp(Math.max(...shown.map(({ value }) => value)));
  const label = Math.max(numberText(top).length, numberText(top / 2).length);
  const axisOf = (line: number): string => {
    const text = line === 0 ? numberText(top) : line === rows / 2 ? numberText(top / 2) : "";
    return `${text.padStart(label)} ${glyphs.axis.up}`;
  };
  const body = Array.from({ length: rows }, (_, line) => {
    const below = rows - 1 - line;
    const bars = shown.map(({ value }) => {
      const eighths = top === 0 ? 0 : Math.max(value > 0 ? 1 : 0, Math.round((value / top) * rows * 8));
      const here = Math.max(0, Math.min(8, eighths - below * 8));
      const mark = here === 0 ? " " : (glyphs.levels[here - 1] ?? glyphs.bar);
      return width > 2 ? `${mark.repeat(width - 1)} ` : mark.repeat(width);
    });
    return `${axisOf(line)}${bars.join("")}`.trimEnd();
  });
  const across = glyphs.axis.across.repeat(width * shown.length);
  return [
    ...body,
    `${"0".padStart(label)} ${glyphs.axis.corner}${across}`,
    `${" ".repeat(label + 2)}${underAxis(shown, across.length)}`.trimEnd(),
    ...(each > 1 ? [`${" ".repeat(label + 2)}a column is ${each} of these together`] : []),
  ].map((line) => fitted(line, columns));
}

function merged(points: readonly Point[], each: number): Point[] {
  return Array.from({ length: Math.ceil(points.length / each) }, (_, i) => {
    const part = points.slice(i * each, (i + 1) * each);
    return { label: part[0]?.label ?? "", value: part.reduce((sum, { value }) => sum + value, 0) };
  });
}

/** The first label under the first column, and the last under the last where both have room. */
function underAxis(points: readonly Point[], width: number): string {
  const first = points[0]?.label ?? "";
  const last = points.at(-1)?.label ?? "";
  const gap = width - first.length - last.length;
  return points.length > 1 && gap >= 2 ? `${first}${" ".repeat(gap)}${last}` : first;
}

/** 1, 2 or 5 times a power of ten; of what is counted, so at least 1. */
function roundedUp(value: number): number {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const digit = value / power;
  return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

/** A bar a row, the longest for the largest. */
export function barChart(
  bars: readonly { name: string; value: number }[],
  columns: number,
  glyphs: Glyphs,
): string[] {
  const most = Math.max(1, ...bars.map(({ value }) => value));
  const names = bars.map(({ name }) => neutralised(name));
  const digits = Math.max(1, ...bars.map(({ value }) => numberText(value).length));
  const named = Math.min(Math.max(1, ...names.map(widthOf)), Math.max(4, Math.floor(columns * 0.4)));
  const room = Math.max(1, columns - named - digits - 4);
  return bars.map(({ value }, i) => {
    const shown = fittedTo(names[i] ?? "", named, glyphs);
    const bar = glyphs.bar.repeat(Math.round((value / most) * room)) || (value > 0 ? glyphs.stub : "");
    const line = `${shown}${" ".repeat(named - widthOf(shown))}  ${numberText(value).padStart(digits)}  ${bar}`;
    return fitted(line.trimEnd(), columns);
  });
}

function fittedTo(text: string, columns: number, { ellipsis }: Glyphs): string {
  const shown = fitted(text, columns);
  return shown === text ? text : `${shown.slice(0, -1)}${ellipsis}`;
}

const numberText = (value: number): string => value.toLocaleString("en");

// The table of a run as Markdown: a section a row, medians over the rounds that count, and each target with what
// was reached. A ratio is taken within each round and the median of these is what is judged.
import type { Measured } from "./measure.ts";
import type { Row, Target } from "./rows.ts";

export interface RowResult {
  row: Row;
  /** By contender's name, a record a round. */
  rounds: Record<string, Measured>[];
}

interface Column {
  head: string;
  value(measured: Measured): number | null;
  digits?: number;
}

const columns: Column[] = [
  { head: "messages/s", value: (m) => m.perSecond },
  { head: "accepted/s", value: (m) => m.acceptedPerSecond },
  { head: "per CPU-second", value: (m) => m.perCpuSecond },
  { head: "CPU µs", value: (m) => m.cpuMicros },
  { head: "of it kernel", value: (m) => m.systemMicros },
  { head: "generator µs", value: (m) => m.generatorMicros },
  { head: "sink µs", value: (m) => m.sinkMicros },
  { head: "peak MB", value: (m) => m.peakBytes / 1e6 },
  { head: "p50 ms", value: (m) => m.latencyP50, digits: 1 },
  { head: "p99 ms", value: (m) => m.latencyP99, digits: 1 },
  { head: "answer p50 ms", value: (m) => m.answerP50 ?? null, digits: 1 },
  { head: "answer p99 ms", value: (m) => m.answerP99 ?? null, digits: 1 },
  { head: "others %", value: (m) => m.others * 100 },
];

/** A row's section; `about`: when, where and how. */
export function sectionOf({ row, rounds }: RowResult, about: string): string {
  const names = row.contenders.map(({ name }) => name);
  const cells = names.map((name) => {
    const all = rounds.map((of) => of[name]).filter((one): one is Measured => one !== undefined);
    const good = all.filter(({ fault }) => fault === null);
    const counted = good.length > 0 ? good : all;
    return [good.length > 0 ? name : `${name} ~`, ...columns.map((column) => cell(column, counted))];
  });
  const used = [{ head: "" }, ...columns].map((_, i) => i === 0 || cells.some((line) => line[i] !== "-"));
  const pick = (line: string[]): string[] => line.filter((_, i) => used[i]);
  const heads = pick(["", ...columns.map(({ head }) => head)]);
  const body = cells.map((line) => `| ${pick(line).join(" | ")} |`);
  const targets = row.targets.map((target) => verdictOf(target, rounds)).filter((line) => line !== null);
  return [
    `### ${row.name}`,
    "",
    row.title,
    "",
    `| ${heads.join(" | ")} |`,
    `|${heads.map((_, i) => (i === 0 ? "---" : "---:")).join("|")}|`,
    ...body,
    "",
    ...targets,
    ...(targets.length > 0 ? [""] : []),
    `${about}, ${rounds.length === 1 ? "1 round" : `${rounds.length} rounds`}.`,
    "",
  ].join("\n");
}

function cell({ value, digits = 0 }: Column, counted: Measured[]): string {
  const values = counted.map(value).filter((one): one is number => one !== null && Number.isFinite(one));
  return values.length === 0 ? "-" : median(values).toFixed(digits);
}

/** null where a contender that it compares with did not run. */
function verdictOf(target: Target, rounds: RowResult["rounds"]): string | null {
  const values: number[] = [];
  for (const of of rounds) {
    try {
      values.push(target.value((name) => known(of[name], name)));
    } catch (error) {
      if (error instanceof Missing) return null;
      throw error;
    }
  }
  const value = median(values);
  const met = value >= (target.least ?? -Infinity) && value <= (target.most ?? Infinity);
  return `- ${met ? "met" : "**missed**"}: ${target.text}: ${value.toFixed(Math.abs(value) < 100 ? 2 : 0)}`;
}

class Missing extends Error {}

function known(measured: Measured | undefined, name: string): Measured {
  if (!measured) throw new Missing(name);
  return measured;
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = NaN, high = NaN] =
    sorted.length % 2 === 1 ? [sorted[middle], sorted[middle]] : [sorted[middle - 1], sorted[middle]];
  return (low + high) / 2;
}

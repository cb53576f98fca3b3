// The table of `npm run bench:scale` as Markdown: a column a size, medians over the rounds, targets beside them.
import type { Filled } from "./scale-fill.ts";
import type { CheckFigures, PurgeFigures, RunFigures } from "./scale-measure.ts";
import type { StoreFigures } from "./scale-store.ts";
import { median } from "./table.ts";

export interface SizeResult {
  filled: Filled;
  runs: RunFigures[];
  coldStartMs: number;
  warm: CheckFigures | null;
  cold: CheckFigures | null;
  purge: PurgeFigures | null;
  store: StoreFigures[];
}

interface Line {
  head: string;
  target?: string;
  value(of: SizeResult): number | null;
  digits?: number;
}

const of =
  (pick: (run: RunFigures) => number) =>
  (size: SizeResult): number | null =>
    size.runs.length === 0 ? null : median(size.runs.map(pick));
const megabyte = 1e6;

const lines: Line[] = [
  { head: "finished messages, thousands", value: ({ filled }) => filled.messages / 1000 },
  { head: "events, thousands", value: ({ filled }) => (filled.events + filled.queued) / 1000 },
  { head: "queued, thousands", value: ({ filled }) => filled.queued / 1000 },
  { head: "suppressed, thousands", value: ({ filled }) => filled.suppressed / 1000 },
  { head: "database, GB", value: ({ filled }) => filled.bytes / 1e9, digits: 2 },
  { head: "CPU µs a message", value: of((run) => run.cpuMicros) },
  { head: "messages/s", value: of((run) => run.perSecond) },
  { head: "start to first delivery, ms", target: "≤ 3,000", value: of((run) => run.firstDeliveryMs) },
  { head: "the same, nothing in the page cache", value: ({ coldStartMs }) => coldStartMs },
  { head: "resident after start, MB", value: of((run) => run.idleBytes / megabyte) },
  { head: "resident at most, MB", target: "≤ 500", value: of((run) => run.peakBytes / megabyte) },
  {
    head: "suppression check, median µs, warm",
    target: "≤ 20",
    value: ({ warm }) => warm?.medianMicros ?? null,
    digits: 1,
  },
  { head: "suppression check, p99 µs, cold", value: ({ cold }) => cold?.p99Micros ?? null },
  { head: "GET of one message, median ms", value: of((run) => run.oneMessage.median), digits: 2 },
  { head: "GET of one message, p99 ms", value: of((run) => run.oneMessage.p99), digits: 2 },
  { head: "POST, median ms", value: of((run) => run.post.median), digits: 1 },
  { head: "POST, p99 ms", value: of((run) => run.post.p99), digits: 1 },
  { head: "purge, µs a message with its events", value: ({ purge }) => purge?.microsPerMessage ?? null },
  {
    head: "purge, p99 of a piece of 1,000 rows, ms",
    value: ({ purge }) => purge?.pieceP99Ms ?? null,
    digits: 1,
  },
];

export function scaleTable(results: Map<string, SizeResult>): string {
  const sizes = [...results.values()];
  const head = (title: string): string[] => [
    `| ${[title, ...results.keys(), "target"].join(" | ")} |`,
    `|---|${"---:|".repeat(sizes.length)}---|`,
  ];
  const row = ({ head: name, target = "", value, digits = 0 }: Line): string =>
    `| ${[name, ...sizes.map((size) => cell(value(size), digits)), target].join(" | ")} |`;
  const empty = results.get("empty")?.runs ?? [];
  const ratio = ({ runs }: SizeResult): number | null => {
    const ratios = runs.flatMap(({ cpuMicros }, round) => cpuMicros / (empty[round]?.cpuMicros ?? NaN));
    return ratios.length === 0 ? null : median(ratios);
  };
  const pages = Object.keys(sizes.at(-1)?.runs[0]?.pages ?? {});
  return [
    ...head(""),
    ...lines.map(row),
    row({
      head: "CPU of a message, times the empty one's of its round",
      target: "≤ 1.10",
      value: ratio,
      digits: 2,
    }),
    "",
    "Pages, median ms over the admin socket; every page is of 50 rows or as many as the list gives:",
    "",
    ...head("page"),
    ...pages.map((name) =>
      row({ head: name, target: "< 200", value: of((run) => run.pages[name] ?? NaN), digits: 1 }),
    ),
    "",
    "The store alone, a message accepted and settled (4 KB), by so many callers that wait for each commit:",
    "",
    ...head("callers"),
    ...(sizes[0]?.store ?? []).flatMap(({ callers }, i) => [
      row({ head: `${callers}: messages/s`, value: (size) => size.store[i]?.perSecond ?? null }),
      row({
        head: `${callers}: calls a commit`,
        value: (size) => size.store[i]?.callsPerCommit ?? null,
        digits: 1,
      }),
      row({ head: `${callers}: writer µs a message`, value: (size) => size.store[i]?.writerMicros ?? null }),
      row({ head: `${callers}: CPU µs a message`, value: (size) => size.store[i]?.cpuMicros ?? null }),
    ]),
    "",
  ].join("\n");
}

function cell(value: number | null, digits: number): string {
  return value === null || Number.isNaN(value) ? "-" : value.toFixed(digits);
}

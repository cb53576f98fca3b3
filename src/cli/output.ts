// What a command prints: data on stdout, everything else on stderr. Colour and tables cut to
// the terminal's width only where there is a terminal (elsewhere cells are whole, with a tab between them); secrets alone on a line of stdout.
import type { Io, Sink } from "./io.ts";
import { escapedJson } from "../unsafe-text.ts";
import { cell, fieldText, fitted, neutralised, neutralisedLines, widthOf } from "./text.ts";

export type Row = Record<string, unknown>;
export interface Column {
  title: string;
  of: (row: Row) => unknown;
}

/** Column of a field of the same name. */
export const field = (name: string, title = name.replaceAll("_", " ")): Column => ({
  title,
  of: (row) => fieldText(name, row[name]),
});

export interface Output {
  readonly json: boolean;
  /** One line of data; text from outside is neutralised. */
  line(text: string): void;
  /** Several lines of data, neutralised but for line ends and tabs. */
  text(text: string): void;
  /** Bytes as they are, for a file or a program; neutralised on a terminal. */
  bytes(bytes: Uint8Array): void;
  /** The API's own body: the same JSON, with escapes for what a terminal would obey. */
  body(json: string): void;
  table(columns: Column[], rows: Row[]): void;
  /** Names and values below each other; nothing for what is not there. */
  fields(pairs: [string, unknown][]): void;
  /** Shown once, alone on its line. */
  secret(value: string): void;
  /** A remark on stderr. */
  note(text: string): void;
  /** The next step, last on stderr; silent under --json. */
  next(text: string): void;
  /** Resolves when the reader of stdout has room. */
  drained(): Promise<void>;
}

const shades: Record<string, number> = {
  ...Object.fromEntries(["delivered", "verified", "active", "ok", "yes"].map((word) => [word, 32])),
  ...Object.fromEntries(
    ["deferred", "pending", "degraded", "processing", "unchecked", "message.deferred"].map((word) => [
      word,
      33,
    ]),
  ),
  ...Object.fromEntries(
    [
      "bounced",
      "failed",
      "revoked",
      "disabled",
      "missing",
      "mismatch",
      "dead_lettered",
      "message.bounced",
      "message.complained",
    ].map((word) => [word, 31]),
  ),
  "message.delivered": 32,
};

export function createOutput(io: Io, json: boolean): Output {
  const colour = coloured(io.stdout, io.env);
  const write = (text: string): void => void io.stdout.write(`${text}\n`);
  const paint = (text: string, shade: number | undefined): string =>
    colour && shade !== undefined ? `\x1b[${shade}m${text}\x1b[0m` : text;

  return {
    json,
    line: (text) => write(neutralised(text)),
    text: (text) => write(neutralisedLines(text)),
    bytes: (bytes) =>
      void io.stdout.write(io.stdout.isTTY ? `${neutralisedLines(Buffer.from(bytes).toString())}\n` : bytes),
    body: (body) => write(escapedJson(body.trimEnd())),
    table(columns, rows) {
      const cells = rows.map((row) => columns.map((column) => cell(column.of(row))));
      const titles = columns.map((column) => column.title.toUpperCase());
      if (!io.stdout.isTTY) {
        write(titles.map((title) => paint(title, 1)).join("\t"));
        for (const line of cells) write(line.map((text) => paint(text, shades[text])).join("\t"));
        return;
      }
      const widths = titles.map((title, i) =>
        Math.max(widthOf(title), ...cells.map((line) => widthOf(line[i] ?? ""))),
      );
      shrink(widths, cells, io.stdout.columns);
      const render = (line: string[], head: boolean): string =>
        widths
          .map((width, i) => {
            const text = line[i] ?? "";
            const shown = fitted(text, width);
            const padding = i === widths.length - 1 ? "" : " ".repeat(width - widthOf(shown));
            return paint(shown, head ? 1 : shades[text]) + padding;
          })
          .join("  ")
          .trimEnd();
      write(render(titles, true));
      for (const line of cells) write(render(line, false));
    },
    fields(pairs) {
      const shown = pairs
        .map(([name, value]): [string, string] => [name.replace(/_bytes$/, ""), fieldText(name, value)])
        .filter(([, text]) => text !== "");
      const width = Math.max(0, ...shown.map(([name]) => widthOf(name)));
      for (const [name, text] of shown)
        write(`${paint(name, 1)}${" ".repeat(width - widthOf(name))}  ${paint(text, shades[text])}`);
    },
    secret: (value) => write(neutralised(value)),
    note: (text) => void io.stderr.write(`${neutralisedLines(text)}\n`),
    next: (text) => void (json || io.stderr.write(`${neutralised(text)}\n`)),
    drained: () => io.stdout.drained(),
  };
}

/** FORCE_COLOR, then NO_COLOR, then TERM=dumb, then whether there is a terminal. */
export function coloured(sink: Sink, env: Record<string, string | undefined>): boolean {
  const force = env["FORCE_COLOR"];
  if (force !== undefined) return force !== "0" && force !== "false";
  return !env["NO_COLOR"] && env["TERM"] !== "dumb" && sink.isTTY;
}

/** Ids and times, which are of no use in part. */
const whole = /^(?:[a-z]+_[0-9a-z]{26}|\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ|)$/;
const leastColumns = 8;

/** Narrows the widest columns until a line fits, none under 8 and none of ids or times; what then is too much is left out, from the right. */
function shrink(widths: number[], cells: string[][], columns: number): void {
  const least = widths.map((width, i) =>
    cells.every((line) => whole.test(line[i] ?? "")) ? width : Math.min(width, leastColumns),
  );
  const total = (of: number[]): number => of.reduce((sum, width) => sum + width, 2 * (of.length - 1));
  while (widths.length > 1 && total(least.slice(0, widths.length)) > columns) widths.pop();
  while (total(widths) > columns) {
    const room = widths.map((width, i) => width - (least[i] ?? 0));
    const widest = widths.reduce(
      (best, width, i) => ((room[i] ?? 0) > 0 && (best < 0 || width > (widths[best] ?? 0)) ? i : best),
      -1,
    );
    if (widest < 0) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

// What charts are drawn with in a terminal: blocks where the locale is one of UTF-8, else plain ASCII. Which locale holds
// is POSIX's order: LC_ALL, LC_CTYPE, LANG.
import type { Io } from "./io.ts";

export interface Glyphs {
  /** From nothing to the highest. */
  levels: readonly string[];
  bar: string;
  /** Stands for more than nothing that does not fill a bar. */
  stub: string;
  axis: { corner: string; across: string; up: string };
  ellipsis: string;
}

const unicode: Glyphs = {
  levels: "▁▂▃▄▅▆▇█".split(""),
  bar: "█",
  stub: "▏",
  axis: { corner: "└", across: "─", up: "│" },
  ellipsis: "…",
};
const ascii: Glyphs = {
  levels: "_.-:=+*#".split(""),
  bar: "#",
  stub: "|",
  axis: { corner: "+", across: "-", up: "|" },
  ellipsis: "~",
};

export function glyphsOf({ env }: Pick<Io, "env">): Glyphs {
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  return env["TERM"] !== "dumb" && /utf-?8/i.test(locale) ? unicode : ascii;
}

/** The last values that `columns` have room for, a column each, the highest for the largest. Nothing is lower than the least. */
export function sparkline(values: readonly number[], columns: number, { levels }: Glyphs): string {
  const shown = columns > 0 ? values.slice(-columns) : [];
  const most = Math.max(0, ...shown);
  const [none = ""] = levels;
  const high = levels.length - 1;
  return shown
    .map((value) =>
      value <= 0 || most <= 0 ? none : (levels[Math.max(1, Math.round((value / most) * high))] ?? none),
    )
    .join("");
}

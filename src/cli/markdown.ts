// The pages of the documentation as a terminal shows them (`svc help dns`): headings, paragraphs, lists, tables and blocks of
// code, wrapped to its width. Of Markdown it knows what docs/ has, and no more.
import { widthOf } from "./text.ts";

export interface MarkdownOptions {
  columns: number;
  bold: (text: string) => string;
}

export function renderMarkdown(markdown: string, { columns, bold }: MarkdownOptions): string {
  const lines = markdown.replaceAll(/<!--[^]*?-->/g, "").split("\n");
  const parts: string[] = [];
  for (let at = 0; at < lines.length;) {
    const { rows, kind } = blockAt(lines, at);
    at += Math.max(1, rows.length);
    if (kind === "code") at += 1; // its last fence
    const text = blockText(kind, rows, columns, bold);
    if (text !== "") parts.push(text);
  }
  return `${parts.join("\n\n")}\n`;
}

type Kind = "blank" | "heading" | "code" | "table" | "list" | "text";

const starts: [Kind, RegExp][] = [
  ["blank", /^\s*$/],
  ["heading", /^#{1,6} /],
  ["code", /^```/],
  ["table", /^\|/],
  ["list", /^(?:-|\d+\.) /],
  ["text", /^/],
];
const kindOf = (line: string): Kind => starts.find(([, start]) => start.test(line))?.[0] ?? "text";

/** The lines that belong together from `at` on: of code those between the fences, with the first fence. */
function blockAt(lines: readonly string[], at: number): { rows: string[]; kind: Kind } {
  const kind = kindOf(lines[at] ?? "");
  const rows = [lines[at] ?? ""];
  if (kind === "blank" || kind === "heading") return { rows, kind };
  for (let next = at + 1; next < lines.length; next++) {
    const line = lines[next] ?? "";
    const other = kindOf(line);
    const goesOn =
      kind === "code"
        ? other !== "code"
        : kind === "list"
          ? other === "list" || /^ {2,}\S/.test(line)
          : other === kind;
    if (!goesOn) break;
    rows.push(line);
  }
  return { rows, kind };
}

function blockText(kind: Kind, rows: string[], columns: number, bold: MarkdownOptions["bold"]): string {
  switch (kind) {
    case "blank":
      return "";
    case "heading":
      return bold(plain((rows[0] ?? "").replace(/^#+ /, "")));
    case "code":
      return rows
        .slice(1)
        .map((line) => `  ${line}`.trimEnd())
        .join("\n");
    case "table":
      return tableText(rows, columns, bold);
    case "list":
      return itemsOf(rows)
        .map(({ mark, text }) => {
          const [first = "", ...more] = wrapped(plain(text), columns - mark.length);
          const indent = " ".repeat(mark.length);
          return [`${mark}${first}`, ...more.map((line) => `${indent}${line}`)].join("\n");
        })
        .join("\n");
    case "text":
      return wrapped(plain(rows.join(" ")), columns).join("\n");
  }
}

function itemsOf(rows: readonly string[]): { mark: string; text: string }[] {
  const items: { mark: string; text: string }[] = [];
  for (const row of rows) {
    const [, mark, text = ""] = /^(- |\d+\. )(.*)$/.exec(row) ?? [];
    const last = items.at(-1);
    if (mark !== undefined) items.push({ mark, text });
    else if (last) last.text += ` ${row.trim()}`;
  }
  return items;
}

/** Inline marks are left out; the address of a link outside of the documentation stands behind its words. */
function plain(text: string): string {
  return text
    .replaceAll(/\[([^\]]*)\]\(([^)]*)\)/g, (_, words: string, to: string) =>
      /^https?:/.test(to) && to !== words ? `${words} (${to})` : words,
    )
    .replaceAll(/\*\*([^*]+)\*\*/g, "$1")
    .replaceAll(/`([^`]*)`/g, "$1")
    .replaceAll("<br>", ", ");
}

/** Columns share the width by what they hold, each with a tenth at least; cells are wrapped. */
function tableText(rows: readonly string[], columns: number, bold: MarkdownOptions["bold"]): string {
  const cells = rows.filter((row) => !/^\|[-| :]+\|$/.test(row)).map(cellsOf);
  const count = Math.max(...cells.map((row) => row.length));
  const widths = columnWidths(cells, count, columns);
  const [head = [], ...body] = cells;
  const lineOf = (row: readonly string[]): string[] => {
    const wrappedCells = widths.map((width, i) => wrapped(row[i] ?? "", width));
    const height = Math.max(...wrappedCells.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) =>
      widths
        .map((width, i) => padded(wrappedCells[i]?.[line] ?? "", i === count - 1 ? 0 : width))
        .join("  ")
        .trimEnd(),
    );
  };
  const titles = head.some((title) => title !== "") ? lineOf(head).map(bold) : [];
  return [...titles, ...body.flatMap(lineOf)].join("\n");
}

/** An escaped bar does not end a cell. */
function cellsOf(row: string): string[] {
  return row
    .replace(/^\|/, "")
    .replace(/\|\s*$/, "")
    .split(/(?<!\\)\|/)
    .map((cell) => plain(cell.replaceAll("\\|", "|").trim()));
}

function columnWidths(cells: readonly string[][], count: number, columns: number): number[] {
  const wanted = Array.from({ length: count }, (_, i) =>
    Math.max(1, ...cells.map((row) => widthOf(row[i] ?? ""))),
  );
  const room = Math.max(count, columns - 2 * (count - 1));
  const least = Math.max(1, Math.floor(room / 10));
  while (wanted.reduce((sum, width) => sum + width, 0) > room) {
    const widest = wanted.indexOf(Math.max(...wanted));
    if ((wanted[widest] ?? 0) <= least) break;
    wanted[widest] = (wanted[widest] ?? 0) - 1;
  }
  return wanted;
}

const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - widthOf(text)));

/** Words that are wider than a line are cut. */
function wrapped(text: string, columns: number): string[] {
  const width = Math.max(1, columns);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).flatMap((one) => cut(one, width))) {
    if (word === "") continue;
    if (line !== "" && widthOf(line) + 1 + widthOf(word) > width) {
      lines.push(line);
      line = "";
    }
    line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function cut(word: string, width: number): string[] {
  if (widthOf(word) <= width) return [word];
  const pieces: string[] = [];
  let piece = "";
  for (const character of word) {
    if (piece !== "" && widthOf(piece) + widthOf(character) > width) {
      pieces.push(piece);
      piece = "";
    }
    piece += character;
  }
  return [...pieces, piece];
}

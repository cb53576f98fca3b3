// Lists as CSV (RFC 4180), a page of rows at a time, so that a list of any length takes the memory of a page. What a
// spreadsheet would run as a formula when the file is opened is given an apostrophe in front, which makes it text.
import { Readable } from "node:stream";
import type { Page, PageRequest } from "../store/store.ts";
import type { Reply } from "./route.ts";

const rowsAPage = 1000;
/** Excel takes the full-width forms for the others; the rest are what is left out in front of one. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/;
/** Others' words are printed by terminals too. */
// oxlint-disable-next-line no-control-regex
const controls = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
/** Semicolon and tab part cells too where a spreadsheet is set up so. */
const needsQuotes = /[",;\t\r\n]|^ | $/;

export type Cell = string | number | boolean | null;

/** The whole list, in `pageOf`'s order; the first page is read before the answer begins, so that a refusal is one. */
export async function csvReply<Row>(
  name: string,
  columns: readonly string[],
  pageOf: (page: PageRequest) => Promise<Page<Row>>,
  cellsOf: (row: Row) => readonly Cell[],
): Promise<Reply> {
  const first = await pageOf({ limit: rowsAPage, cursor: null });
  const chunks = async function* (): AsyncGenerator<string> {
    let chunk = csvLine(columns);
    for (let page = first; ; page = await pageOf({ limit: rowsAPage, cursor: page.next })) {
      for (const row of page.rows) chunk += csvLine(cellsOf(row));
      yield chunk;
      chunk = "";
      if (!page.hasMore) return;
    }
  };
  return {
    status: 200,
    headers: {
      "content-type": "text/csv; charset=utf-8; header=present",
      "content-disposition": `attachment; filename="${name}.csv"`,
    },
    body: Readable.from(chunks(), { objectMode: false }),
  };
}

function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: Cell): string {
  if (cell === null) return "";
  const plain = String(cell).replace(controls, "\u{fffd}");
  const text = typeof cell === "string" && formula.test(plain) ? `'${plain}` : plain;
  return needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

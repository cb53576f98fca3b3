// Lists as CSV, a page of rows at a time, so that a list of any length takes the memory of a page. How a cell is written is
// csv.ts's.
import { Readable } from "node:stream";
import { csvCell, type Cell } from "../csv.ts";
import type { Page, PageRequest } from "../model/page.ts";
import type { Reply } from "./route.ts";

const rowsAPage = 1000;
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

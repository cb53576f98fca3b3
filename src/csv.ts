// A cell of CSV (RFC 4180), for the API's lists and the command line. Text that a spreadsheet would run as a formula is
// prefixed with an apostrophe, which makes it text.

/** Excel takes the full-width forms for the others; the rest are what is left out in front of one. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/;
/** Others' words are printed by terminals too: controls, and what reorders a line. */
// oxlint-disable-next-line no-control-regex
const controls = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g;
/** Semicolon and tab part cells too where a spreadsheet is set up so. */
const needsQuotes = /[",;\t\r\n]|^ | $/;

export type Cell = string | number | boolean | null;

export function csvCell(cell: Cell): string {
  if (cell === null) return "";
  const plain = String(cell).replace(controls, "\u{fffd}");
  const text = typeof cell === "string" && formula.test(plain) ? `'${plain}` : plain;
  return needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// Text from outside for people: control characters and the characters that reorder a line (unsafe-text.ts) are shown,
// never sent, to a terminal and to a pipe alike, behind which a pager or a later cat prints them; widths are counted in
// columns.
import { unsafeCharacters } from "../unsafe-text.ts";

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** `\x1b`, `\u202e`; line ends and tabs too, so that a value stays one line. */
export function neutralised(text: string): string {
  return text.replace(unsafeCharacters, (character) => {
    const known = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
    if (known !== undefined) return known;
    const code = character.codePointAt(0) ?? 0;
    return code < 0x100
      ? `\\x${code.toString(16).padStart(2, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** The same for a text of several lines: line ends and tabs stand. */
export function neutralisedLines(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.split("\t").map(neutralised).join("\t"))
    .join("\n");
}

/** Columns that a neutralised text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += /\p{M}/u.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return width;
}

/** Cut to `columns`, with an ellipsis where something is missing. */
export function fitted(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let kept = "";
  let width = 1;
  for (const character of text) {
    width += widthOf(character);
    if (width > columns) break;
    kept += character;
  }
  return `${kept}…`;
}

/** A value of a JSON body as a person reads it. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(cell).join(", ");
  if (typeof value === "object") return neutralised(JSON.stringify(value));
  const text = String(value as string | number);
  const time = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(text);
  return time ? `${time[1]} ${time[2]}Z` : neutralised(text);
}

/** 26,214,400 bytes as `25 MB`: units of 1,024, as the limits on mail are given. */
export function sizeText(bytes: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let [size, unit] = [bytes, 0];
  while (size >= 999.5 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  const shown = unit === 0 || size >= 99.5 ? size.toFixed(0) : size.toFixed(1).replace(/\.0$/, "");
  return `${shown} ${shown === "1" && unit === 0 ? "byte" : units[unit]}`;
}

/** The value of a field for a person: one whose name ends in `_bytes` in units. */
export function fieldText(name: string, value: unknown): string {
  return name.endsWith("_bytes") && typeof value === "number" ? sizeText(value) : cell(value);
}

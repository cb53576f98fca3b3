// Characters of others' text that a terminal or a pager obeys, or that hide and reorder what a line says: controls (C0,
// DEL, C1), and format characters such as the bidi overrides (Unicode TR 9, TR 36). The log and the command line escape
// them wherever they print; what else is done with text is csv.ts's and mail/reply.ts's.

export const unsafeCharacters =
  /[\p{Cc}\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/gu;
/** Most text has none: this look costs a fraction of the other. */
const beyondPlain = /[^\n\t\x20-\x7e]/;

/** JSON of the same value and the same lines, with an escape for each such character: JSON.stringify leaves most raw. */
export function escapedJson(json: string): string {
  if (!beyondPlain.test(json)) return json;
  return json.replace(unsafeCharacters, (character) =>
    // Within a string JSON has none of these raw (RFC 8259 §7).
    character === "\n" ? character : character === "\t" || character === "\r" ? " " : escapeOf(character),
  );
}

/** For text that is not JSON. */
export function escapedText(text: string): string {
  return text.replace(unsafeCharacters, escapeOf);
}

function escapeOf(character: string): string {
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
}

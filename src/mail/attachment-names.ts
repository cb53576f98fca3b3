// The names under which a reader's machine would save a part of a mail: `filename` of Content-Disposition and
// `name` of Content-Type (RFC 2183 §2.3, RFC 2045 §5.1), in every spelling of RFC 2231 and RFC 2047.
import { executableName } from "./attachments.ts";
import type { HeaderField } from "./header.ts";
import { readStructured } from "./structured.ts";

const naming: Record<string, string> = { "content-type": "name", "content-disposition": "filename" };

/** The first name of the part that a machine would execute; null where it has none. */
export function executableIn(fields: HeaderField[]): string | null {
  for (const { lower, value } of fields) {
    const key = naming[lower];
    if (key === undefined) continue;
    for (const [name, text] of readStructured(value).parameters)
      if (name === key && executableName(text)) return text;
  }
  return null;
}

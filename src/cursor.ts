// Cursors: positions in lists, opaque to callers: base64url of the kind of list and the last place seen. An
// invalid cursor, or one of another list, is refused.
import { Refusal } from "./errors.ts";

export type Position = (string | number)[];

export function encodeCursor(kind: string, position: Position): string {
  return Buffer.from(JSON.stringify([kind, ...position])).toString("base64url");
}

/** `shape`: what each part of the position must be. Throws Refusal invalid_request, field `cursor`. */
export function decodeCursor(
  kind: string,
  cursor: string | null,
  shape: ("string" | "number")[],
): Position | null {
  if (cursor === null) return null;
  const parts = parse(cursor);
  const fits =
    parts !== null &&
    parts.length === shape.length + 1 &&
    parts[0] === kind &&
    shape.every((type, i) =>
      type === "number" ? Number.isSafeInteger(parts[i + 1]) : typeof parts[i + 1] === "string",
    );
  if (!fits) {
    throw new Refusal(
      "invalid_request",
      "The cursor does not belong to this list: start without one, or pass next_cursor unchanged with the same filter.",
      {
        field: "cursor",
      },
    );
  }
  return parts.slice(1);
}

function parse(cursor: string): Position | null {
  if (cursor.length > 2000 || !/^[A-Za-z0-9_-]+$/.test(cursor)) return null;
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (!Array.isArray(value)) return null;
    return value.every((part) => typeof part === "string" || typeof part === "number") ? value : null;
  } catch {
    return null;
  }
}

// The words for a value of the wrong shape: what was expected and what was found, in place of a validator's own.
// A schema that says something better of itself is not overruled. The value found is quoted, shortened.

/** What a validator knows of a fault (zod's raw issue). */
export interface ShapeFault {
  code?: string;
  input?: unknown;
  expected?: unknown;
  values?: unknown;
  maximum?: unknown;
  minimum?: unknown;
  origin?: unknown;
}

const kinds: Record<string, string> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
};
const longestFound = 60;

/** undefined where there is nothing better to say than the schema does. */
export function shapeWords(fault: ShapeFault): string | undefined {
  const expected = expectedWords(fault);
  if (expected === null) return undefined;
  if (fault.input === undefined) return `is required: ${expected}`;
  return `expected ${expected}${expected.includes(", ") ? ";" : ","} found ${foundWords(fault.input)}`;
}

function expectedWords({ code, expected, values, maximum, minimum, origin }: ShapeFault): string | null {
  const unit = origin === "string" ? " characters" : "";
  if (code === "invalid_type" && typeof expected === "string") return kinds[expected] ?? null;
  if (code === "invalid_value" && Array.isArray(values)) {
    const all = values.map(String).join(", ");
    return values.length > 1 ? `one of ${all}` : all;
  }
  if (code === "too_big" && unit !== "") return `at most ${String(maximum)}${unit}`;
  if (code === "too_small" && unit !== "") return `at least ${String(minimum)}${unit}`;
  return null;
}

/** A value as it may be quoted: short, on one line. */
export function foundWords(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return "an object";
  const cut = typeof value === "string" && value.length > longestFound;
  return JSON.stringify(cut ? `${value.slice(0, longestFound).toWellFormed()}…` : value) ?? typeof value;
}

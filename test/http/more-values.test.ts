// How many values a JSON text holds, counted without parsing it.
import { expect, test } from "vitest";
import { hasMoreValues } from "../../src/http/body.ts";

/** Octet by octet, as RFC 8259 §7 has strings. */
function marksOutsideOfStrings(text: string): number {
  let marks = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const char = text.charAt(i);
    if (inString && char === "\\") i++;
    else if (char === '"') inString = !inString;
    else if (!inString && ",:[{".includes(char)) marks++;
  }
  return marks;
}

test.each([
  ['["a","b"]', 2],
  [String.raw`["\"",":,[{"]`, 2],
  [String.raw`["\\","\\\"",1]`, 3],
  [`{"a":"${'\\"'.repeat(3000)}","b":["c"]}`, 5],
  [`{"a":"${'\\"'.repeat(513)}${"x".repeat(5000)}\\\\","b":[1]}`, 5],
  [`{"a":"${"\\\\".repeat(3000)}","b":",:"}`, 4],
  [`{"a":"${'\\",'.repeat(3000)}`, 2],
])("counts what stands between strings (text %#)", (text, marks) => {
  const raw = Buffer.from(text);
  expect(marksOutsideOfStrings(text)).toBe(marks);
  expect(hasMoreValues(raw, marks)).toBe(false);
  expect(hasMoreValues(raw, marks - 1)).toBe(true);
});

test("escaped quotation marks by the million cost no more than a look at each octet", () => {
  const raw = Buffer.from(`["${'\\"'.repeat(8_000_000)}"]`);
  const before = process.cpuUsage();
  expect(hasMoreValues(raw, 20_000)).toBe(false);
  expect(process.cpuUsage(before).user).toBeLessThan(400_000);
});

import { expect, test } from "vitest";
import { readFields, readMime } from "../../src/mail/mime.ts";
import { here, leastCpuMs } from "../support/cpu.ts";

const quoted = (body: string): string =>
  readMime(Buffer.from(`Content-Transfer-Encoding: quoted-printable\r\n\r\n${body}`)).body;

test("folded lines of a field are joined by one space, empty ones left out", () => {
  const { fields, rest } = readFields("A: one\n  two \n\t\n three\nB:\n four\n\nbody");
  expect(fields).toEqual([
    { lower: "a", value: "one two three" },
    { lower: "b", value: "four" },
  ]);
  expect(rest).toBe("body");
});

test("a folded line before the first field, and one behind a line that is no field, belong where they did", () => {
  expect(readFields(" x;\nname=y\nA: b\nnot a field\n c\n").fields).toEqual([{ lower: "a", value: "b c" }]);
});

test("a parameter on a line of its own that was not folded belongs to the field that ends with a semicolon", () => {
  const { fields } = readFields('Content-Type: text/plain;\nname="a"; \n charset=utf-8\n');
  expect(fields).toEqual([{ lower: "content-type", value: 'text/plain; name="a"; charset=utf-8' }]);
});

test("of a field with ten thousand folded lines the first 20,000 octets are kept, and the next field is read", () => {
  const { fields } = readFields(`A: a\n${" bcd\n".repeat(10_000)}B: c\n`);
  expect(fields.map(({ lower }) => lower)).toEqual(["a", "b"]);
  expect(fields[0]?.value.length).toBe(20_001);
});

test("quoted-printable: escapes in both cases, soft breaks, white space at line ends, and what is no escape", () => {
  expect(quoted("=41=c3=A9 b \t\r\nsoft= \r\nly=\r\n on\r\nend =4")).toBe(
    "A\u00c3\u00a9 b\nsoftly on\nend =4",
  );
  expect(quoted("=ZZ =\t")).toBe("=ZZ =");
  expect(quoted("==\r\n41")).toBe("A"); // the soft break is taken out first
  expect(quoted("a=0D=0Ab=0Dc")).toBe("a\nb\nc");
});

test("quoted-printable of two million empty lines costs no more than other text of its size", () => {
  const body = "\n".repeat(1_900_000);
  const most = here(130);
  let read = "";
  expect(leastCpuMs(most, () => (read = quoted(body)))).toBeLessThan(most);
  expect(read).toHaveLength(body.length);
  expect(quoted("=\n=\n\n \n==\n\n=")).toBe("\n\n=\n=");
});

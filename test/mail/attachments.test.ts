import fc from "fast-check";
import { expect, test } from "vitest";
import { executableName, readAttachment, readContentType } from "../../src/mail/attachments.ts";

const read = (content: string, more: { filename?: string; content_type?: string } = {}) =>
  readAttachment({ filename: "a.txt", content, ...more });

test("reads base64 with the line breaks of mail, and names the type by the extension", () => {
  expect(read("aGVs\r\nbG8=\r\n")).toEqual({
    ok: true,
    value: { bytes: Buffer.from("hello"), contentType: "text/plain" },
  });
  expect(read("aGVs\nbG8=")).toMatchObject({ ok: true, value: { bytes: Buffer.from("hello") } });
  expect(read("", { filename: "x.unknown" })).toMatchObject({
    ok: true,
    value: { contentType: "application/octet-stream" },
  });
});

test.each([
  "aGVsbG8",
  "aGVsbG8==",
  "aGVsbG9=",
  "aGVs bG8=",
  "aGVs\rbG8=",
  "aGV-bG8_",
  "aGVsbG8=aGVs",
  "====",
  "!",
  "a",
  "aGVsbG8=\0",
  "data:text/plain;base64,aGVsbG8=",
])("refuses %j as base64", (content) => {
  expect(read(content)).toEqual({
    ok: false,
    problems: [{ field: "content", issue: "is not valid base64" }],
  });
});

test("any bytes survive, whatever their length", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(3), (bytes, slices) => {
      const whole = Buffer.concat([Buffer.alloc(slices * 49_152, 9), bytes]);
      expect(read(whole.toString("base64"))).toMatchObject({ ok: true, value: { bytes: whole } });
    }),
    { numRuns: 50 },
  );
});

test.each([
  ["text/plain", "text/plain"],
  ["Text/CSV; Charset=utf-8", "text/csv; charset=utf-8"],
  [
    'text/calendar;method=REQUEST ; name="a \\"b\\".ics"',
    'text/calendar; method=REQUEST; name="a \\"b\\".ics"',
  ],
  ["application/vnd.ms-excel;", "application/vnd.ms-excel"],
])("takes the type %j as %j", (text, type) => {
  expect(readContentType(text)).toBe(type);
});

test.each([
  "",
  "text",
  "text/",
  "/plain",
  "text/pl ain",
  "text/plain; charset",
  "text/plain\r\nBcc: a@b.test",
  'a/b; c="d\r\n"',
  "a/b\r\n",
  "téxt/plain",
  "multipart/mixed",
  `a/${"b".repeat(600)}`,
])("refuses the type %j", (text) => {
  expect(readContentType(text)).toBeNull();
  expect(read("aGVsbG8=", { content_type: text }).ok).toBe(false);
});

test.each([
  "a.exe",
  "A.EXE",
  "invoice.pdf.exe.",
  "invoice.pdf.exe. . \u200e\t",
  "invoice.pdf.exe\0",
  "ｉｎｖｏｉｃｅ．ｅｘｅ",
  "a.e\u200bxe",
  "a.%65xe",
  "a%2Eexe",
  "=?utf-8?B?YS5leGU=?=",
  "=?utf-8?Q?a=2Eexe?=",
  "a.pdf/../b.scr",
  "C:\\x\\b.JS ",
  "photo.gpj\u202eexe.pdf\u202c.\u202ecod",
  "a.\ud83dexe",
  "a.=?utf-8?Q?=FF?=",
  "a.xll",
])("%j is executable", (filename) => {
  expect(executableName(filename)).toBe(true);
  expect(read("aGVsbG8=", { filename }).ok).toBe(false);
});

test.each([
  "report.exe.pdf",
  "acme.com.pdf",
  "exe",
  "README",
  "a.txt",
  "archive.tar.gz",
  "100%.pdf",
  "Übersicht 😊.docx",
  "...",
  "",
  "a.example",
])("%j is not executable", (filename) => {
  expect(executableName(filename)).toBe(false);
});

test("all that is wrong is said at once, field by field", () => {
  const refused = read("!", { filename: "a.exe", content_type: "text" });
  expect(refused.ok ? [] : refused.problems.map((problem) => problem.field)).toEqual([
    "filename",
    "content_type",
    "content",
  ]);
});

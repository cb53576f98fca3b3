// What of a send request's headers, attachments, tags and times is taken.
import { describe, expect, test } from "vitest";
import type { Problem } from "../../src/errors.ts";
import { inFieldOrder, readRequest } from "../../src/submission/request.ts";
import { good, startMs } from "./rig.ts";

const read = (over: Record<string, unknown>) => readRequest(good(over), startMs);
const problemsOf = (over: Record<string, unknown>): Problem[] => inFieldOrder(read(over).problems);
const rows = (over: Record<string, unknown>): string[] =>
  problemsOf(over).map(({ field, code }) => `${field} ${code}`);

const bad = "validation_failed";

describe("headers", () => {
  const refused =
    "From To Cc Bcc Subject Sender Reply-To Date Message-ID Return-Path Received MIME-Version Content-Type " +
    "Content-Transfer-Encoding Resent-From DKIM-Signature ARC-Seal Authentication-Results X-Svc-Tags";
  for (const name of refused.split(" ")) {
    test(`${name} is the service's own, in any case`, () => {
      for (const spelling of [name, name.toLowerCase(), name.toUpperCase()])
        expect(rows({ headers: { [spelling]: "v" } })).toEqual([`headers.${spelling} ${bad}`]);
    });
  }

  test("of one's own are taken, List-Unsubscribe too", () => {
    const headers = {
      "List-Unsubscribe": "<https://x.test/u>, <mailto:u@x.test>",
      "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
      "X-Entity-Ref": "",
      "In-Reply-To": "<1@x.test>",
      "X-Colour": "grün",
    };
    expect(read({ headers }).request.headers).toEqual(Object.entries(headers));
    expect(rows({ headers })).toEqual([]);
  });

  test("need a name that is one", () => {
    for (const name of ["", "X A", "X:A", "Ünicode", "X-A\t", "From ", "x".repeat(77)])
      expect(problemsOf({ headers: { [name]: "v" } })).toMatchObject([
        { field: `headers.${name}`, code: bad },
      ]);
  });

  test("are at most 50 with 8,192 bytes", () => {
    const many = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`X-${i}`, "v"]));
    expect(rows({ headers: many(50) })).toEqual([]);
    expect(rows({ headers: many(51) })).toEqual([`headers ${bad}`]);
    const words = "word ".repeat(2000);
    expect(rows({ headers: { "X-A": words.slice(0, 8192 - 7) } })).toEqual([]);
    expect(rows({ headers: { "X-A": words.slice(0, 8192 - 6) } })).toEqual([`headers ${bad}`]);
    expect(rows({ headers: { "X-A": "é".repeat(4100) } })).toEqual([`headers ${bad}`]);
    expect(rows({ headers: { "X-A": "x".repeat(9000) } })).toEqual([`headers ${bad}`]);
  });

  test("that cannot be folded are refused", () => {
    expect(rows({ headers: { "X-A": "x".repeat(1200) } })).toEqual([`headers.X-A ${bad}`]);
    expect(rows({ headers: { "X-A": "x".repeat(900) } })).toEqual([]);
  });
});

describe("attachments", () => {
  const one = (over: object) => rows({ attachments: [{ filename: "a.txt", content: "aGk=", ...over }] });
  const invalid = "invalid_attachment";

  test("are decoded and typed", () => {
    const { request } = read({
      attachments: [
        { filename: "a.pdf", content: "aGk=" },
        { filename: "b", content: "aG\nk=", content_type: "Text/CSV; header=present" },
        { filename: "logo.png", content: "", content_id: "logo@x" },
        { filename: "c.png", content: "", content_id: "c", disposition: "attachment" },
        { filename: "d.png", content: "", disposition: "inline" },
      ],
    });
    expect(
      request.attachments.map((a) => [
        a.filename,
        a.contentType,
        a.contentId,
        a.disposition,
        String(a.bytes),
      ]),
    ).toEqual([
      ["a.pdf", "application/pdf", null, "attachment", "hi"],
      ["b", "text/csv; header=present", null, "attachment", "hi"],
      ["logo.png", "image/png", "logo@x", "inline", ""],
      ["c.png", "image/png", "c", "attachment", ""],
      ["d.png", "image/png", null, "inline", ""],
    ]);
  });

  test("with an executable name are refused at the name", () => {
    for (const filename of ["a.exe", "invoice.pdf.exe.", "A.ExE ", "x.js", "a.%65xe"])
      expect(one({ filename })).toEqual([`attachments[0].filename ${invalid}`]);
    for (const filename of ["report.exe.pdf", "acme.com.pdf", "exe"]) expect(one({ filename })).toEqual([]);
  });

  test("say all that is wrong with them", () => {
    expect(one({ filename: "a.exe", content: "?", content_type: "none" })).toEqual([
      `attachments[0].filename ${invalid}`,
      `attachments[0].content_type ${invalid}`,
      `attachments[0].content ${invalid}`,
    ]);
    expect(one({ filename: "", content: "aGk" })).toEqual([
      `attachments[0].filename ${bad}`,
      `attachments[0].content ${invalid}`,
    ]);
    expect(one({ filename: "x".repeat(256) })).toEqual([`attachments[0].filename ${bad}`]);
  });

  test("need strict base64", () => {
    for (const content of [
      "aGk",
      "aG k=",
      "aGk=\0",
      "aGk-",
      "a===",
      "=",
      "aGl=",
      "data:text/plain;base64,aGk=",
    ])
      expect(one({ content })).toEqual([`attachments[0].content ${invalid}`]);
    expect(one({ content: "aG\r\nk=\r\n" })).toEqual([]);
  });

  test("need a type/subtype", () => {
    for (const content_type of [
      "",
      "text",
      "text/",
      "/plain",
      "text plain",
      "multipart/mixed",
      "text/plain\r\nX: y",
    ])
      expect(one({ content_type })).toEqual([`attachments[0].content_type ${invalid}`]);
  });

  test("have a content_id without spaces and brackets", () => {
    for (const content_id of ["", "<a@x>", "a b", "é", "x".repeat(256)])
      expect(one({ content_id })).toEqual([`attachments[0].content_id ${bad}`]);
  });

  test("are at most 50", () => {
    const many = (n: number) => Array.from({ length: n }, () => ({ filename: "a.txt", content: "" }));
    expect(rows({ attachments: many(50) })).toEqual([]);
    expect(rows({ attachments: many(51) })).toEqual([`attachments ${bad}`]);
    expect(rows({ attachments: [{ filename: "a.exe", content: "" }, ...many(50)] })).toEqual([
      `attachments ${bad}`,
      `attachments[0].filename ${invalid}`,
    ]);
  });
});

test("tags are at most 10 with 1 to 128 characters, each once", () => {
  expect(read({ tags: ["a", "b", "a"] }).request.tags).toEqual(["a", "b"]);
  expect(rows({ tags: Array.from({ length: 10 }, (_, i) => `${i}`.padEnd(128, "x")) })).toEqual([]);
  expect(rows({ tags: Array.from({ length: 11 }, (_, i) => `${i}`) })).toEqual([`tags ${bad}`]);
  expect(rows({ tags: ["ok", "", "x".repeat(129)] })).toEqual([`tags[1] ${bad}`, `tags[2] ${bad}`]);
});

test("metadata has at most 20 entries of bounded keys and values", () => {
  const many = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, "v"]));
  expect(rows({ metadata: many(20) })).toEqual([]);
  expect(rows({ metadata: many(21) })).toEqual([`metadata ${bad}`]);
  expect(rows({ metadata: { ["k".repeat(128)]: "v".repeat(1024) } })).toEqual([]);
  expect(rows({ metadata: { "": "v", k: "v".repeat(1025) } })).toEqual([
    `metadata. ${bad}`,
    `metadata.k ${bad}`,
  ]);
});

describe("send_at", () => {
  const at = (ms: number) => new Date(startMs + ms).toISOString();
  const hours72 = 72 * 3_600_000;

  test("may be exactly 72 hours ahead and no further", () => {
    expect(read({ send_at: at(hours72) }).request.sendAt).toBe(startMs + hours72);
    expect(rows({ send_at: at(hours72) })).toEqual([]);
    expect(rows({ send_at: at(hours72 + 1000) })).toEqual(["send_at scheduling_window_exceeded"]);
    expect(rows({ send_at: "9999-12-31T23:59:59-23:59" })).toEqual(["send_at scheduling_window_exceeded"]);
  });

  test("in the past or now means at once", () => {
    for (const send_at of [at(0), at(-1), "0001-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"]) {
      expect(rows({ send_at })).toEqual([]);
      expect(read({ send_at }).request.sendAt).toBeNull();
    }
  });

  test("may have an offset, a fraction and small letters", () => {
    for (const send_at of [
      "2026-11-27T15:00:00+05:30",
      "2026-11-27t09:30:00.000z",
      "2026-11-27T09:30:00.000000001Z",
      "2026-11-27T09:30:00-00:00",
    ])
      expect(read({ send_at }).request.sendAt).toBe(startMs + 1_800_000);
  });

  for (const send_at of [
    "2026-11-27T10:00:00",
    "2026-11-27",
    "2026-11-27 10:00:00Z",
    "2027-02-30T10:00:00Z",
    "2026-11-31T10:00:00Z",
    "2026-13-01T10:00:00Z",
    "2026-00-10T10:00:00Z",
    "2026-11-27T24:00:00Z",
    "2026-11-27T25:00:00Z",
    "2026-11-27T10:60:00Z",
    "2026-12-31T23:59:60Z",
    "2026-11-27T10:00:00+25:00",
    "2026-11-27T10:00Z",
    "+002026-11-27T10:00:00Z",
    "10000-01-01T00:00:00Z",
    "1790000000",
    "tomorrow",
    " 2026-11-27T10:00:00Z",
  ])
    test(`refuses ${JSON.stringify(send_at)}`, () => {
      expect(rows({ send_at })).toEqual([`send_at ${bad}`]);
    });
});

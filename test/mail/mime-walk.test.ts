import fc from "fast-check";
import { expect, test } from "vitest";
import { MailSyntaxError, parseHeaderSection } from "../../src/mail/header.ts";
import { MimeWalk } from "../../src/mail/mime-walk.ts";
import { here, leastCpuMs } from "../support/cpu.ts";

/** What the walk tells, one entry a part: `type{content}`; and all its bytes put together. */
function walk(mail: string, cuts: number[] = []): { parts: string[]; bytes: string; signed: string[] } {
  const end = mail.indexOf("\r\n\r\n") + 4;
  const parts: string[] = [];
  const signed: string[] = [];
  let bytes = "";
  const visit = new MimeWalk(parseHeaderSection(Buffer.from(mail.slice(0, end), "latin1")), {
    part(part) {
      parts.push(`${part.contentType.value}{`);
      if (part.signed) signed.push(part.contentType.value);
      bytes += part.section.toString("latin1");
    },
    content(piece) {
      parts.push((parts.pop() ?? "") + piece.toString("latin1"));
      bytes += piece.toString("latin1");
    },
    frame(piece) {
      bytes += piece.toString("latin1");
    },
  });
  const body = Buffer.from(mail.slice(end), "latin1");
  let at = 0;
  for (const cut of cuts) visit.push(body.subarray(at, (at += cut)));
  visit.push(body.subarray(at));
  visit.end();
  expect(bytes).toBe(mail.slice(end));
  return { parts: parts.map((part) => `${part}}`), bytes, signed };
}

const multipart = (type: string, boundary: string): string =>
  `Content-Type: multipart/${type}; boundary=${boundary}\r\n\r\n`;

test("a mail without parts is one leaf", () => {
  expect(walk("Subject: x\r\n\r\n--a\r\nHi\r\n").parts).toEqual(["text/plain{--a\r\nHi\r\n}"]);
});

test("finds the parts, and leaves the line end before a delimiter to the delimiter", () => {
  const mail = `${multipart("mixed", '"a b"')}preamble\r\n--a b\r\n\r\none\r\n--a b  \r\nContent-Type: text/html\r\n\r\n\r\n--a bc\r\n-- a b\r\n\r\n--a b--\r\nepilogue\r\n`;
  expect(walk(mail).parts).toEqual([
    "multipart/mixed{}",
    "text/plain{one}",
    "text/html{\r\n--a bc\r\n-- a b\r\n}",
  ]);
});

test("a delimiter of an outer multipart ends what is open within", () => {
  const mail = `${multipart("mixed", "o")}--o\r\n${multipart("alternative", "i")}--i\r\n\r\none\r\n--o\r\nContent-Type: a/b\r\n\r\n--i\r\ntwo\r\n--o--\r\n`;
  expect(walk(mail).parts).toEqual([
    "multipart/mixed{}",
    "multipart/alternative{}",
    "text/plain{one}",
    "a/b{--i\r\ntwo}",
  ]);
});

test("a boundary that an inner multipart has again is the inner one's until that is closed", () => {
  const mail = `${multipart("mixed", "o")}--o\r\n${multipart("alternative", "o")}--o\r\n\r\none\r\n--o--\r\n\r\n--o\r\nContent-Type: a/b\r\n\r\ntwo\r\n--o--\r\n`;
  expect(walk(mail).parts).toEqual([
    "multipart/mixed{}",
    "multipart/alternative{}",
    "text/plain{one}",
    "a/b{two}",
  ]);
});

test("looks into attached messages, but not where they are in base64", () => {
  const attached = (encoding: string): string =>
    `${multipart("mixed", "o")}--o\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\nContent-Type: text/x\r\n\r\nin\r\n--o--\r\n`;
  expect(walk(attached("8bit")).parts).toEqual(["multipart/mixed{}", "message/rfc822{}", "text/x{in}"]);
  expect(walk(attached("base64")).parts.at(-1)).toBe("message/rfc822{Content-Type: text/x\r\n\r\nin}");
});

test("a part without an empty line has no content, and a line that is not a field does not hide the next", () => {
  const mail = `${multipart("mixed", "o")}--o\r\nContent-Type: a/b\r\n--o\r\nno field\r\nContent-Type: c/d\r\n\r\nx\r\n`;
  expect(walk(mail).parts).toEqual(["multipart/mixed{}", "a/b{}", "c/d{x\r\n}"]);
});

test("what says it is multipart and has no boundary is a leaf", () => {
  expect(walk("Content-Type: multipart/mixed\r\n\r\n--\r\nx\r\n").parts).toEqual([
    "multipart/mixed{--\r\nx\r\n}",
  ]);
});

test("a boundary that readers would not agree on is refused, for parts could hide behind it", () => {
  for (const given of ["a; boundary=b", "a; boundary*=utf-8''b", '"\ufffd"'])
    expect(() => walk(`${multipart("mixed", given)}--b\r\n\r\nx\r\n--b--\r\n`)).toThrow(/two boundaries/);
  expect(walk(`${multipart("mixed", "a; boundary=a")}--a\r\n\r\nx\r\n--a--\r\n`).parts).toHaveLength(2);
});

test("tells what a signature covers", () => {
  const mail = `${multipart("mixed", "o")}--o\r\n${multipart("signed", "s")}--s\r\nContent-Type: text/x\r\n\r\nx\r\n--s\r\nContent-Type: application/pgp-signature\r\n\r\ny\r\n--s--\r\n--o\r\nContent-Type: a/b\r\n\r\nz\r\n--o--\r\n`;
  expect(walk(mail).signed).toEqual(["text/x", "application/pgp-signature"]);
});

test("tells the same at any split", () => {
  const piece = fc.constantFrom(
    "\r\n",
    "--",
    "-",
    "o",
    "i",
    "--o\r\n",
    "--o--\r\n",
    "--i\r\n",
    "x",
    " ",
    "\r\n--o",
    "\r\n\r\n",
    multipart("mixed", "i"),
    "Content-Type: message/rfc822\r\n\r\n",
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 40 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 80 }),
      (pieces, cuts) => {
        const mail = `${multipart("mixed", "o")}${pieces.join("")}`;
        expect(walk(mail, cuts)).toEqual(walk(mail));
      },
    ),
    { numRuns: 1_500 },
  );
});

test("100 levels pass and one more is refused, as are header sections of more than 100 KB", () => {
  const nested = (levels: number): string =>
    Array.from(
      { length: levels },
      (_, i) => `${i === 0 ? "" : `--b${i - 1}\r\n`}${multipart("mixed", `b${i}`)}`,
    ).join("");
  expect(walk(nested(100)).parts).toHaveLength(100);
  expect(() => walk(nested(101))).toThrow(MailSyntaxError);
  expect(() =>
    walk(`Content-Type: message/rfc822\r\n\r\n${"Content-Type: message/rfc822\r\n\r\n".repeat(500)}`),
  ).toThrow(/100 deep/);
  const huge = `${multipart("mixed", "o")}--o\r\nX: ${"x".repeat(110_000)}`;
  expect(() => walk(huge, [50_000])).toThrow(/100 KB/);
});

test("a part with 2,000 header fields passes and one with more is refused", () => {
  const part = (fields: number): string =>
    `${multipart("mixed", "o")}--o\r\n${"a:b\r\n".repeat(fields)}\r\nx\r\n--o--\r\n`;
  expect(walk(part(2_000)).parts).toHaveLength(2);
  expect(() => walk(part(2_001))).toThrow(/2,000 fields/);
});

const bombs: [string, string][] = [
  [
    "100,000 parts",
    `${multipart("mixed", "o")}${"--o\r\nContent-Type: a/b\r\n\r\nx\r\n".repeat(100_000)}--o--\r\n`,
  ],
  ["5 MB of lines that could be delimiters", `${multipart("mixed", "o")}${"--\r\n".repeat(1_250_000)}`],
  ["5 MB of dashes", `${multipart("mixed", "o")}${"-".repeat(5_000_000)}\r\n`],
  ["a boundary of 10 KB", `${multipart("mixed", "o".repeat(10_000))}--${"o".repeat(10_000)}\r\n\r\nx\r\n`],
];
test.each(bombs)(
  "%s cost a few seconds of a quick machine at most, as what grows with the square does not",
  (_name, mail) => {
    const end = mail.indexOf("\r\n\r\n") + 4;
    const nothing = (): void => undefined;
    const header = parseHeaderSection(Buffer.from(mail.slice(0, end)));
    const body = Buffer.from(mail.slice(end));
    const most = here(3_000);
    const took = leastCpuMs(most, () => {
      const visit = new MimeWalk(header, { part: nothing, content: nothing, frame: nothing });
      for (let at = 0; at < body.length; at += 65_536) visit.push(body.subarray(at, at + 65_536));
      visit.end();
    });
    expect(took).toBeLessThan(most);
  },
);

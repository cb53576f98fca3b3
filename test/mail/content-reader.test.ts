import { expect, test } from "vitest";
import {
  contentLimits,
  ContentLimit,
  ContentReader,
  type ContentPlan,
} from "../../src/mail/content-reader.ts";
import { ContentText } from "../../src/mail/content-text.ts";

function bytesOf(mail: string | string[]): Buffer {
  return Buffer.from(typeof mail === "string" ? mail : mail.join("\r\n"), "latin1");
}

/** What is shown of a mail that comes in pieces of `step` octets. */
function shown(mail: Buffer, step = mail.length): ContentPlan & { shownText: string; shownHtml: string } {
  const reader = new ContentReader();
  for (let at = 0; at < mail.length; at += step) reader.push(mail.subarray(at, at + step));
  const plan = reader.end();
  const textOf = (places: ContentPlan["text"]): string => {
    const text = new ContentText(places);
    let json = "";
    const end = places.at(-1)?.end ?? 0;
    for (let at = places[0]?.start ?? end; at < end; at += step)
      json += text.push(mail.subarray(at, Math.min(end, at + step)), at).toString();
    return JSON.parse(`"${json}"`) as string;
  };
  return { ...plan, shownText: textOf(plan.text), shownHtml: textOf(plan.html) };
}

const multipart = 'Content-Type: multipart/mixed; boundary="b"\r\n\r\n';
const typical = Buffer.from(
  [
    "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
    "X-Long: one",
    "  two",
    'Content-Type: multipart/mixed; boundary="b"',
    "",
    "a preamble",
    "--b",
    "Content-Type: text/plain; charset=utf-8",
    "",
    "Grüße \u{1f600}",
    "second line",
    "--b",
    "Content-Type: text/html; charset=iso-8859-1",
    "Content-Transfer-Encoding: quoted-printable",
    "",
    "<p>Gr=FC=",
    "=DFe</p>   ",
    "--b",
    'Content-Type: application/pdf; name="other.pdf"',
    "Content-Disposition: attachment; filename*=utf-8''%C3%BCber.pdf",
    "Content-Transfer-Encoding: base64",
    "",
    "AAEC",
    "Aw==",
    "--b",
    "Content-Type: message/rfc822",
    "",
    "Subject: inner",
    'Content-Type: multipart/mixed; boundary="i"',
    "",
    "--i",
    "",
    "not shown",
    "--i--",
    "",
    "--b",
    'Content-Type: text/plain; name="notes.txt"',
    "Content-Disposition: attachment",
    "",
    "12345",
    "--b",
    "Content-Transfer-Encoding: base64",
    "",
    "dGFpbA==",
    "--b--",
    "an epilogue",
    "",
  ].join("\r\n"),
);

test.each([1, 2, 3, 7, 64, 10_000])(
  "text, html, headers and attachments are found, in whatever pieces the mail comes (%i octets)",
  (step) => {
    const mail = shown(typical, step);
    expect(mail.shownText).toBe("Grüße \u{1f600}\nsecond line\ntail");
    expect(mail.shownHtml).toBe("<p>Grüße</p>");
    expect(mail.headers).toEqual([
      { name: "Subject", value: "=?utf-8?q?Gr=C3=BC=C3=9Fe?=" },
      { name: "X-Long", value: "one  two" },
      { name: "Content-Type", value: 'multipart/mixed; boundary="b"' },
    ]);
    const inner = typical.indexOf("Subject: inner");
    expect(mail.attachments).toEqual([
      { filename: "über.pdf", contentType: "application/pdf", sizeBytes: 4 },
      {
        filename: null,
        contentType: "message/rfc822",
        sizeBytes: typical.indexOf("\r\n--b\r\n", inner) - inner,
      },
      { filename: "notes.txt", contentType: "text/plain", sizeBytes: 5 },
    ]);
  },
);

test.each([
  ["a mail that is all header", "Subject: x\r\n", null, null],
  ["an empty mail", "", null, null],
  ["a body without a header", "\r\nhello\r\n", "hello\n", null],
  ["html alone", "Content-Type: text/html\r\n\r\n<p>\r\n", null, "<p>\n"],
  ["a multipart without a boundary", "Content-Type: multipart/mixed\r\n\r\nx", null, null],
  ["a part that is never closed", `${multipart}--b\r\n\r\nopen`, "open", null],
])("%s is shown for what it is", (_, mail, text, html) => {
  const { shownText, shownHtml } = shown(bytesOf(mail));
  expect([shownText, shownHtml]).toEqual([text ?? "", html ?? ""]);
});

test.each([
  ["utf-16le", "PdgA3g==", "\u{1f600}"],
  ["ISO-2022-JP", "GyRCRnxLXBsoQg==", "日本"],
  ["koi8-r", "8NLJ18XU", "Привет"],
  ["utf-8", "4oKs/w==", "€\ufffd"],
  ["no-such-charset", "YeRi", "a\ufffdb"],
  ["utf-8", "//==QQ=\r\n=!!Qg", "\ufffdAB"],
])("text in base64 of the charset %s is read (%s)", (charset, base64, text) => {
  const mail = `Content-Type: text/plain; charset=${charset}\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64}`;
  for (const step of [1, 2, 3, 5, 1000]) expect(shown(bytesOf(mail), step).shownText).toBe(text);
});

test.each([
  ["a=3Db=C3=A9", "a=bé"],
  ["soft=\r\nbreak=  \r\n!", "softbreak!"],
  ["no escape: =G1 = x =", "no escape: =G1 = x "],
  ["spaces \t\r\nat line ends  \r\n", "spaces\nat line ends\n"],
  ["inner  spaces stay", "inner  spaces stay"],
  ["=e2=82=AC", "€"],
])("quoted-printable %j is read", (encoded, text) => {
  const mail = `Content-Transfer-Encoding: quoted-printable\r\n\r\n${encoded}`;
  for (const step of [1, 2, 3, 5, 1000]) expect(shown(bytesOf(mail), step).shownText).toBe(text);
});

const nested = (levels: number): string =>
  Array.from(
    { length: levels },
    (_, i) => `Content-Type: multipart/mixed; boundary="b${i}"\r\n\r\n--b${i}\r\n`,
  ).join("");

test.each([
  ["10,000 parts", `${multipart}${"--b\r\n\r\nx\r\n".repeat(9_999)}--b--`, 9_999],
  ["100 levels", `${nested(100)}\r\ndeep`, 1],
])("%s are read", (_, mail, texts) => {
  expect(shown(bytesOf(mail)).text).toHaveLength(texts);
});

test.each([
  ["a part too many", `${multipart}${"--b\r\n\r\nx\r\n".repeat(10_001)}`, "more than 10,000 parts"],
  ["a level too many", `${nested(101)}\r\ndeep`, "more than 100 deep"],
  ["a header of 1 MB", `X-A: ${"x".repeat(1_000_000)}\r\n\r\nx`, "header section of more than 100 KB"],
  ["a header of 1 MB in a part", `${multipart}--b\r\nX-A: ${"x".repeat(1_000_000)}`, "more than 100 KB"],
  ["a field too many", `${"a:b\r\n".repeat(2_101)}\r\nx`, "more than 2,100 header fields"],
])("%s is refused with the limit's name", (_, mail, limit) => {
  expect(() => shown(bytesOf(mail))).toThrow(ContentLimit);
  expect(() => shown(bytesOf(mail), 4096)).toThrow(limit);
});

test("no more is kept of a file name and a media type than a file system takes", () => {
  const long = "x".repeat(40_000);
  const mail = `${multipart}--b\r\nContent-Type: a/${long}\r\nContent-Disposition: attachment; filename="${long}"\r\n\r\n`;
  const [file] = shown(bytesOf(mail)).attachments;
  expect([file?.filename?.length, file?.contentType.length]).toEqual([255, 255]);
});

/** Pieces of mail that grow without a limit's meeting them, and the octets that the reader and the text give for each. */
test.each([
  ["empty lines", "", "\r\n"],
  ["lines that begin like a delimiter", `${multipart}--b\r\n`, "\r\n--"],
  ["lines that are almost a delimiter", `${multipart}--b\r\n`, "\r\n--bx"],
  ["quoted-printable of spaces", "Content-Transfer-Encoding: quoted-printable\r\n", " "],
  ["quoted-printable of =", "Content-Transfer-Encoding: quoted-printable\r\n", "="],
  ["control characters", "", "\u0001"],
])("what is held of %s does not grow with their number", (_, head, unit) => {
  const piece = bytesOf(unit.repeat(Math.floor(16_384 / unit.length)));
  const reader = new ContentReader();
  reader.push(bytesOf(`${head}\r\n`));
  const text = new ContentText([
    {
      start: 0,
      end: Number.MAX_SAFE_INTEGER,
      encoding: head.includes("quoted") ? "quoted-printable" : "7bit",
      charset: "",
    },
  ]);
  let out = 0;
  for (let i = 0; i < 64; i++) {
    reader.push(piece);
    out += text.push(piece, i * piece.length).length;
  }
  const plan = reader.end();
  expect(plan.text).toHaveLength(1);
  // A control character takes six octets of JSON; what is held back is a line's worth.
  expect(out).toBeLessThanOrEqual(64 * piece.length * 6);
  expect(out).toBeGreaterThanOrEqual((64 * piece.length) / 2 - 2048);
});

test("the limits are those of the documentation", () => {
  expect(contentLimits).toEqual({ headerBytes: 102_400, fields: 2_100, parts: 10_000 });
});

import { expect, test } from "vitest";
import { rewriteHeaders, type RewrittenHeaders } from "../../src/mail/submit-headers.ts";

const add = {
  trace: "Received: by mx.test\r\n",
  messageId: "<new@mx.test>",
  date: Date.UTC(2026, 10, 27),
};
const rewrite = (section: string): RewrittenHeaders => rewriteHeaders(Buffer.from(section), add);
const from = "From: Ann <ann@ok.test>\r\n";

test("takes out Bcc, Return-Path and the options, adds what lacks, and keeps the rest to the byte", () => {
  const kept =
    "Received: from a\r\n\tby b; x\r\nReceived: from c\r\nFrom:  Ann\r\n <ann@ok.test>\r\nReferences: <1@x>\r\n\t<2@x>\r\n" +
    "List-Id: <l.ok.test>\r\nList-Unsubscribe: <https://ok.test/u>\r\nX-CUSTOM:  Two  spaces \r\n";
  const result = rewrite(
    `Return-Path: <x@y.test>\r\nX-Svc-Tags: a, b\r\n${kept}bcc: c@ok.test,\r\n\td@ok.test\r\nx-SVC-Metadata: {"a":\r\n "b"}\r\nResent-Bcc: e@ok.test\r\n\r\n`,
  );
  expect(result.section.toString()).toBe(
    `Received: by mx.test\r\n${kept}Message-ID: <new@mx.test>\r\nDate: Fri, 27 Nov 2026 00:00:00 +0000\r\n\r\n`,
  );
  expect([...result.svc]).toEqual([
    ["x-svc-tags", "a, b"],
    ["x-svc-metadata", '{"a": "b"}'],
  ]);
  expect(result).toMatchObject({ messageId: "<new@mx.test>", hasDate: false, subject: "" });
});

test("keeps a Date and a Message-ID that came, and replaces those that are none", () => {
  const good = rewrite(`${from}Date: Thu, 1 Jan 2026 00:00:00 +0100\r\nMessage-Id: <own@ok.test>\r\n\r\n`);
  expect(good).toMatchObject({ messageId: "<own@ok.test>", hasDate: true });
  expect(good.section.toString()).toBe(
    `Received: by mx.test\r\n${from}Date: Thu, 1 Jan 2026 00:00:00 +0100\r\nMessage-Id: <own@ok.test>\r\n\r\n`,
  );
  const bad = rewrite(`${from}Date: \r\nMessage-ID: none\r\n\r\n`);
  expect(bad.section.toString().match(/^(?:Date|Message-ID): .*/gm)).toEqual([
    "Message-ID: <new@mx.test>",
    "Date: Fri, 27 Nov 2026 00:00:00 +0000",
  ]);
});

test("takes out the token of another message, however often a client brings it along", () => {
  const text = rewrite(
    `${from}X-Feedback-Token: a.b\r\nx-feedback-token : c\r\n d\r\nX-Own: 1\r\n\r\n`,
  ).section.toString();
  expect(text).not.toMatch(/feedback/i);
  expect(text).toContain("X-Own: 1\r\n");
});

test("reads the subject and every author decoded", () => {
  const result = rewrite(
    'From: =?utf-8?B?SsO2cmc=?= <j@ok.test>, "Lee, Ann" <ann@ok.test>\r\n' +
      "Subject: =?iso-8859-1?Q?Gr=FC?=\r\n =?ISO-8859-1?Q?=DFe_?= an =?utf-8?Q?=E2=82?= =?utf-8?Q?=AC?= =?x-none?B?YQ==?=\r\n\r\n",
  );
  expect(result.subject).toBe("Grüße  an €a");
  expect(result.from.map((box) => [box.name, box.address.email])).toEqual([
    ["Jörg", "j@ok.test"],
    ["Lee, Ann", "ann@ok.test"],
  ]);
});

test.each([
  ["no From", "Subject: x\r\n\r\n", "from_missing"],
  ["an empty From", "From: \r\n\r\n", "from_invalid"],
  ["an empty group as From", "From: nobody:;\r\n\r\n", "from_invalid"],
  ["a From that is no address", "From: Ann\r\n\r\n", "from_invalid"],
  ["a From with two addresses in one", "From: x <a@ok.test> <ceo@bank.test>\r\n\r\n", "from_invalid"],
  ["two From fields", `${from}From: ceo@bank.test\r\n\r\n`, "field_repeated"],
  ["two From fields, one with a space", `${from}FROM : ceo@bank.test\r\n\r\n`, "field_repeated"],
  ["two Subject fields", `${from}Subject: a\r\nSubject: b\r\n\r\n`, "field_repeated"],
  ["two Date fields", `${from}Date: a\r\nDate: b\r\n\r\n`, "field_repeated"],
  ["two Content-Type fields", `${from}Content-Type: a/b\r\nContent-Type: c/d\r\n\r\n`, "field_repeated"],
  ["an option given twice", `${from}X-Svc-Tags: a\r\nx-svc-TAGS : b\r\n\r\n`, "field_repeated"],
  ["a folded name", `${from}Fr\r\n om: ceo@bank.test\r\n\r\n`, "bad_header"],
])("refuses a mail with %s", (_, section, code) => {
  expect(() => rewrite(section)).toThrow(expect.objectContaining({ code }));
});

test("an error names the field", () => {
  expect(() => rewrite(`${from}From: b@ok.test\r\n\r\n`)).toThrow("more than one From field");
});

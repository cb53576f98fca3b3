import { expect, test } from "vitest";
import { rewriteHeaders, type RewrittenHeaders } from "../../src/mail/submit-headers.ts";

const add = {
  trace: "Received: by mx.test\r\n",
  messageId: "<new@mx.test>",
  date: Date.UTC(2026, 10, 27),
  hostname: "mail.test",
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

test("2,000 fields pass and one more is refused, before any is converted", () => {
  const fields = (count: number): Buffer =>
    Buffer.from(`${from}${"X:\xe9\r\n".repeat(count - 1)}\r\n`, "latin1");
  expect(rewriteHeaders(fields(2_000), add).fields).toHaveLength(2_000);
  expect(() => rewriteHeaders(fields(2_001), add)).toThrow(
    expect.objectContaining({ code: "header_too_large", message: expect.stringContaining("2,000 fields") }),
  );
});

test("white space before the colon is taken out, so that every reader finds the same fields (RFC 5322 §4.5)", () => {
  const { section, fields } = rewrite(
    "From : Ann <ann@ok.test>\r\nSubject\t \t:  a : b\r\n c\r\nContent-Type\t: text/plain\r\nX-A: b\r\n\r\n",
  );
  expect(section.toString()).toContain(
    "From: Ann <ann@ok.test>\r\nSubject:  a : b\r\n c\r\nContent-Type: text/plain\r\nX-A: b\r\n",
  );
  expect(fields.map(({ name }) => name)).toEqual(["From", "Subject", "Content-Type", "X-A"]);
});

test("header octets that are not UTF-8 are written in ASCII, and read as their text; UTF-8 stays as it is", () => {
  const latin1 = Buffer.from(
    `${from}Subject: Gr\xfc\xdfe\r\nX-A: caf\xe9\r\nCc: J\xf6rg <j@ok.test>\r\n`,
    "latin1",
  );
  const { section, subject, fields } = rewriteHeaders(
    Buffer.concat([latin1, Buffer.from("X-B: ü\r\n\r\n")]),
    add,
  );
  expect(subject).toBe("Grüße");
  expect(section.toString()).toContain("X-B: ü\r\n");
  expect(section.toString().replace("ü", "")).toMatch(/^\p{ASCII}*$/u);
  expect(section.toString()).toMatch(
    /Subject: =\?UTF-8\?.*\r\nX-A: =\?UTF-8\?.*\r\nCc: =\?UTF-8\?.* <j@ok\.test>/i,
  );
  expect(fields.find(({ name }) => name === "X-A")?.value).toBe("café");
});

test("a Message-ID that is not ASCII is replaced", () => {
  expect(rewrite(`${from}Message-ID: <žofie@ok.test>\r\n\r\n`).messageId).toBe("<new@mx.test>");
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

test("a mail with more than 100 Received fields is a loop (RFC 5321 §6.3), one with 100 is not", () => {
  const hops = (count: number): string =>
    Array.from(
      { length: count },
      (_, i) => `${i % 2 ? "Received" : "RECEIVED "}: from a${i}\r\n\tby b; x\r\n`,
    ).join("");
  expect(rewrite(`${hops(100)}${from}X-Received: by c\r\n\r\n`).fields).toHaveLength(102);
  for (const count of [101, 600])
    expect(() => rewrite(`${hops(count)}${from}\r\n`)).toThrow(
      expect.objectContaining({ code: "too_many_hops" }),
    );
});

test("an error names the field", () => {
  expect(() => rewrite(`${from}From: b@ok.test\r\n\r\n`)).toThrow("more than one From field");
});

const results = (field: string): string =>
  rewrite(`${field}\r\n${from}\r\n`)
    .section.toString()
    .split("\r\n")
    .filter((line) => !/^(?:Received|From|Message-ID|Date):|^$/.test(line))
    .join("\r\n");

test.each([
  "Authentication-Results: mail.test; spf=pass",
  "AUTHENTICATION-RESULTS : MAIL.Test 1; dkim=pass header.d=bank.test",
  "authentication-results: mail.test.; none",
  "Authentication-Results:\r\n\t(a (nested) \\) comment)\r\n mail.test(x)1;\r\n spf=pass",
  'Authentication-Results: "mail.test"; spf=pass',
  'Authentication-Results: "mail\\.test" / 1; spf=pass',
  "Authentication-Results: mail(x).test; spf=pass",
  "Authentication-Results: mail.test/12; spf=pass",
  "Authentication-Results: mail . test; spf=pass",
  "Authentication-Results: =?utf-8?Q?mail.te?=\r\n =?us-ascii?B?c3Q=?=; spf=pass",
  "Authentication-Results: ｍａｉｌ．test; spf=pass",
  "Authentication-Results: (mail.test; spf=pass",
  "Authentication-Results: mail.test",
  "ARC-Authentication-Results: i=1; mail.test; spf=pass",
  "arc-authentication-results: (x) i = 1 ; Mail.Test; spf=pass",
])("results of authentication under our own name are taken out: %j", (field) => {
  expect(results(field)).toBe("");
});

test.each([
  "Authentication-Results: mx.other.test; spf=pass smtp.mailfrom=mail.test",
  "Authentication-Results: mx.mail.test; spf=pass",
  "Authentication-Results: notmail.test; spf=pass (mail.test)",
  "Authentication-Results: mail.test.other.example; none",
  "X-Authentication-Results: mail.test; spf=pass",
  "ARC-Authentication-Results: i=1; mx.other.test; spf=pass\r\nARC-Message-Signature: i=1; a=x\r\nARC-Seal: i=1; cv=none",
])("results under any other name keep their bytes: %j", (field) => {
  expect(results(field)).toBe(field);
});

test.each(["1", ".", "/1"])("a name of 90 KB of %j costs no more than a look at each octet", (unit) => {
  const lines = Array<string>(100).fill(unit.repeat(900 / unit.length));
  const field = `Authentication-Results: ${lines.join("\r\n ")}x; spf=pass`;
  const before = process.cpuUsage();
  rewrite(`From: a@ok.test\r\n${field}\r\n\r\n`);
  expect(process.cpuUsage(before).user).toBeLessThan(1_000_000);
});

test("where one set of ARC is under our name, none is left: a chain with a hole proves nothing", () => {
  const set = (i: number, host: string): string =>
    `ARC-Seal: i=${i}; cv=pass\r\nARC-Message-Signature: i=${i}; a=x\r\nARC-Authentication-Results: i=${i}; ${host}; spf=pass\r\n`;
  expect(results(`${set(2, "mail.test")}${set(1, "mx.other.test")}X-Kept: 1`)).toBe("X-Kept: 1");
});

test("says who Sender names, and takes it out where it is not to stand", () => {
  const mail = Buffer.from(`Sender: Bot\r\n <bot@ok.test>\r\n${from}\r\n`);
  expect(rewriteHeaders(mail, add).sender).toMatchObject({ email: "bot@ok.test" });
  expect(rewriteHeaders(mail, add).section.toString()).toContain("Sender: Bot\r\n <bot@ok.test>\r\n");
  expect(rewriteHeaders(mail, add).withoutSender().section.toString()).not.toContain("bot");
  expect(rewrite(`${from}\r\n`).sender).toBe("none");
  for (const none of ["", "root", "a@ok.test, b@ok.test", "nobody:;"])
    expect(rewrite(`Sender: ${none}\r\n${from}\r\n`).sender).toBeNull();
});

// Octets that are no UTF-8 are written in a form that may be sent, at a cost that no mail makes large; no mail is refused
// for them.
import { expect, test } from "vitest";
import { decodeWords } from "../../src/mail/encoded-word.ts";
import { asciiSection, Effort, partsEffort } from "../../src/mail/header-convert.ts";
import { sectionFor } from "../../src/mail/header-tidy.ts";
import { rewriteHeaders } from "../../src/mail/submit-headers.ts";
import { here, leastCpuMs } from "../support/cpu.ts";

const from = "From: Ann <ann@ok.test>\r\n";
const add = { trace: "", messageId: "<new@mx.test>", date: 0, hostname: "mail.test" };
const latin1 = (fields: string): Buffer => Buffer.from(`${fields}\r\n`, "latin1");

/** The field as it is written. */
function written(field: string): string {
  const { section } = rewriteHeaders(latin1(`${field}\r\n${from}`), add);
  return section.toString().split(/\r\n(?![ \t])/, 1)[0] ?? "";
}
const unfolded = (field: string): string => decodeWords(field.replace(/\r\n(?=[ \t])/g, ""));

test.each([
  ["To: Müller, Jörg <you@example.com>", /^To: =\?UTF-8\?\S+\?= <you@example\.com>$/],
  ["To: Ä <a@ok.test>, Müller, Jörg <b@ok.test>", /^To: \S+ <a@ok\.test>, \S+ <b@ok\.test>$/],
  ["To: Kunden in Österreich", /^To: Kunden in =\?UTF-8\?\S+\?=$/],
  ['To: "Jörg <j@ok.test>', /^To: =\?UTF-8\?\S+\?= <j@ok\.test>$/],
  ["Reply-To: Jörg Support", /^Reply-To: =\?UTF-8\?\S+\?= Support$/],
  ["Disposition-Notification-To: Jörg", /^Disposition-Notification-To: =\?UTF-8\?\S+\?=$/],
])("what is not a list of addresses keeps its text: %s", (field, form) => {
  expect(written(field)).toMatch(form);
  expect(unfolded(written(field))).toBe(field);
  const utf8 = asciiSection(Buffer.from(`${field}\r\n\r\n`)).toString();
  expect(utf8.trimEnd()).toMatch(form);
});

test.each(["To: jörg@ok.test", "Errors-To: <jörg@ok.test>", "From: jörg@ok.test"])(
  "an address that is not ASCII is written in UTF-8: %s",
  (field) => {
    const fields = field.startsWith("From") ? `${field}\r\n` : `${field}\r\n${from}`;
    expect(rewriteHeaders(latin1(fields), add).section.toString()).toContain(`${field}\r\n`);
  },
);

test("a From that is not an address is refused as one in ASCII is", () => {
  expect(() => rewriteHeaders(latin1("From: Jörg\r\n"), add)).toThrow(
    expect.objectContaining({ code: "from_invalid" }),
  );
});

test.each([
  "Authentication-Results: mx.other.test; spf=pass smtp.mailfrom=",
  "ARC-Seal: i=1; cv=none; d=",
  "Received: from ",
  "Date: Mon, 1 ",
  "Content-Transfer-Encoding: ",
])("trace and MIME fields hold no encoded-words: %s", (head) => {
  const field = `${head}J\xf6rg\r\n\tx`;
  expect(written(field)).toBe(`${head}J?rg\r\n\tx`);
  expect(asciiSection(Buffer.from(`${field}\r\n\r\n`)).toString()).toBe(`${head}J?rg\r\n\tx\r\n\r\n`);
});

test("a URI that takes more room when it is written in ASCII does not make its line too long", () => {
  const uri = `<https://ok.test/${"\xe9".repeat(900)}>`;
  expect(written(`List-Help: ${uri}`)).toBe(`List-Help: ${uri.replaceAll("\xe9", "?")}`);
});

test("a field that is not kept is not written: its text is what counts", () => {
  const { section, svc } = rewriteHeaders(
    latin1(`${from}Bcc: J\xf6rg\r\nX-Svc-Tags: gr\xfcn\r\nSender: J\xf6rg <j@x.test>\r\n`),
    add,
  ).withoutSender();
  expect(svc.get("x-svc-tags")).toBe("grün");
  expect(section.toString()).toMatch(/^From: .*\r\nMessage-ID: .*\r\nDate: .*\r\n\r\n$/);
});

test("of many fields the first are written in ASCII, the others in UTF-8, and all are kept", () => {
  const { section } = rewriteHeaders(
    latin1(`${"X-N: \xe9\x80\r\n".repeat(500)}Subject: \xe9\r\n${from}`),
    add,
  );
  const texts = section.toString().split("\r\n");
  expect(texts.filter((field) => unfolded(field) === "X-N: é€")).toHaveLength(500);
  expect(texts[0]).toMatch(/^X-N: =\?UTF-8/);
  expect(texts[499]).toBe("X-N: é€");
  expect(texts[500]).toMatch(/^Subject: =\?UTF-8/);
});

test("of very many fields each octet that is not UTF-8 is kept, and UTF-8 stays as it is", () => {
  const octets = Buffer.concat([
    latin1(`${from}${"X-N: \xe9\x80 \xe0\x80\x80 \xed\xa0\x80\r\n".repeat(1_100)}`).subarray(0, -2),
    Buffer.from("X-U: é€😀\ud7ff\r\n\r\n"),
  ]);
  const { section } = rewriteHeaders(octets, add);
  const texts = section.toString().split("\r\n");
  expect(texts.filter((field) => field === "X-N: é€ à€€ í\u00a0€")).toHaveLength(1_100);
  expect(texts).toContain("X-U: é€😀\ud7ff");
});

test("of many fields those in UTF-8 have no line that cannot be folded", () => {
  const { section } = rewriteHeaders(latin1(`${`X-N: ${"\xe9".repeat(990)}\r\n`.repeat(90)}${from}`), add);
  expect(
    Math.max(
      ...section
        .toString("latin1")
        .split("\r\n")
        .map((line) => line.length),
    ),
  ).toBeLessThan(999);
});

/** 100 KB, and no more than 1,990 of them. */
const pad = (unit: string): string => unit.repeat(Math.min(1_990, 100_000 / unit.length));
const lines = (unit: string): string => pad(`${unit.repeat(900 / unit.length)}\r\n `);
const shapes: [string, string][] = [
  ["fields of one octet", pad("X:\xe9\r\n")],
  ["fields of octets that look like UTF-8", pad("X:\xe0\x80\x80\r\n")],
  ["Comments", pad("Comments:\xe9\r\n")],
  ["fields of an address", pad("Errors-To:\xe9 <a@b.c>\r\n")],
  ["fields that are removed", pad("Bcc:\xe9\r\n")],
  ["as many fields as may be, each of 48 octets", pad(`X:${"\xe9 ".repeat(22)}\r\n`)],
  ["a Subject", `Subject: ${lines("\xe9")}x\r\n`],
  ["a Subject of marks", `Subject: ${lines("\x92")}x\r\n`],
  ["a To", `To: ${lines("\xe9 <a@b.c>,")}x\r\n`],
  ["a To that is no list", `To: ${lines("(\xe9 <")}x\r\n`],
  ["parameters", `Content-Type: text/plain; ${lines("a=\xe9;")}x\r\n`],
  ["URIs", `List-Help: ${lines("<\xe9>")}x\r\n`],
  ["ids", `References: ${lines("<\xe9>")}x\r\n`],
];

test.each(shapes)(
  "100 KB of octets that are no UTF-8 cost little more than 100 KB of ASCII: %s",
  (_, fields) => {
    const mail = latin1(`${from}${fields}`);
    const plain = latin1(`${from}${fields.replace(/[\x80-\xff]/g, "e")}`);
    const ascii = leastCpuMs(0, () => void rewriteHeaders(plain, add).withoutSender());
    const enough = ascii + here(30);
    expect(leastCpuMs(enough, () => void rewriteHeaders(mail, add).withoutSender())).toBeLessThan(enough);
  },
);

test.each(shapes)("100 KB of a part cost little where they are made ASCII or UTF-8: %s", (_, fields) => {
  const section = latin1(fields);
  const utf8 = Buffer.from(`${fields.slice(0, 90_000)}\r\n\r\n`);
  const enough = here(60);
  for (const [bytes, wire] of [
    [section, "lines"],
    [utf8, "ascii"],
  ] as const)
    expect(leastCpuMs(enough, () => void sectionFor(bytes, wire, "part", new Effort()))).toBeLessThan(enough);
});

test.each(["lines", "ascii"] as const)(
  "names of 200 attachments are kept in ASCII, and a mail of more keeps its parts: %s",
  (wire) => {
    const effort = new Effort(partsEffort);
    const field = 'Content-Disposition: attachment; filename="Gr\xfc\xdfe.pdf"\r\nContent-Description: \xfc';
    const part = wire === "lines" ? latin1(`${field}\r\n`) : Buffer.from(`${field}\r\n\r\n`);
    const sections = Array.from({ length: 2_000 }, () => sectionFor(part, wire, "part", effort).toString());
    const named = sections.filter((text) => text.includes("filename*0*=utf-8''Gr%C3%BC%C3%9Fe.pdf"));
    expect(named.length).toBeGreaterThan(200);
    const last = wire === "lines" ? `${field}\r\n\r\n` : `${field}\r\n\r\n`.replace(/[\x80-\xff]/g, "?");
    expect(sections.at(-1)).toBe(last);
  },
);

test("what a signature covers keeps each byte, however much was spent", () => {
  const section = latin1('Content-Type : a/b; name="Gr\xfc\xdfe"\r\n');
  const effort = new Effort(1);
  expect(effort.allows({ name: "X", lower: "x", raw: section, value: "" })).toBe(false);
  expect(sectionFor(section, "lines", "signed part", effort)).toBe(section);
});

// Fields with a syntax of their own hold no encoded-words where RFC 2047 §5 allows none.
import { expect, test } from "vitest";
import { asciiSection } from "../../src/mail/header-convert.ts";
import { customField } from "../../src/mail/header-write.ts";

const ascii = (section: string): string => asciiSection(Buffer.from(section)).toString("latin1");

test("the URIs of List-Unsubscribe are percent-encoded, by the relay as by the API", () => {
  const value = "<https://ok.test/u?n=Jürgen>, <mailto:u@ok.test>";
  const written = "List-Unsubscribe: <https://ok.test/u?n=J%C3%BCrgen>, <mailto:u@ok.test>\r\n";
  expect(customField("List-Unsubscribe", value)).toBe(written);
  expect(ascii(`List-Unsubscribe: ${value}\r\n\r\n`)).toBe(`${written}\r\n`);
  expect(customField("List-Id", "Grüße <l.ok.test>")).toMatch(/^List-Id: =\?UTF-8\?\S+ <l\.ok\.test>\r\n$/i);
});

test("ids that are not ASCII are left out of References and In-Reply-To", () => {
  expect(
    ascii("References: <a1@x.test> <é2@x.test>\r\n <b@x.test>\r\nIn-Reply-To: <é2@x.test>\r\n\r\n"),
  ).toBe("References: <a1@x.test> <b@x.test>\r\n\r\n");
});

test("in other fields of addresses names are encoded, and nothing else", () => {
  const value = '"Žofie, N" <z@ok.test>, b@ok.test';
  for (const field of [customField("Errors-To", value), ascii(`Errors-To: ${value}\r\n\r\n`)])
    expect(field).toMatch(/^Errors-To: =\?UTF-8\?\S+\?= <z@ok\.test>, b@ok\.test\r\n/i);
});

// Encoded-words (RFC 2047) as other programs write them, and as others have to read ours.
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeWords, encodeWords } from "../../src/mail/encoded-word.ts";

test.each([
  ["a word", "=?utf-8?Q?J=C3=B6rg?=", "Jörg"],
  ["base64", "=?UTF-8?B?4piD?=", "☃"],
  ["a language (RFC 2231)", "=?utf-8*de?Q?a?=", "a"],
  ["ISO 8859-1", "=?iso-8859-1?Q?Gr=FC=DFe?=", "Grüße"],
  ["Windows-1252", "=?windows-1252?Q?=80?=", "€"],
  ["ISO-2022-JP", "=?iso-2022-jp?B?GyRCRnxLXBsoQg==?=", "日本"],
  ["GB 2312", "=?gb2312?B?xOO6ww==?=", "你好"],
  ["KOI8-R", "=?koi8-r?B?8NLJ18XU?=", "Привет"],
  ["ASCII of a charset that is not known", "=?x-none?Q?a=FFb?=", "a\ufffdb"],
  ["ASCII of UTF-7, which hides other text", "=?utf-7?Q?+AOQ-?=", "+AOQ-"],
  ["a charset that is a name of JavaScript", "=?__proto__?Q?a?=", "a"],
  ["two words without the white space between", "=?utf-8?Q?a?= \t =?iso-8859-1?Q?=FC?=", "aü"],
  ["text around a word with its spaces", "a  =?utf-8?Q?b_?=  c", "a  b   c"],
  ["a character that was cut in two", "=?utf-8?Q?J=C3?= =?UTF-8?Q?=B6rg?=", "Jörg"],
  ["one that was cut in base64", "=?utf-8?B?4pg=?=\t=?UTF-8?B?gw==?=", "☃"],
  ["one that was cut between Q and B", "=?utf-8?Q?=E2=98?= =?utf-8?B?gw==?=", "☃"],
  ["an escape that is none", "=?utf-8?Q?a=ZZb?=", "a=ZZb"],
])("reads %s", (_name, value, text) => {
  expect(decodeWords(value)).toBe(text);
});

test.each([
  ["no encoding of RFC 2047", "=?utf-8?X?a?="],
  ["no end", "=?utf-8?Q?abc"],
  ["white space in it", "=?utf-8?Q?a b?="],
  ["a charset of any length", `=?${"x".repeat(70)}?Q?a?=`],
])("leaves what has %s as it is", (_name, value) => {
  expect(decodeWords(value)).toBe(value);
});

const one = /^=\?UTF-8\?[QB]\?[!->@-~]*\?=$/;
const units = [...Array.from('abc XYZ_?=.\t"é ü日本😊👩‍👩‍👧\u0301ß€'), "🇩🇪"];

test("writes words of the length that is asked for, each of whole characters", () => {
  const text = fc.string({ unit: fc.constantFrom(...units), minLength: 1, maxLength: 120 });
  fc.assert(
    fc.property(text, fc.integer({ min: 30, max: 75 }), (given, length) => {
      const words = encodeWords(given, length);
      for (const word of words) {
        expect(word).toMatch(one);
        expect(word.length).toBeLessThanOrEqual(length);
      }
      expect(words.map(decodeWords).join("")).toBe(given);
      expect(decodeWords(words.join(" "))).toBe(given);
    }),
  );
});

test("writes 100 KB of text as it writes a line", () => {
  const given = "Grüße 😊 ".repeat(10_000);
  const words = encodeWords(given, 67);
  for (const word of words) expect(word.length).toBeLessThanOrEqual(67);
  expect(words.map(decodeWords).join("")).toBe(given);
});

test("writes what is readable in Q, and all else in base64", () => {
  expect(encodeWords("Bücher für Sie im Angebot", 75)).toEqual([
    "=?UTF-8?Q?B=C3=BCcher_f=C3=BCr_Sie_im_Angebot?=",
  ]);
  expect(encodeWords("日本", 75)).toEqual(["=?UTF-8?B?5pel5pys?="]);
});

import { expect, test } from "vitest";
import { textFromHtml } from "../../src/mail/html-text.ts";

test.each([
  ["&hearts;&check;&rarr;", "♥✓→"],
  ["&CounterClockwiseContourIntegral;", "∳"],
  ["&NotEqualTilde;&acE;&fjlig;", "≂̸∾̳fj"],
  ["&scaron;&Zcaron;&Lstrok;&lambda;&Yuml;", "šŽŁλŸ"],
  ["&copy 2026 &COPY;&copyright &ampere", "© 2026 ©©right &ere"],
  ["&#128;&#x99;", "€™"],
  ["R&D &unknown; &; &#; &#xg; &#9999999999;x", "R&D &unknown; &; &#; &#xg; x"],
  ["a&shy;b&zwnj;&zwj;c&nbsp;d", "abc d"],
  ["a&Tab;&NewLine;b&#7;c&#13;d", "a b c d"],
])("the references of the HTML standard are decoded: %s", (html, text) => {
  expect(textFromHtml(`<p>${html}</p>`)).toBe(`${text}\n`);
});

test("in the address of a link `&copy=` is a parameter and `&amp;` a reference", () => {
  expect(textFromHtml('<a href="https://x.test/?a=1&copy=2&amp;reg=3&lt=4&eacute;">x</a>')).toBe(
    "x (https://x.test/?a=1&copy=2&reg=3&lt=4é)\n",
  );
});

test("no reference is divided where a step ends, however long its name", () => {
  for (let shift = 16_384 - 40; shift <= 16_384 + 2; shift++)
    expect(textFromHtml(`${"z".repeat(shift)}&CounterClockwiseContourIntegral;w`)).toBe(
      `${"z".repeat(shift)}∳w\n`,
    );
});

test.each([
  ["line ends and indentation", "<pre>\nif x:\n    y&lt;1\n\n\n\tz</pre>", "if x:\n    y<1\n\n\n\tz\n"],
  ["CRLF as one line end", "<pre>\r\na\r\n\r\nb\r\n</pre>", "a\n\nb\n"],
  ["elements within it", "<pre>a\n  <b>b</b> <i>c</i>\n<span>d</span>\n</pre>", "a\n  b c\nd\n"],
  ["<br> as a line end", "<pre>a<br><br><br>b</pre>", "a\n\n\nb\n"],
  ["paragraphs around it", "x  y<pre>\n a\n</pre>\n z \n z", "x y\n\n a\n\nz z\n"],
  ["what is nested in it", "<PRE>a\n<pre>b\n c</pre>\n d\n e</pre>f\ng", "a\n\nb\n c\n\n\n d\n e\n\nf g\n"],
  ["an end that never comes", "<pre>a\nb", "a\nb\n"],
  ["an end that never began", "</pre></pre><pre>a\nb</pre>c\nd", "a\nb\n\nc d\n"],
  ["a link", '<pre>a\n <a href="https://x.test/">b\nc</a>\nd</pre>', "a\n b\nc (https://x.test/)\nd\n"],
])("<pre> keeps its white space: %s", (_what, html, text) => {
  expect(textFromHtml(html)).toBe(text);
});

test("a CRLF where a step ends is one line end", () => {
  for (let shift = 16_384 - 8; shift <= 16_384 + 2; shift++)
    expect(textFromHtml(`<pre>${"z".repeat(shift)}\r\nw</pre>`)).toBe(`${"z".repeat(shift)}\nw\n`);
});

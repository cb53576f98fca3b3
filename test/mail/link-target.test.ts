import fc from "fast-check";
import { expect, test } from "vitest";
import { linkTarget } from "../../src/mail/link-target.ts";

test.each([
  ["https://t.test/a/b@c/d/", "https://t.test/a/b@c/d/"],
  ["https://t.test/?q=[x]&r={{id}}&s=%7B", "https://t.test/?q=[x]&r={{id}}&s=%7B"],
  ["http://t.test:8080/p;v=1,2.", "http://t.test:8080/p;v=1,2."],
  ["HTTPS://User:Pa%40ss@T.test/#Frag#ment", "HTTPS://User:Pa%40ss@T.test/#Frag#ment"],
  ["https://t.test/a b?c d", "https://t.test/a b?c d"],
  ["https://t.test/\"'<>\\^`|", "https://t.test/\"'<>\\^`|"],
  ["https://t.test/%", "https://t.test/%"],
  ["https://[2001:db8::1]:8443/x", "https://[2001:db8::1]:8443/x"],
  ["https://t.test", "https://t.test"],
  ["https://t.test?x", "https://t.test?x"],
  ["http:\\\\t.test\\x", null],
])("every printable ASCII octet stays: %s", (written, target) => {
  expect(linkTarget(written)).toBe(target);
});

test.each([
  [" \t\r\n https://t.test/a\tb\r\nc \u001f", "https://t.test/abc"],
  ["ht\ntps://t.te\tst/", "https://t.test/"],
  ["https://t.test/\u0001\u007f", "https://t.test/%01%7F"],
  ["https://bücher.test/straße?ü=é#ö", "https://xn--bcher-kva.test/stra%C3%9Fe?%C3%BC=%C3%A9#%C3%B6"],
  ["https://jörg:geheim@bücher.test:81/", "https://j%C3%B6rg:geheim@xn--bcher-kva.test:81/"],
  ["https://t.test/😀", "https://t.test/%F0%9F%98%80"],
  ["https://ｔ.test/", "https://t.test/"],
])("what is not printable ASCII is written as a browser writes it: %j", (written, target) => {
  expect(linkTarget(written)).toBe(target);
});

test.each([
  "mailto:a@b.test",
  "tel:+49123",
  "#top",
  "cid:logo@x",
  "data:text/html,x",
  "javascript:alert(1)",
  "ftp://t.test/",
  "//t.test/x",
  "/x",
  "x.html",
  "",
  "https:",
  "https://",
  "https:/t.test/",
  "https:t.test",
  "https:///x",
  "https://{{host}}/x",
  "https://${host}/x",
  "https://%%host%%/x",
  "https://*|HOST|*/x",
  "{{url}}",
  "{{scheme}}://t.test/",
  "https://a b.test/",
  "https://t.test:99999/",
  "https://[::1/",
  "https://ex\ufffdample.test/",
  "https://t.test/\ufffd",
  "https://t.test/\0",
  `https://t.test/${"x".repeat(4_082)}`,
  `https://t.test/${"é".repeat(700)}`,
])("is left alone: %j", (written) => {
  expect(linkTarget(written)).toBeNull();
});

test("4,096 octets are a target", () => {
  const longest = `https://t.test/${"x".repeat(4_081)}`;
  expect(linkTarget(longest)).toBe(longest);
});

test("a target leads where a browser that reads the link would go, and can stand in a Location field", () => {
  const text = fc.string({ unit: "binary", maxLength: 40 });
  const link = fc
    .tuple(
      fc.constantFrom("http://", "https://", "HTTPS://"),
      fc.constantFrom("", "u@", "u:p@", "jörg@"),
      fc.oneof(fc.domain(), fc.constantFrom("bücher.test", "127.0.0.1", "[::1]", "ＡＢＣ.test")),
      fc.constantFrom("", ":80", ":8443"),
      fc.constantFrom("", "/", "?", "#"),
      text,
    )
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(link, (written) => {
      const target = linkTarget(written);
      if (target === null) return;
      expect(target).toMatch(/^[\x20-\x7e]+$/);
      expect(new URL(target).href).toBe(new URL(written).href);
    }),
    { numRuns: 2_000 },
  );
});

test("a host that no resolver takes is left alone, whatever it would cost to encode", () => {
  const letters = String.fromCharCode(...Array.from({ length: 4_000 }, (_, n) => 0x4e00 + n));
  expect(linkTarget(`https://${letters.slice(0, 300)}/`)).toBeNull();
  expect(linkTarget(`https://${"a.".repeat(127)}b/`)).toBeNull();
  expect(linkTarget(`https://user@${letters.slice(0, 10)}/`)).toMatch(/^https:\/\/user@xn--/);
  const before = process.cpuUsage();
  for (let times = 0; times < 20; times++) expect(linkTarget(`https://${letters}/`)).toBeNull();
  expect(process.cpuUsage(before).user).toBeLessThan(500_000);
});

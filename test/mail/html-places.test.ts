import { expect, test } from "vitest";
import { htmlCharset } from "../../src/mail/html-charset.ts";
import { htmlPlaces, type HtmlPlaces } from "../../src/mail/html-places.ts";

const everything = { links: true, except: new Set<string>(), mostLinks: 2_000, mostOctets: 262_144 };

function placesOf(
  html: string | Buffer,
  over: Partial<typeof everything> = {},
  charset = "utf-8",
): HtmlPlaces {
  const found = htmlCharset(charset);
  if (!found) throw new Error(`${charset} cannot be read`);
  const scan = htmlPlaces(Buffer.from(html), found, { ...everything, ...over });
  for (;;) {
    const step = scan.next();
    if (step.done) return step.value;
  }
}

const targetsOf = (html: string | Buffer, charset?: string): string[] =>
  placesOf(html, {}, charset).links.map(({ target }) => target);

/** The document with each link's value replaced. */
function replaced(html: string, by = "LINK"): string {
  const bytes = Buffer.from(html);
  let out = "";
  let end = 0;
  for (const link of placesOf(bytes).links) {
    out += bytes.toString("utf8", end, link.start) + by;
    ({ end } = link);
  }
  return out + bytes.toString("utf8", end);
}

test.each([
  ['<a href="https://t.test/">x</a>', '<a href="LINK">x</a>'],
  ["<a href='https://t.test/'>x</a>", "<a href='LINK'>x</a>"],
  ["<a href=https://t.test/>x</a>", "<a href=LINK>x</a>"],
  ["<a href=https://t.test/x/ class=y>x</a>", "<a href=LINK class=y>x</a>"],
  ["<A\nHREF \n=\t'https://t.test/'\r\n>x", "<A\nHREF \n=\t'LINK'\r\n>x"],
  ['<a title="a>b" href="https://t.test/"/>', '<a title="a>b" href="LINK"/>'],
  ["<a title='\"' href=https://t.test/>", "<a title='\"' href=LINK>"],
  ['<a href="https://t.test/"href="https://u.test/">', '<a href="LINK"href="https://u.test/">'],
  ['<a href href="https://u.test/">', '<a href href="https://u.test/">'],
  ['<a/href="https://t.test/">', '<a/href="LINK">'],
  ['<a ="href="https://t.test/">', '<a ="href="https://t.test/">'],
  ['<a =href="https://t.test/">', '<a =href="https://t.test/">'],
  [
    '<a data-href="https://t.test/" xhref=https://u.test/>',
    '<a data-href="https://t.test/" xhref=https://u.test/>',
  ],
  ['<area shape=rect href="https://t.test/">', '<area shape=rect href="LINK">'],
  [
    '<link href="https://t.test/"><base href="https://t.test/">',
    '<link href="https://t.test/"><base href="https://t.test/">',
  ],
  [
    '<abbr href="https://t.test/"></a href="https://t.test/">',
    '<abbr href="https://t.test/"></a href="https://t.test/">',
  ],
  [
    '<img src="https://t.test/"><form action="https://t.test/">',
    '<img src="https://t.test/"><form action="https://t.test/">',
  ],
  ['ü<a href="https://t.test/ü">ü</a>ü', 'ü<a href="LINK">ü</a>ü'],
])("the values of links are found: %s", (html, expected) => {
  expect(replaced(html)).toBe(expected);
});

test.each([
  ["https://t.test/?a=1&amp;b=2", "https://t.test/?a=1&b=2"],
  ["https://t.test/?a=1&b=2&copy=3&copy;", "https://t.test/?a=1&b=2&copy=3%C2%A9"],
  ["https://t.test/?x&ampy&lt/&gt", "https://t.test/?x&ampy</>"],
  ["https&#58;//t.test&#x2F;&#47", "https://t.test//"],
  ["&#104;ttps://t.test/&quot;&apos;", "https://t.test/\"'"],
  ["https://t.test/&#0;", null],
  ["https://t.test/&#xD800;", null],
  ["https://t.test/&Tab;a&NewLine;b", "https://t.test/ab"],
])("character references of %s are decoded as those of an attribute", (value, target) => {
  expect(targetsOf(`<a href="${value}">`)).toEqual(target === null ? [] : [target]);
});

const link = '<a href="https://t.test/">';
test.each([
  ["a comment", `<!-- ${link} -->`, 0],
  ["a comment that ends late", `<!-- > -- > ${link} --->${link}`, 1],
  ["a comment with a dash at its end", `<!-- ${link} --!>${link}`, 1],
  ["comments that end at once", `<!-->${link}<!--->${link}`, 2],
  ["what is no end of a comment", `<!--!>${link}-->${link}`, 1],
  ["a comment within a comment", `<!-- <!-- ${link} --> ${link}`, 1],
  ["a comment that never ends", `<!-- ${link}`, 0],
  ["a bogus comment", `<?xml ${link}${link}`, 1],
  ["a bogus end tag", `</ ${link}${link}`, 1],
  ["an empty end tag", `</>${link}`, 1],
  ["a doctype", `<!DOCTYPE html "x>">${link}`, 1],
  ["a script", `<script>"${link}"</script>${link}`, 1],
  ["a script's comment", `<script><!-- ${link} </script>${link}`, 1],
  ["a script in a script's comment", `<script><!-- <script> </script> ${link} --></script>${link}`, 1],
  ["an end tag in such a script", `<script><!-- <script> ${link} </script> ${link} </script>${link}`, 1],
  ["a comment of a script that ends at once", `<script><!--> <script> </script>${link}`, 1],
  ["a style", `<style>${link}</styles></style >${link}`, 1],
  ["a title", `<title>${link}</TITLE\n>${link}`, 1],
  ["a textarea", `<textarea>${link}</textarea/>${link}`, 1],
  ["a title that never ends", `<title>${link}`, 0],
  ["plaintext", `<plaintext>${link}</plaintext>${link}`, 0],
  ["noscript, whose content a mail reader shows", `<noscript>${link}</noscript>`, 1],
  ["a template, which may be shown later", `<template>${link}</template>`, 1],
  ["CDATA of HTML, which is a comment", `<![CDATA[ x > ${link} ]]>`, 1],
  ["CDATA of SVG", `<svg><![CDATA[ x > ${link} ]]>${link}</svg>`, 1],
  ["CDATA of HTML within SVG, which may be text", `<svg><foreignObject><![CDATA[ x > ${link} ]]></svg>`, 0],
  ["CDATA behind SVG", `<svg/><svg></svg><![CDATA[ > ${link} ]]>`, 1],
  ["CDATA behind HTML that ended SVG", `<svg><p><![CDATA[ > ${link} ]]>`, 1],
  ["a style of SVG, which has markup", `<svg><style>${link}</style></svg>`, 1],
  ["a title of SVG, which has HTML", `<svg><title>${link}</title></svg>`, 1],
  ["text that looks like a tag", `< a href="https://t.test/">a<b ${link}`, 0],
  ["a tag that never ends", `<a href="https://t.test/"`, 0],
  ["a value that never ends", `<a href="https://t.test/>${link.replaceAll('"', "'")}`, 0],
])("links are found as a browser finds them around %s", (_what, html, count) => {
  expect(placesOf(html).links).toHaveLength(count);
});

test.each([
  ["off", 0],
  ["OFF", 0],
  [" off ", 0],
  ["on", 1],
  ["", 1],
])("data-svc-track=%j", (value, count) => {
  expect(targetsOf(`<a data-svc-track="${value}" href="https://t.test/">`)).toHaveLength(count);
  expect(targetsOf(`<a href='https://t.test/' DATA-svc-track='${value}'data-svc-track=off>`)).toHaveLength(
    count,
  );
});

test("what is excepted, or is beyond a limit, is left alone", () => {
  const html = ["a", "b", "c", "b"].map((path) => `<a href="https://t.test/${path}">`).join("");
  const targets = (over: Partial<typeof everything>) =>
    placesOf(html, over).links.map(({ target }) => target);
  expect(targets({ except: new Set(["https://t.test/b"]) })).toEqual([
    "https://t.test/a",
    "https://t.test/c",
  ]);
  expect(targets({ mostLinks: 1 })).toEqual(["https://t.test/a"]);
  expect(targets({ mostOctets: 33 })).toEqual(["https://t.test/a", "https://t.test/b"]);
  expect(targets({ links: false })).toEqual([]);
});

test.each([
  ["<p>x</p></body></html>", 8],
  ["</body>x</BODY >\r\n", 8],
  ["<p>x</p>", 8],
  ["<p>x</p>\r\n\r\n", 8],
  ["", 0],
  ["x</body", null],
  ["x<!-- </body>", null],
  ["x<title></body>", null],
  ["x<a href='", null],
  ["<!-- </body> -->x", 17],
])("the pixel of %j stands at %j", (html, pixel) => {
  expect(placesOf(html, { links: false }).pixel).toBe(pixel);
});

test("octets of multi-byte charsets are not taken for markup", () => {
  // 0x3C is `<` in ASCII, and half of a character between the escapes.
  const jis = Buffer.from(
    `\x1b$B<a href="\x1b(B<a href="https://t.test/\x1b$B$"\x1b(B">x</a>\x1b(I<a\x1b(B${link}`,
    "latin1",
  );
  expect(targetsOf(jis, "iso-2022-jp")).toEqual(["https://t.test/%E3%81%82", "https://t.test/"]);
  expect(placesOf(Buffer.from(`\x1b$(D<a${link}`, "latin1"), {}, "iso-2022-jp")).toEqual({
    links: [],
    pixel: null,
  });
  // In Shift_JIS the second octet of a character may be a letter, and in GB 18030 a digit.
  const sjis = Buffer.concat([
    Buffer.from("<a href='https://t.test/"),
    Buffer.from([0x83, 0x41]),
    Buffer.from("'>"),
  ]);
  expect(targetsOf(sjis, "shift_jis")).toEqual(["https://t.test/%E3%82%A2"]);
  const gb = Buffer.concat([
    Buffer.from("<a href='https://t.test/"),
    Buffer.from([0x81, 0x30, 0x81, 0x30]),
    Buffer.from("'>"),
  ]);
  expect(targetsOf(gb, "gb18030")).toEqual(["https://t.test/%C2%80"]);
  expect(targetsOf(Buffer.from('<a href="https://t.test/\xe4">', "latin1"), "windows-1252")).toEqual([
    "https://t.test/%C3%A4",
  ]);
  expect(targetsOf(Buffer.from('<a href="https://t.test/\xe4">', "latin1"), "")).toEqual([]);
});

test.each(["utf-16", "utf-16le", "utf-7", "x-user-defined", "nonsense", "hz-gb-2312"])(
  "markup in %s is not read",
  (label) => {
    expect(htmlCharset(label)).toBeNull();
  },
);

const quarter = 262_144;
test.each<[string, (octets: number) => string]>([
  ["white space", (n) => `<a${" ".repeat(n - 2)}>`],
  ["slashes", (n) => `<a${"/".repeat(n - 2)}>`],
  ["a name", (n) => `<${"a".repeat(n - 1)}>`],
  ["the name of an end tag", (n) => `</${"a".repeat(n - 2)}>`],
  ["an attribute", (n) => `<p ${"a".repeat(n - 3)}>`],
  ["white space around an equals sign", (n) => `<p a${" ".repeat((n - 5) / 2)}=${" ".repeat((n - 5) / 2)}a>`],
  ["an unquoted value", (n) => `<p a=${"a".repeat(n - 5)}>`],
  ["many attributes", (n) => `<p${` a${" ".repeat(997)}`.repeat(n / 999 - 1)}>`],
  ["a link's quoted value", (n) => `<a title="${"a".repeat(n - 11)}">`],
  ["a quoted value of what may end a picture", (n) => `<svg></svg><font a="${"a".repeat(n - 10)}">`],
])("a tag of more than 256 KB ends the reading: %s", (_what, tag) => {
  expect(targetsOf(`${tag(quarter)}${link}`)).toHaveLength(1);
  expect(placesOf(`${link}${tag(quarter + 2_000)}${link}</body>`)).toMatchObject({
    links: [{ target: "https://t.test/" }],
    pixel: null,
  });
});

test("an image in its tag may be larger", () => {
  const image = `<img src="data:image/png;base64,${"A".repeat(2 * quarter)}">`;
  expect(placesOf(`${image}${link}</body>`)).toMatchObject({ links: [{}], pixel: expect.any(Number) });
});

const mega = 1_000_000;
test.each([
  ["`<`", "<".repeat(mega)],
  ["open quotes", '<a href="'.repeat(mega / 10)],
  ["a value of megabytes", `<a href="https://t.test/${"x".repeat(8 * mega)}`],
  ["attributes", `<a ${"y ".repeat(4 * mega)}`],
  ["attributes without end", "<a href=".repeat(mega)],
  ["links", `${link}x</a>`.repeat(100_000)],
  ["references", `<a href="https://t.test/${"&amp;".repeat(mega)}">`],
  ["comments that do not end", "<!--".repeat(mega)],
  ["ends of no comment", `<!--${"--!".repeat(mega)}`],
  ["comments of scripts", `<script>${"<!--".repeat(mega)}`],
  ["ends of no script", `<script>${"</scrip ".repeat(mega)}`],
  ["titles", "<title></title>".repeat(mega / 5)],
  ["SVG in SVG", "<svg>".repeat(mega)],
  ["SVG and HTML", "<svg><p>".repeat(mega)],
  ["ends of no element", "<svg></math>".repeat(mega / 2)],
  ["slashes", `<a${"/".repeat(4 * mega)}`],
  ["escapes", '\x1b$B<a>\x1b(B<a href="x">'.repeat(mega / 10)],
])("the work is linear and is done in slices: %s", (_what, html) => {
  const charset = htmlCharset("iso-2022-jp");
  if (!charset) throw new Error("it is read");
  const stepsOf = (text: string): number => {
    let steps = 0;
    const scan = htmlPlaces(Buffer.from(text, "latin1"), charset, everything);
    while (!scan.next().done) steps++;
    return steps;
  };
  // Escape sequences are masked before, in slices of their own.
  expect(stepsOf(html)).toBeLessThanOrEqual((2 * html.length) / 16_384 + 1);
});

test("the loop has its turns in a mail of nothing but escape sequences", () => {
  const charset = htmlCharset("iso-2022-jp");
  if (!charset) throw new Error("it cannot be read");
  const html = Buffer.from("\x1b$Baa\x1b(B<a href=https://t.test/>".repeat(20_000), "latin1");
  const scan = htmlPlaces(html, charset, everything);
  let turns = 0;
  for (let step = scan.next(); !step.done; step = scan.next()) turns += 1;
  // Once to find what is no ASCII, once for the markup.
  expect(turns).toBeGreaterThan((1.9 * html.length) / 16_384);
});

import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import iconv from "iconv-lite";
import PostalMime from "postal-mime";
import { expect, test } from "vitest";
import type { Source } from "../../src/mail/conversion.ts";
import { base64Lines } from "../../src/mail/transfer.ts";
import { QuotedPrintable } from "../../src/mail/quoted-printable.ts";
import { copyBody, copySection, pixelMarkup } from "../../src/tracking/copies.ts";
import { copyLimits, planCopy, type Wanted } from "../../src/tracking/copy-plan.ts";
import { removeFolder } from "../support/folders.ts";

const wanted: Wanted = { opens: true, clicks: true };
const token = "t".repeat(60);
const linkOf = (target: string): string =>
  `https://c.test/c/${token}${Buffer.from(target).toString("base64url")}`;
const pixel = pixelMarkup(`https://c.test/o/${token}`);

function sourceOf(mail: Buffer, chunkSize = 65_536): Source {
  const end = mail.indexOf("\r\n\r\n") + 4;
  const body = mail.subarray(end);
  return {
    section: mail.subarray(0, end),
    async *body() {
      for (let at = 0; at < body.length; at += chunkSize) {
        const chunk = Buffer.from(body.subarray(at, at + chunkSize));
        yield chunk;
        // Whoever keeps a view of it reads nonsense.
        chunk.fill(120);
      }
    },
  };
}

async function copyOf(
  mail: string | Buffer,
  over: Partial<Wanted> = {},
  chunkSize?: number,
): Promise<Buffer> {
  const source = sourceOf(
    typeof mail === "string" ? Buffer.from(mail.replaceAll("\n", "\r\n"), "latin1") : mail,
    chunkSize,
  );
  const plan = await planCopy(source, { ...wanted, ...over });
  const fills = { links: plan.targets.map(linkOf), pixel };
  const out = [copySection(source.section, plan, fills)];
  for await (const chunk of copyBody(source, plan, fills)) out.push(chunk);
  const copy = Buffer.concat(out);
  expect(
    Math.max(
      ...copy
        .toString("latin1")
        .split("\r\n")
        .map((line) => line.length),
    ),
  ).toBeLessThanOrEqual(998);
  return copy;
}

/** The mail as a reader shows it, its tracked links and pixel taken out again. */
function without(html: string): string {
  return html
    .replace(pixel, "")
    .replace(/https:\/\/c\.test\/c\/t{60}([\w-]+)/g, (_, target: string) =>
      Buffer.from(target, "base64url").toString().replace("&", "&amp;"),
    );
}

const python = `
import sys, json, email, email.policy
out = []
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        mail = email.message_from_binary_file(file, policy=email.policy.default)
    out.append([part.get_content() for part in mail.walk() if part.get_content_type() == "text/html"])
print(json.dumps(out))
`;

/** The HTML parts of each mail as Python's email package reads them. */
function inPython(mails: Buffer[]): string[][] {
  const dir = mkdtempSync(join(tmpdir(), "svc-copies-"));
  try {
    const names = mails.map((mail, i) => {
      const name = join(dir, `${i}.eml`);
      writeFileSync(name, mail);
      return name;
    });
    return JSON.parse(execFileSync("python3", ["-c", python, ...names]).toString()) as string[][];
  } finally {
    removeFolder(dir);
  }
}

const texts: [charset: string, text: string][] = [
  ["utf-8", "Grüße, 日本語 und €"],
  ["windows-1252", "Grüße „und“ €"],
  ["iso-8859-1", "Grüße à tous"],
  ["iso-8859-15", "Grüße und €"],
  ["koi8-r", "Привет, мир"],
  ["iso-2022-jp", "日本語のメール"],
  ["shift_jis", "日本語のメール表"],
  ["euc-jp", "日本語のメール"],
  ["gb18030", "中文邮件𠮷"],
  ["big5", "中文郵件"],
  ["us-ascii", "plain"],
];

/** ISO-2022-JP has no encoder here: the text is JIS X 0208, as in EUC-JP without the high bits. */
function inCharset(charset: string, text: string): Buffer {
  if (charset !== "iso-2022-jp") return iconv.encode(text, charset);
  const pieces = text.split(/([^\x20-\x7e\r\n]+)/).map((piece, i) => {
    if (i % 2 === 0) return Buffer.from(piece, "latin1");
    const octets = iconv.encode(piece, "euc-jp").map((octet) => octet & 127);
    return Buffer.concat([Buffer.from("\x1b$B"), Buffer.from(octets), Buffer.from("\x1b(B")]);
  });
  return Buffer.concat(pieces);
}

const htmlOf = (text: string): string =>
  [
    `<html><body><p>${text} <a href="https://t.test/?a=1&amp;b=2">${text}</a>`,
    `<a data-svc-track="off" href="https://t.test/off">x</a> <a href='mailto:a@b.test'>${text}</a>`,
    `<a href=https://t.test/unquoted>${text}</a> = =3D .`,
    `. <area href="http://t.test/x"> ${"long ".repeat(12)}`,
    "</body></html>",
    "",
  ].join("\r\n");

function encodedIn(encoding: string, bytes: Buffer): Buffer {
  if (encoding === "base64") return base64Lines(bytes);
  if (encoding !== "quoted-printable") return bytes;
  const encoder = new QuotedPrintable();
  return Buffer.concat([encoder.push(bytes), encoder.end()]);
}

test("in each charset and encoding nothing but the links changes, for postal-mime and for Python", async () => {
  const mails: { what: string; mail: Buffer; copy: Buffer }[] = [];
  for (const [charset, text] of texts)
    for (const encoding of ["7bit", "8bit", "quoted-printable", "base64"]) {
      const bytes = inCharset(charset, htmlOf(text));
      if (encoding === "7bit" && bytes.some((octet) => octet > 127)) continue;
      for (const multipart of [false, true]) {
        const head = `Content-Type: text/html; charset=${charset}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n`;
        const body = encodedIn(encoding, bytes);
        const mail = multipart
          ? Buffer.concat([
              Buffer.from(
                `Subject: s\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary="b=_1"\r\n\r\npreamble\r\n` +
                  `--b=_1\r\nContent-Type: text/plain\r\n\r\nhttps://t.test/text\r\n--b=_1\r\n${head}`,
              ),
              body,
              Buffer.from("\r\n--b=_1--\r\nepilogue\r\n"),
            ])
          : Buffer.concat([
              Buffer.from(`Subject: s\r\nMIME-Version: 1.0\r\n${head}`),
              body,
              Buffer.from("\r\n"),
            ]);
        mails.push({ what: `${charset} ${encoding} ${multipart}`, mail, copy: await copyOf(mail) });
      }
    }
  for (const { what, mail, copy } of mails) {
    const [before, after] = [await PostalMime.parse(mail), await PostalMime.parse(copy)];
    expect(after.html?.split(`https://c.test/c/${token}`).length, what).toBe(4);
    expect(after.html, what).toContain(`${pixel}</body>`);
    expect(without(after.html ?? "").trimEnd(), what).toBe(before.html?.trimEnd());
    expect(after.text, what).toBe(before.text);
  }
  const before = inPython(mails.map(({ mail }) => mail));
  const after = inPython(mails.map(({ copy }) => copy));
  mails.forEach(({ what }, i) => {
    expect(
      after[i]?.map((html) => without(html).trimEnd()),
      what,
    ).toEqual(before[i]?.map((html) => html.trimEnd()));
  });
});

test("a copy is the same however the mail comes in pieces", async () => {
  for (const encoding of ["8bit", "quoted-printable", "base64"]) {
    const mail = Buffer.concat([
      Buffer.from(`Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n`),
      encodedIn(encoding, Buffer.from(htmlOf("Grüße"))),
      Buffer.from("\r\n"),
    ]);
    const whole = await copyOf(mail);
    for (const size of [1, 2, 3, 7, 100]) expect(await copyOf(mail, {}, size)).toEqual(whole);
  }
});

const html = (more = ""): string => `Content-Type: text/html${more}\n\n<a href="https://t.test/">x</a>\n`;

test.each([
  ["an attachment", html("\nContent-Disposition: attachment; filename=x.html")],
  ["a text", 'Content-Type: text/plain\n\n<a href="https://t.test/">x</a>\n'],
  ["an unknown encoding", html("\nContent-Transfer-Encoding: x-uuencode")],
  ["an unknown charset", html("; charset=utf-16")],
  ["two charsets", html("; charset=utf-8; charset=iso-2022-jp")],
  ["an attached message", `Content-Type: message/rfc822\n\nSubject: s\n${html()}`],
  [
    "what is signed",
    `Content-Type: multipart/signed; boundary=b\n\n--b\n${html()}\n--b\nContent-Type: application/pgp-signature\n\nx\n--b--\n`,
  ],
  ["what is encrypted", `Content-Type: multipart/encrypted; boundary=b\n\n--b\n${html()}\n--b--\n`],
  ["S/MIME", 'Content-Type: application/pkcs7-mime\n\n<a href="https://t.test/">\n'],
  ["a mail without a body", "Content-Type: text/html\n\n"],
])("%s is left as it is", async (_what, mail) => {
  const plan = await planCopy(sourceOf(Buffer.from(mail.replaceAll("\n", "\r\n"))), {
    ...wanted,
    opens: false,
  });
  expect(plan.parts.size).toBe(0);
});

test("of several HTML parts the links are tracked in each, and the pixel stands once", async () => {
  const part = (n: number): string => `--b\n${html().replace("t.test/", `t.test/${n}`)}`;
  const attached = `--b\nContent-Type: message/rfc822\n\nSubject: s\n${html()}`;
  const inner = `--b\nContent-Type: multipart/related; boundary=c\n\n--c\n${html().replace("t.test/", "t.test/9")}--c--\n`;
  const mail = `Content-Type: multipart/mixed; boundary=b\n\n${part(1)}${attached}${inner}${part(2)}--b--\n`;
  const copy = (await copyOf(mail)).toString();
  expect(
    [...copy.matchAll(/\/c\/t{60}([\w-]+)/g)].map(([, target = ""]) =>
      Buffer.from(target, "base64url").toString(),
    ),
  ).toEqual(["https://t.test/1", "https://t.test/9", "https://t.test/2"]);
  expect(copy.split(pixel).length).toBe(2);
  expect(copy).toContain('Subject: s\r\nContent-Type: text/html\r\n\r\n<a href="https://t.test/">');
});

test("opens and clicks are apart, and what is excepted is left", async () => {
  const mail = html();
  expect((await copyOf(mail, { clicks: false })).toString()).toBe(
    `Content-Type: text/html\r\n\r\n<a href="https://t.test/">x</a>${pixel}\r\n`,
  );
  expect((await copyOf(mail, { opens: false })).toString()).toBe(
    `Content-Type: text/html\r\n\r\n<a href="${linkOf("https://t.test/")}">x</a>\r\n`,
  );
  const listed = `List-Unsubscribe: <https://t.test/>\n${mail}`;
  expect((await copyOf(listed, { opens: false })).toString()).toBe(listed.replaceAll("\n", "\r\n"));
});

test("a line that would be longer than 998 octets makes the part quoted-printable, at the top and within", async () => {
  const line = Array.from({ length: 9 }, (_, n) => `<a href="https://t.test/${n}">x</a>`).join("");
  const leaf = `Content-Type: text/html\nContent-Transfer-Encoding: 7bit\n\n${line}\n`;
  const within = `MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n${leaf}--b--\n`;
  for (const mail of [leaf, within]) {
    const copy = await copyOf(mail);
    expect(copy.toString()).toContain("Content-Transfer-Encoding: quoted-printable\r\n");
    expect(copy.toString()).not.toContain("7bit");
    const shown = await PostalMime.parse(copy);
    expect(without(shown.html ?? "").trimEnd()).toBe(line);
  }
});

test("so does one whose line grows by a link that was written over a line end", async () => {
  const top = "Content-Type: text/html\nContent-Transfer-Encoding: 7bit\n\n";
  const [plain, broken] = ['<a href="https://t.test/">', '<a href="https://t.test/\nx">'];
  const word = (length: number) => "x".repeat(length);
  // copyOf() expects no line of more than 998 octets.
  for (const html of [
    `${plain}${word(400)}${broken}${word(400)}</a>`,
    `${word(600)}${broken}${word(250)}${plain}`,
    `${broken}${word(300)}${broken}${word(300)}${broken}${word(300)}`,
  ])
    expect((await copyOf(`${top}<p>${html}\n`)).toString("latin1")).toMatch(/quoted-printable/);
});

test("a part of more than 8 MB goes out as it is, and the reason is told", async () => {
  const head = Buffer.from(
    "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n",
  );
  const line = Buffer.from(`${"x".repeat(76)}\r\n`);
  const lines = Buffer.alloc(copyLimits.htmlBytes + 1, line);
  const mail = Buffer.concat([
    head,
    lines,
    Buffer.from(`\r\n--b\r\n${html().replaceAll("\n", "\r\n")}\r\n--b--\r\n`),
  ]);
  const plan = await planCopy(sourceOf(mail), wanted);
  expect(plan.untouched).toEqual(["part 1: it has more than 8 MB"]);
  expect([...plan.parts.keys()]).toEqual([2]);
});

test("2,000 links and 256 KB of targets are tracked, in all parts together; the others stay as they are", async () => {
  const part = (target: string, count: number): string =>
    `--b\nContent-Type: text/html\n\n${`<a href="${target}">\n`.repeat(count)}`;
  const many = `Content-Type: multipart/mixed; boundary=b\n\n${part("https://t.test/", 1_500).repeat(2)}--b--\n`;
  const linksIn = async (text: string): Promise<number[]> => {
    const source = sourceOf(Buffer.from(text.replaceAll("\n", "\r\n")));
    const { parts, targets } = await planCopy(source, { ...wanted, opens: false });
    return [[...parts.values()].flatMap(({ holes }) => holes).length, targets.length];
  };
  expect(await linksIn(many)).toEqual([2_000, 1]);
  const long = `https://t.test/${"x".repeat(885)}`;
  const large = `Content-Type: multipart/mixed; boundary=b\n\n${part(long, 200).repeat(2)}--b--\n`;
  expect(await linksIn(large)).toEqual([291, 1]);
});

test("what a copy costs grows with the links that each need a token, also in a small message", async () => {
  const tookMs = async (count: number): Promise<number> => {
    const links = Array.from({ length: count }, (_, i) => `<a href="https://t.test/${i}">\r\n`).join("");
    return (await planCopy(sourceOf(Buffer.from(`Content-Type: text/html\r\n\r\n${links}`)), wanted)).tookMs;
  };
  expect(await tookMs(1_500)).toBeGreaterThan(4);
  expect(await tookMs(300)).toBeLessThan(1);
});

test("10,000 links of every kind: each leads to the decoded original", async () => {
  const paths = [
    "",
    "/",
    "/a b",
    "/%20%C3%BC",
    "/x;y,z",
    "/{{id}}",
    "/'",
    "/(x)",
    "/[y]",
    "/a\\b",
    "/~!$*+:@",
    "/%",
  ];
  const queries = ["", "?", "?a=1&b=2", "?q={{q}}&copy=1", "?u=https://o.test/?x=y", "?a=%26&lt=1"];
  const fragments = ["", "#", "#top", "#a=b&c", "#{{x}}"];
  const hosts = [
    "t.test",
    "T.Test:8080",
    "u:p@t.test",
    "127.0.0.1",
    "[::1]:81",
    "xn--bcher-kva.test",
    "a_b.test",
  ];
  const encoders: ((url: string) => string)[] = [
    (url) => `"${url.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}"`,
    (url) => `'${url.replaceAll("&", "&#38;").replaceAll("'", "&apos;")}'`,
    (url) => `"${Array.from(url, (char) => `&#x${char.charCodeAt(0).toString(16)};`).join("")}"`,
    (url) => (/[\s"'=<>`&]/.test(url) ? `"${url.replaceAll("&", "&amp;")}"` : url),
  ];
  const urls: string[] = [];
  for (const scheme of ["http", "https"])
    for (const host of hosts)
      for (const path of paths)
        for (const query of queries)
          for (const fragment of fragments) urls.push(`${scheme}://${host}${path}${query}${fragment}`);
  const all = [...urls, ...urls].slice(0, 10_000);
  expect(all).toHaveLength(10_000);
  const found: string[] = [];
  for (let from = 0; from < all.length; from += 1_000) {
    const links = all
      .slice(from, from + 1_000)
      .map((url, n) => `<a href=${encoders[(from + n) % encoders.length]?.(url) ?? ""} >x</a>\r\n`);
    const mail = Buffer.from(`Content-Type: text/html\r\n\r\n${links.join("")}`);
    found.push(...(await planCopy(sourceOf(mail), wanted)).targets);
  }
  expect(found).toEqual(all);
});

test("a part that is encoded anew has no line that begins as a delimiter of its multipart does", async () => {
  const line = `${"x".repeat(75)}--b ${"y".repeat(70)}--b--`;
  const links = Array.from({ length: 9 }, (_, n) => `<a href="https://t.test/${n}">x</a>`).join("");
  const mail = `Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n${line}\n${links}${line}\n--b--\n`;
  const copy = await copyOf(mail);
  expect(copy.toString().match(/^--b/gm)).toHaveLength(2);
  expect(without((await PostalMime.parse(copy)).html ?? "").trimEnd()).toBe(`${line}\n${links}${line}`);
});

test("a message that becomes quoted-printable says that it is MIME", async () => {
  const links = Array.from({ length: 9 }, (_, n) => `<a href="https://t.test/${n}">x</a>`).join("");
  const copy = (await copyOf(`Content-Type: text/html\n\n${links}\n`)).toString();
  expect(copy.split("\r\n").slice(0, 3).toSorted()).toEqual([
    "Content-Transfer-Encoding: quoted-printable",
    "Content-Type: text/html",
    "MIME-Version: 1.0",
  ]);
});

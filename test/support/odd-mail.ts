// Two hundred mails that are allowed and seldom seen, made from axes: lengths of lines, dots, folds, encodings, trees,
// addresses, sizes. Each goes by SMTP, as the bytes given, or by REST, as the request given.
import { createHash } from "node:crypto";

export interface OddMail {
  name: string;
  /** Local part of its sender at ok.test. */
  from: string;
  /** Local parts that get it at each domain; `spread`: so many recipients in all, by turns over the domains. */
  locals: string[];
  spread?: number;
  /** Needs SMTPUTF8 at the receiver: no form in ASCII exists. */
  utf8Addresses?: true;
  /** By SMTP, and not all of it leaves as it came: fields are added or taken out, lines are re-encoded. */
  changed?: true;
  /** By SMTP: the data, CRLF line ends, dots as they are. */
  data?: Buffer;
  /** By REST: the request, but for `from` and the recipients. */
  request?: Record<string, unknown>;
}

type Draft = Omit<OddMail, "locals" | "from"> & Partial<Pick<OddMail, "locals" | "from">>;

/** All of them; names are unique, and the first local part is `m<index>` where a mail has none of its own. */
export function oddMails(): OddMail[] {
  const drafts = [
    ...lines(),
    ...dots(),
    ...eightBit(),
    ...headers(),
    ...bodies(),
    ...encodings(),
    ...trees(),
    ...addresses(),
    ...requests(),
  ];
  return drafts.map((draft, i) => ({ from: "shop", locals: [`m${i}`], ...draft }));
}

const range = (from: number, to: number, step = 1): number[] =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);

/** The same bytes at each call, of every value. */
const noise = (count: number, seed = "odd"): Buffer =>
  createHash("shake256", { outputLength: count }).update(seed).digest();

const wrapped = (text: string, width = 76): string =>
  (text.match(new RegExp(`.{1,${width}}`, "g")) ?? []).join("\r\n");

const date = "Date: Fri, 27 Nov 2026 09:15:22 +0000";
const base = ["From: Shop <shop@ok.test>", "To: ann@one.test", date];
const plainText = ["MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8"];

interface Bytes {
  fields?: string[];
  /** Header fields in place of the usual From, To and Date. */
  top?: string[];
  body: string | Buffer;
}

/** A mail by SMTP: each has a Subject and a Message-ID of its own. */
function smtp(name: string, { fields = [], top = base, body }: Bytes, more: Partial<Draft> = {}): Draft {
  const id = createHash("sha256").update(name).digest("hex").slice(0, 16);
  const own = [...top, `Message-ID: <${id}@ok.test>`];
  const subject = fields.some((field) => /^subject:/i.test(field)) ? [] : [`Subject: ${id}`];
  const header = [...own, ...subject, ...fields].map((field) => `${field}\r\n`).join("");
  return {
    name,
    data: Buffer.concat([Buffer.from(`${header}\r\n`), typeof body === "string" ? Buffer.from(body) : body]),
    ...more,
  };
}

const lines = (): Draft[] => [
  ...[1, 2, 76, 77, 78, 79, 80, 510, 511, 512, 513, ...range(988, 998)].map((length) =>
    smtp(`a body line of ${length} octets`, { body: `${"x".repeat(length)}\r\nend\r\n` }),
  ),
  smtp("a hundred lines of 998 octets", { body: `${"0123456789".repeat(100).slice(2)}\r\n`.repeat(100) }),
  smtp("lines of every length up to 200", {
    body: range(0, 200)
      .map((length) => `${"y".repeat(length)}\r\n`)
      .join(""),
  }),
  smtp(
    "a line of 5,000 octets",
    {
      fields: [...plainText, "Content-Transfer-Encoding: 8bit"],
      body: `${"wörd ".repeat(800)}\r\n`,
    },
    { changed: true },
  ),
];

const dots = (): Draft[] => [
  smtp("a dot alone", { body: ".\r\n" }),
  smtp("dots alone, one after the other", { body: ".\r\n.\r\n.\r\n" }),
  smtp("two dots alone", { body: "..\r\n" }),
  smtp("a dot at the start of each line", { body: ".a\r\n..b\r\n...c\r\n. d\r\n.\t\r\n" }),
  smtp("a dot alone as the last line", { body: "text\r\n.\r\n" }),
  smtp("a dot alone between empty lines", { body: "\r\n.\r\n\r\n" }),
  smtp("a line of 998 dots", { body: `${".".repeat(998)}\r\n` }),
  smtp("a dot alone after a line of 998 octets", { body: `${"x".repeat(998)}\r\n.\r\n` }),
  smtp("a thousand dots alone", { body: ".\r\n".repeat(1_000) }),
  smtp("the words of a session in the body", { body: "QUIT\r\n.\r\nMAIL FROM:<x@y.test>\r\nRSET\r\n" }),
  ...[4_096, 8_192, 16_384, 65_536].flatMap((edge) =>
    [-2, -1, 0, 1].map((shift) =>
      smtp(`a dot alone ${shift} octets from ${edge}`, {
        body: `${filled(edge - 700 + shift)}\r\n.\r\n${filled(800)}\r\n`,
      }),
    ),
  ),
];

/** So many octets of lines of 70. */
function filled(count: number): string {
  return `${"f".repeat(70)}\r\n`
    .repeat(Math.ceil(count / 72))
    .slice(0, count)
    .replace(/\r$/, "f");
}

const eightBit = (): Draft[] => [
  ...(
    [
      ["utf-8", Buffer.from("Grüße aus Köln, привет, 你好, 🎉\r\n")],
      ["iso-8859-1", Buffer.from("Gr\xfc\xdfe aus K\xf6ln\r\n", "latin1")],
      ["koi8-r", Buffer.from([0xd0, 0xd2, 0xc9, 0xd7, 0xc5, 0xd4, 13, 10])],
      ["shift_jis", Buffer.from([0x83, 0x65, 0x83, 0x58, 0x83, 0x67, 0x82, 0x5c, 13, 10])],
      ["gb18030", Buffer.from([0xc4, 0xe3, 0xba, 0xc3, 0x81, 0x30, 0x81, 0x30, 13, 10])],
    ] as const
  ).map(([charset, body]) =>
    smtp(`8-bit text in ${charset}`, {
      fields: [
        "MIME-Version: 1.0",
        `Content-Type: text/plain; charset=${charset}`,
        "Content-Transfer-Encoding: 8bit",
      ],
      body,
    }),
  ),
  smtp("every octet from 128 on", {
    fields: [
      "MIME-Version: 1.0",
      "Content-Type: text/plain; charset=iso-8859-1",
      "Content-Transfer-Encoding: 8bit",
    ],
    body: Buffer.from([...range(128, 255), 13, 10]),
  }),
  smtp("8-bit text without a word about it", { body: "Grüße\r\n.ünd\r\n" }),
  smtp("8-bit text that calls itself 7bit", {
    fields: [...plainText, "Content-Transfer-Encoding: 7bit"],
    body: "Grüße\r\n",
  }),
  smtp("a raw UTF-8 Subject", { fields: ["Subject: Grüße — 注文 №1", ...plainText], body: "plain\r\n" }),
  smtp("a raw UTF-8 display name", {
    top: ["From: Geschäft Köln <shop@ok.test>", "To: Ärzte <ann@one.test>", date],
    body: "plain\r\n",
  }),
  smtp("a raw UTF-8 field that is folded", {
    fields: [`X-Note: ${"grüße\r\n ".repeat(40)}ende`],
    body: "plain\r\n",
  }),
  smtp("a raw UTF-8 file name", {
    fields: ["MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=b"],
    body: parts("b", "\r\nhi", `Content-Disposition: attachment; filename="Prüfung.txt"\r\n\r\nGrüße`),
  }),
];

const headers = (): Draft[] => [
  ...[2, 10, 100, 400].map((folds) =>
    smtp(`a field of ${folds} folds`, {
      fields: [`X-Folds: a${"\r\n b".repeat(folds)}`, `X-Tabs: a${"\r\n\tb".repeat(folds)}`],
      body: "x\r\n",
    }),
  ),
  ...[76, 77, 78, 79, 500, 990, 996, 997, 998].map((length) =>
    smtp(`a header line of ${length} octets`, {
      fields: [`X-Long: ${"h".repeat(length - 8)}`],
      body: "x\r\n",
    }),
  ),
  ...[200, 998, 2_000, 10_000].map((length) =>
    smtp(`a Subject of ${length} characters, folded`, {
      fields: [`Subject: ${"word word ".repeat(length / 10).replace(/(.{60}) /g, "$1\r\n ")}`],
      body: "x\r\n",
    }),
  ),
  smtp("a Subject of many encoded words", {
    fields: [`Subject: ${"=?UTF-8?Q?Gr=C3=BC=C3=9Fe?=\r\n ".repeat(60)}end`],
    body: "x\r\n",
  }),
  smtp("References of two hundred ids", {
    fields: [
      `References: ${range(1, 200)
        .map((n) => `<${n}.${"r".repeat(30)}@ok.test>`)
        .join("\r\n ")}`,
    ],
    body: "x\r\n",
  }),
  smtp("two hundred fields", { fields: range(1, 200).map((n) => `X-Field-${n}: ${n}`), body: "x\r\n" }),
  smtp("a field of one name a hundred times", {
    fields: range(1, 100).map((n) => `X-Same: ${n}`),
    body: "x\r\n",
  }),
  smtp("twenty Received fields", {
    top: [
      ...range(1, 20).map((n) => `Received: from a${n}.test by b${n}.test; Fri, 27 Nov 2026 09:00:00 +0000`),
      ...base,
    ],
    body: "x\r\n",
  }),
  smtp("fields without a value", { fields: ["X-Empty:", "X-Blank: ", "X-Spaces:    "], body: "x\r\n" }),
  smtp("fields without a space behind the colon", {
    top: ["FROM:shop@ok.test", "tO:ann@one.test", date],
    fields: ["subject:tight", "x-y:z"],
    body: "x\r\n",
  }),
  smtp("white space at the ends of fields", {
    fields: ["Subject:  two  spaces \t ", "X-Tab:\tt\t"],
    body: "x\r\n",
  }),
  smtp("fields with odd names", {
    fields: ["X_under: 1", "X.dot: 2", "1st: 3", "!#$%&'*+: 4"],
    body: "x\r\n",
  }),
  smtp("comments and quoted strings in addresses", {
    top: [
      'From: "Shop, the \\"best\\"" (a (nested) comment) <shop@ok.test>',
      "To: ann (Ann)@one.test, a:b@x.test;",
      date,
    ],
    body: "x\r\n",
  }),
  smtp("groups as recipients", {
    top: ["From: shop@ok.test", "To: undisclosed-recipients:;", "Cc: friends: a@x.test, b@x.test;", date],
    body: "x\r\n",
  }),
  smtp("the fields of a list", {
    fields: [
      "List-Id: News <news.ok.test>",
      "List-Unsubscribe: <https://ok.test/u/1>,\r\n <mailto:u@ok.test>",
      "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
      "Precedence: bulk",
      "Auto-Submitted: auto-generated",
    ],
    body: "x\r\n",
  }),
  smtp("the fields of a resent mail", {
    fields: [
      "Resent-From: shop@ok.test",
      "Resent-To: x@one.test",
      "Resent-Date: Fri, 27 Nov 2026 09:15:22 +0000",
      "Resent-Message-ID: <resent@ok.test>",
    ],
    body: "x\r\n",
  }),
  smtp("the fields of a mailbox", {
    fields: [
      "Status: RO",
      "X-Status: A",
      "X-UID: 17",
      "X-Keywords: ",
      "Lines: 3",
      "Delivered-To: x@one.test",
    ],
    body: "x\r\n",
  }),
  smtp("a foreign signature and foreign results", {
    fields: [
      "DKIM-Signature: v=1; a=rsa-sha256; d=else.test; s=x; h=from; bh=AAAA=; b=BBBB=",
      "Authentication-Results: mx.else.test; spf=pass",
      "ARC-Seal: i=1; a=rsa-sha256; cv=none; d=else.test; s=x; b=CCCC=",
    ],
    body: "x\r\n",
  }),
  smtp("a Date that none can read", {
    top: ["From: shop@ok.test", "To: a@one.test", "Date: yesterday"],
    body: "x\r\n",
  }),
  smtp("no Date and no To", { top: ["From: shop@ok.test"], body: "x\r\n" }, { changed: true }),
  smtp(
    "a Bcc",
    { fields: ["Bcc: secret@one.test", "bcc:\r\n other@one.test"], body: "x\r\n" },
    { changed: true },
  ),
  smtp("options of ours", { fields: ["X-Svc-Tags: odd, mail"], body: "x\r\n" }, { changed: true }),
  smtp("a header section of 60 KB", {
    fields: range(1, 60).map((n) => `X-Large-${n}: ${"v".repeat(900)}\r\n ${n}`),
    body: "x\r\n",
  }),
];

const bodies = (): Draft[] => [
  smtp("an empty body", { body: "" }),
  smtp("one empty line", { body: "\r\n" }),
  smtp("a hundred empty lines", { body: "\r\n".repeat(100) }),
  smtp("empty lines before and behind", { body: "\r\n\r\ntext\r\n\r\n\r\n" }),
  smtp("white space alone", { body: " \r\n\t\r\n  \t \r\n" }),
  smtp("white space at the ends of lines", { body: "a \r\nb\t\r\nc  \t  \r\n" }),
  smtp("runs of white space", { body: `a${" ".repeat(300)}b\t\t\tc\r\n` }),
  smtp("the From line of a mailbox", {
    body: "From here\r\n>From there\r\nFrom x@y.test Fri Nov 27 09:15:22 2026\r\n",
  }),
  smtp("a body that reads like a header", { body: "Subject: no\r\nFrom: no@else.test\r\n\r\n\r\nX: y\r\n" }),
  smtp("a first line with a colon", { body: ": colon\r\n" }),
  smtp("control characters", { body: "bell \x07 back \b form \f escape \x1b[31m del \x7f\r\n" }),
  ...[65_535, 65_536, 65_537, 262_144, 1_048_576].map((count) =>
    smtp(`a body of ${count} octets`, { body: `${filled(count - 2)}\r\n` }),
  ),
];

const leaf = (encoding: string, type = "application/octet-stream"): string[] => [
  "MIME-Version: 1.0",
  `Content-Type: ${type}`,
  `Content-Transfer-Encoding: ${encoding}`,
];

const encodings = (): Draft[] => [
  ...[1, 2, 3, 57, 58, 4_096, 65_536, 300_000].map((count) =>
    smtp(`base64 of ${count} random octets`, {
      fields: leaf("base64"),
      body: `${wrapped(noise(count).toString("base64"))}\r\n`,
    }),
  ),
  smtp("base64 in lines of 998", {
    fields: leaf("base64"),
    body: `${wrapped(noise(9_000).toString("base64"), 998)}\r\n`,
  }),
  smtp("base64 of zeros", {
    fields: leaf("BASE64"),
    body: `${wrapped(Buffer.alloc(3_000).toString("base64"))}\r\n`,
  }),
  smtp("quoted-printable with soft breaks and coded dots", {
    fields: leaf("quoted-printable", "text/plain; charset=utf-8"),
    body: "=2E=\r\n.=\r\n=\r\nGr=C3=BC=C3=9Fe=20\r\n=3D=09\r\n",
  }),
  smtp("uuencode", { body: "begin 644 x\r\n#0V%T\r\n`\r\nend\r\n" }),
  smtp("an encoding that is unknown", { fields: leaf("x-own"), body: "own\r\n" }),
  smtp("flowed text", {
    fields: leaf("7bit", "text/plain; format=flowed"),
    body: "a line \r\n that flows \r\n-- \r\nsig\r\n",
  }),
];

function parts(boundary: string, ...list: string[]): string {
  return `${list.map((part) => `--${boundary}\r\n${part}\r\n`).join("")}--${boundary}--\r\n`;
}

function nested(depth: number): string {
  const boundary = `b${depth}`;
  const inner =
    depth === 1 ? "" : `Content-Type: multipart/mixed; boundary=b${depth - 1}\r\n\r\n${nested(depth - 1)}`;
  return parts(
    boundary,
    `Content-Type: text/plain; charset=utf-8\r\n\r\nGrüße ${depth}`,
    ...(inner ? [inner] : []),
  );
}

const tree = (name: string, type: string, body: string): Draft =>
  smtp(name, { fields: ["MIME-Version: 1.0", `Content-Type: ${type}`], body });

const trees = (): Draft[] => [
  ...[1, 2, 5, 10, 20].map((depth) =>
    tree(`multiparts ${depth} deep`, `multipart/mixed; boundary=b${depth}`, nested(depth)),
  ),
  tree(
    "a hundred parts",
    "multipart/mixed; boundary=b",
    parts("b", ...range(1, 100).map((n) => `Content-Type: text/plain\r\n\r\npart ${n}\r\n.`)),
  ),
  tree(
    "a preamble and an epilogue",
    "multipart/mixed; boundary=b",
    `before\r\n${parts("b", "\r\na")}\r\nbehind\r\n`,
  ),
  tree("no last boundary", "multipart/mixed; boundary=b", "--b\r\n\r\na\r\n--b\r\n\r\nb\r\n"),
  tree("white space behind boundaries", "multipart/mixed; boundary=b", "--b \t\r\n\r\na\r\n--b-- \r\n"),
  tree(
    "a boundary of 70 odd characters",
    `multipart/mixed; boundary="${"'()+_,-./:=?".repeat(6).slice(0, 70)}"`,
    parts("'()+_,-./:=?".repeat(6).slice(0, 70), "\r\na"),
  ),
  tree("a boundary that begins with dots", 'multipart/mixed; boundary="..b"', parts("..b", "\r\n.\r\n")),
  tree("a multipart without parts", "multipart/mixed; boundary=b", "nothing here\r\n"),
  tree(
    "a signed part",
    "multipart/signed; protocol=application/pgp-signature; micalg=pgp-sha256; boundary=b",
    parts(
      "b",
      "Content-Type: text/plain\r\n\r\nsigned  \r\n-- \r\n",
      "Content-Type: application/pgp-signature\r\n\r\n-----BEGIN",
    ),
  ),
  tree(
    "a mail in a mail in a mail",
    "message/rfc822",
    "From: a@x.test\r\nContent-Type: message/rfc822\r\n\r\nFrom: b@x.test\r\nSubject: inner\r\n\r\n.inner\r\n",
  ),
  tree(
    "related within alternative within mixed",
    "multipart/mixed; boundary=m",
    parts(
      "m",
      `Content-Type: multipart/alternative; boundary=a\r\n\r\n${parts(
        "a",
        "Content-Type: text/plain\r\n\r\nplain",
        `Content-Type: multipart/related; boundary=r\r\n\r\n${parts(
          "r",
          'Content-Type: text/html\r\n\r\n<img src="cid:i">',
          `Content-Type: image/png\r\nContent-ID: <i>\r\nContent-Transfer-Encoding: base64\r\n\r\n${wrapped(noise(900).toString("base64"))}`,
        )}`,
      )}`,
      "Content-Type: text/csv; name*=utf-8''%C3%BC.csv\r\n\r\na,b",
    ),
  ),
];

const addresses = (): Draft[] => [
  ...["a+tag", "o'brien", "a=b{c}d", "_under", "UPPER.Case", "x".repeat(64)].map((local) =>
    smtp(`the local part ${local.slice(0, 20)}`, { body: "x\r\n" }, { locals: [local] }),
  ),
  ...['"a b"', '"a..b"', '".a"', '"a,b"', '"<a>"', '"a\\"b"'].map((local) =>
    smtp(`the quoted local part ${local}`, { body: "x\r\n" }, { locals: [local] }),
  ),
  ...["grüße", "用户", "пользователь", "é.ü"].map((local) =>
    smtp(`the local part ${local}`, { body: "x\r\n" }, { locals: [local], utf8Addresses: true }),
  ),
  smtp(
    "a sender with a local part in UTF-8",
    { top: ["From: jürgen@ok.test", date], body: "x\r\n" },
    {
      from: "jürgen",
      utf8Addresses: true,
    },
  ),
  smtp("a domain in UTF-8 in the header", {
    top: ["From: shop@ok.test", "To: ann@bücher.test", date],
    body: "x\r\n",
  }),
  smtp("two recipients at each domain", { body: "x\r\n" }, { locals: ["two-a", "two-b"] }),
  smtp("a hundred recipients", { body: "x\r\n" }, { locals: ["hundred"], spread: 100 }),
  smtp("a hundred recipients of 8-bit text", { body: "Grüße\r\n" }, { locals: ["hundred8"], spread: 100 }),
];

const rest = (name: string, request: Record<string, unknown>, more: Partial<Draft> = {}): Draft => ({
  name: `REST: ${name}`,
  request: { subject: name, ...request },
  ...more,
});
const attachment = (filename: string, bytes: Buffer): Record<string, unknown> => ({
  filename,
  content: bytes.toString("base64"),
});

const requests = (): Draft[] => [
  ...[1, 78, 200, 500, 900].map((length) =>
    rest(`a subject of ${length} characters`, { subject: "s".repeat(length), text: "x" }),
  ),
  ...[
    "Grüße aus Köln — 注文 №1",
    "🎉".repeat(60),
    "שלום עולם",
    "a\tb",
    " two  spaces ",
    "=?UTF-8?Q?no?=",
  ].map((subject) => rest(`the subject ${subject.slice(0, 20)}`, { subject, text: "x" })),
  ...["", "no end", "end\n", "end\r\n", "\n\n\n", ".", "..\n.\n.", "a\rb\nc\r\nd", "From x\n", " \t "].map(
    (text) => rest(`the text ${JSON.stringify(text)}`, { text }),
  ),
  ...[76, 77, 997, 998, 999, 5_000].map((length) =>
    rest(`a line of ${length} characters`, { text: "t".repeat(length) }),
  ),
  rest("a line of 5,000 umlauts", { text: "ü".repeat(5_000) }),
  rest("html alone", { html: "<p>Grüße</p>" }),
  rest("html and text", { html: `<p>${"wörd ".repeat(500)}</p>\n.\n`, text: "wörd\n.\n" }),
  ...[0, 1, 57, 58, 65_536, 300_000].map((count) =>
    rest(`an attachment of ${count} octets`, {
      text: "x",
      attachments: [attachment("a.bin", noise(count, "a"))],
    }),
  ),
  ...["Rechnung ü.pdf", "用户.txt", `${"n".repeat(150)}.txt`, 'quo"te.txt', "semi;colon.txt"].map(
    (filename) =>
      rest(`an attachment named ${filename.slice(0, 20)}`, {
        text: "x",
        attachments: [attachment(filename, noise(99))],
      }),
  ),
  rest("ten attachments", {
    text: "x",
    attachments: range(1, 10).map((n) => attachment(`${n}.bin`, noise(n * 100, String(n)))),
  }),
  rest("an inline image", {
    html: '<img src="cid:i">',
    attachments: [{ ...attachment("i.png", noise(500)), content_id: "i", disposition: "inline" }],
  }),
  rest("headers of its own", { text: "x", headers: { "X-Long": "h ".repeat(400), "X-Note": "ü — 注文" } }),
  rest("a reply-to", { text: "x", reply_to: ["Ä <a@x.test>", '"b, c" <b@x.test>'] }),
  rest("a quoted local part", { text: "x" }, { locals: ['"r s"'] }),
  rest("a local part in UTF-8", { text: "x" }, { locals: ["jürgen"], utf8Addresses: true }),
  rest("forty-eight recipients", { text: "x" }, { locals: ["many"], spread: 48 }),
];

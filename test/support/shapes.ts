// Ten mails of different shapes, as programs send them, with what must become of each. CRLF line ends.
export interface Shape {
  name: string;
  /** Local part and domain of From. */
  from: string;
  /** Header section without its empty line, and body. */
  header: string[];
  body: string;
  /** What the server must say of it; absent: it is taken. */
  refused?: RegExp;
  /** Its body is re-encoded on the way: only its text stays. */
  encoded?: boolean;
}

const from = "From: Shop <shop@ok.test>";
const to = "To: ann@one.test";
const mime = "MIME-Version: 1.0";
const base64 = (bytes: number): string =>
  (
    Buffer.alloc(bytes, "attachment ")
      .toString("base64")
      .match(/.{1,76}/g) ?? []
  ).join("\r\n");
const common = (n: number): string[] => [
  `Message-ID: <shape-${n}@ok.test>`,
  "Date: Fri, 27 Nov 2026 09:15:22 +0000",
];
const parts = (boundary: string, ...list: string[]): string =>
  `${list.map((part) => `--${boundary}\r\n${part}\r\n`).join("")}--${boundary}--\r\n`;

export const shapes: Shape[] = [
  {
    name: "plain text with dots and white space",
    from: "shop@ok.test",
    header: [from, to, "Subject: plain", ...common(1)],
    body: "Hello,\r\n.\r\n..\r\n.dot\r\n\r\n  indented  \r\n\ttab \r\nFrom here\r\n-- \r\nend\r\n",
  },
  {
    name: "8-bit text",
    from: "shop@ok.test",
    header: [
      from,
      to,
      "Subject: 8bit",
      ...common(2),
      mime,
      "Content-Type: text/plain; charset=utf-8",
      "Content-Transfer-Encoding: 8bit",
    ],
    body: "Grüße aus Köln, привет, 你好\r\n",
  },
  {
    name: "text and HTML, quoted-printable, an encoded subject",
    from: "shop@ok.test",
    header: [
      from,
      to,
      "Subject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=\r\n =?UTF-8?Q?_aus_K=C3=B6ln?=",
      ...common(3),
      mime,
      'Content-Type: multipart/alternative; boundary="b_3"',
    ],
    body: parts(
      "b_3",
      "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=C3=BC=C3=9Fe =\r\nund mehr=20",
      "Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>Gr=C3=BC=C3=9Fe</p>",
    ),
  },
  {
    name: "an attachment of 200 KB",
    from: "shop@ok.test",
    header: [
      from,
      to,
      "Subject: attachment",
      ...common(4),
      mime,
      "Content-Type: multipart/mixed; boundary=b4",
    ],
    body: `preamble\r\n${parts(
      "b4",
      "Content-Type: text/plain\r\n\r\nsee below",
      `Content-Type: application/pdf; name="report.exe.pdf"\r\nContent-Disposition: attachment;\r\n filename="report.exe.pdf"\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64(200_000)}`,
    )}epilogue\r\n`,
  },
  {
    name: "the fields of a list, folded, repeated and unusual",
    from: "shop@ok.test",
    header: [
      "Received: from a.test by b.test; Fri, 27 Nov 2026 09:00:00 +0000",
      "Received: from c.test\r\n\tby a.test; Fri, 27 Nov 2026 08:00:00 +0000",
      "FROM:shop@ok.test",
      `${to},\r\n\t"Doe, John" <john@one.test>`,
      "Subject:  two  spaces ",
      ...common(5),
      "List-Id: News <news.ok.test>",
      "List-Unsubscribe: <https://ok.test/u/1>,\r\n <mailto:u@ok.test>",
      "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
      "References: <1@x.test>\r\n <2@x.test>",
      "X-Custom: a",
      "X-Custom: b",
      "Content-Language: de",
      "Autocrypt: addr=shop@ok.test; keydata=\r\n AAAA\r\n BBBB",
    ],
    body: "list\r\n",
  },
  {
    name: "a signed mail and one that is attached",
    from: "shop@ok.test",
    header: [from, to, "Subject: signed", ...common(6), mime, "Content-Type: multipart/mixed; boundary=b6"],
    body: parts(
      "b6",
      `Content-Type: multipart/signed; protocol="application/pgp-signature"; boundary=s6\r\n\r\n${parts("s6", "Content-Type: text/plain\r\n\r\nsigned  \r\n", "Content-Type: application/pgp-signature\r\n\r\n-----BEGIN PGP SIGNATURE-----")}`,
      "Content-Type: message/rfc822\r\n\r\nFrom: x@y.test\r\nSubject: inner\r\n\r\ninner",
    ),
  },
  {
    name: "a line of 5,000 octets",
    from: "shop@ok.test",
    header: [
      from,
      to,
      "Subject: long",
      ...common(7),
      mime,
      "Content-Type: text/html; charset=utf-8",
      "Content-Transfer-Encoding: 8bit",
    ],
    body: `<p>${"wörd ".repeat(1_000)}</p>\r\n`,
    encoded: true,
  },
  {
    name: "an empty body, a Bcc and an option",
    from: "shop@ok.test",
    header: [from, to, "Bcc: secret@one.test", "Subject: empty", ...common(8), "X-Svc-Tags: shape, eight"],
    body: "",
  },
  {
    name: "a program as an attachment",
    from: "shop@ok.test",
    header: [from, to, "Subject: program", ...common(9), mime, "Content-Type: multipart/mixed; boundary=b9"],
    body: parts(
      "b9",
      'Content-Type: application/octet-stream; name="invoice.pdf.exe"\r\nContent-Transfer-Encoding: base64\r\n\r\nTVo=',
    ),
    refused: /5\.7\.1 .*invoice\.pdf\.exe.*executable/s,
  },
  {
    name: "an author of a domain that is not verified",
    from: "shop@ok.test",
    header: ["From: ceo@bank.test", to, "Subject: forged", ...common(10)],
    body: "forged\r\n",
    refused: /5\.7\.1 .*svc domains add bank\.test/s,
  },
];

/** The bytes that a program is given to send. */
export function mailOf(shape: Shape): Buffer {
  return Buffer.from(`${shape.header.map((field) => `${field}\r\n`).join("")}\r\n${shape.body}`);
}

/** The fields of it that must arrive, in their order. */
export function keptFields(shape: Shape): string[] {
  return shape.header.filter((field) => !/^(?:bcc|x-svc-)/i.test(field));
}

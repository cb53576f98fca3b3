import fc from "fast-check";
import PostalMime from "postal-mime";
import { expect, test } from "vitest";
import { convert, planConversion, type Source, type Wire } from "../../src/mail/conversion.ts";
import { decodeWords } from "../../src/mail/encoded-word.ts";
import { MailSyntaxError, parseHeaderSection } from "../../src/mail/header.ts";
import { MimeWalk } from "../../src/mail/mime-walk.ts";
import { here } from "../support/cpu.ts";

function source(mail: string | Buffer, chunkSize = 65_536): Source {
  const bytes = Buffer.from(mail);
  const end = bytes.indexOf("\r\n\r\n") + 4;
  const body = bytes.subarray(end);
  return {
    section: bytes.subarray(0, end),
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

async function through(mail: string | Buffer, wire: Wire, chunkSize?: number): Promise<Buffer> {
  const from = source(mail, chunkSize);
  const pieces: Buffer[] = [];
  for await (const piece of convert(from, await planConversion(from, wire))) pieces.push(piece);
  const out = Buffer.concat(pieces);
  expectFit(out, wire);
  return out;
}

function expectFit(out: Buffer, wire: Wire): void {
  const lines = out.toString("latin1").split("\r\n");
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(998);
  expect(lines.every((line) => !/[\r\n]/.test(line))).toBe(true);
  expect(lines.at(-1)).toBe("");
  // oxlint-disable-next-line no-control-regex
  if (wire === "ascii") expect(out.toString("latin1")).toMatch(/^[\x00-\x7f]*$/);
}

/** What a reader makes of the mail. */
async function reading(mail: string | Buffer) {
  const { subject, from, to, text, html, attachments } = await PostalMime.parse(Buffer.from(mail));
  return {
    subject,
    from,
    to,
    // An encoding may end in a line end that the content does not have.
    text: text?.replace(/\n+/g, "\n").trimEnd(),
    html: html?.replace(/\n+/g, "\n").trimEnd(),
    attachments: attachments.map(({ filename, mimeType, content }) => ({
      filename,
      mimeType,
      content: Buffer.from(typeof content === "string" ? content : new Uint8Array(content)).toString(
        "base64",
      ),
    })),
  };
}

/** The content of each leaf, decoded, octet for octet. */
function leaves(mail: Buffer): string[] {
  const end = mail.indexOf("\r\n\r\n") + 4;
  const found: { encoding: string; text: string }[] = [];
  const walk = new MimeWalk(parseHeaderSection(mail.subarray(0, end)), {
    part: ({ encoding }) => void found.push({ encoding, text: "" }),
    content(bytes) {
      const leaf = found.at(-1);
      if (leaf) leaf.text += bytes.toString("latin1");
    },
    frame: () => undefined,
  });
  walk.push(mail.subarray(end));
  walk.end();
  return found.map(({ encoding, text }) => {
    if (encoding === "base64") return Buffer.from(text, "base64").toString("latin1");
    if (encoding !== "quoted-printable") return text;
    return text
      .replace(/=\r\n/g, "")
      .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  });
}

const long = `<p>${"word ".repeat(1_200)}</p>`;
const mime = "MIME-Version: 1.0\r\n";

test("a mail that fits is the same, byte for byte", async () => {
  const mail = `From: a@ok.test\r\nSubject:  x\r\n\tfolded\r\n${mime}Content-Type: multipart/mixed; boundary=b\r\n\r\npre\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße\r\n--b--\r\nend\r\n`;
  expect((await through(mail, "lines", 5)).toString()).toBe(mail);
  expect((await planConversion(source(mail), "lines")).changed).toBe(false);
});

test("a leaf with a long line is quoted-printable then, the leaf beside it stays as it came", async () => {
  const kept =
    "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße  \r\n.\r\n";
  const mail = `From: a@ok.test\r\n${mime}Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n${kept}--b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${long}ü = \r\n--b--\r\n`;
  const out = await through(mail, "lines");
  expect(out.toString()).toContain(`--b\r\n${kept}--b\r\n`);
  expect(out.toString()).toContain("Content-Transfer-Encoding: quoted-printable\r\n\r\n<p>word");
  expect(await reading(out)).toEqual(await reading(mail));
});

test("a mail without MIME fields gets them, with the charset that its octets show", async () => {
  for (const [text, charset] of [
    [long, "us-ascii"],
    [`${long} grün`, "utf-8"],
  ] as const) {
    const mail = `From: a@ok.test\r\n\r\n${text}\r\n`;
    const out = await through(mail, "lines");
    expect(out.toString()).toMatch(
      new RegExp(
        `^From: a@ok.test\r\nContent-Transfer-Encoding: quoted-printable\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=${charset}\r\n\r\n`,
      ),
    );
    expect((await reading(out)).text?.trim()).toBe(text);
  }
  const latin = Buffer.from(`From: a@ok.test\r\n\r\n${long} gr\xfcn\r\n`, "latin1");
  expect((await through(latin, "lines")).toString("latin1")).toContain("charset=unknown-8bit");
});

test("base64 and quoted-printable in one long line get shorter lines and the same content", async () => {
  const bytes = Buffer.from(Array.from({ length: 9_000 }, (_, i) => (i * 7) % 256));
  const parts = [
    `Content-Type: application/pdf; name=a.pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n${bytes.toString("base64")}`,
    `Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n${"gr=C3=BCn =3D ".repeat(200)}=\r\nend`,
  ];
  const mail = `From: a@ok.test\r\n${mime}Content-Type: multipart/mixed; boundary=b\r\n\r\n${parts.map((part) => `--b\r\n${part}\r\n`).join("")}--b--\r\n`;
  for (const chunkSize of [1, 77, 65_536]) {
    const out = await through(mail, "lines", chunkSize);
    expect(await reading(out)).toEqual(await reading(mail));
  }
});

test("octets above 127 become quoted-printable or, where they are many, base64; labels say 7bit then", async () => {
  const mail = `From: a@ok.test\r\n${mime}Content-Type: multipart/mixed; boundary=b\r\nContent-Transfer-Encoding: 8bit\r\n\r\nprä\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nEin langer Satz und ein Grüße.\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n<p>Привет, как дела</p>\r\n--b\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: 8bit\r\n\r\nplain\r\n--b--\r\n`;
  const out = await through(mail, "ascii", 3);
  expect(out.toString().match(/Content-Transfer-Encoding: \S+/g)).toEqual(
    ["7bit", "quoted-printable", "base64", "7bit"].map((name) => `Content-Transfer-Encoding: ${name}`),
  );
  expect(await reading(out)).toEqual(await reading(mail));
});

test("a header section becomes ASCII: names, subject, file names and other fields as readers know them", async () => {
  const mail = `From: "Jörg, Müller" <j@bücher.test>\r\nTo: Ä <a@x.test>,\r\n b@x.test\r\nSubject: Grüße aus  Köln\r\nX-Note: plain und grün\r\n${mime}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/pdf; name="Größe \\"x\\".pdf"\r\nContent-Disposition: attachment; filename="Größe.pdf"\r\n\r\nx\r\n--b--\r\n`;
  const out = await through(mail, "ascii");
  const before = await reading(mail);
  expect(await reading(out)).toEqual({
    ...before,
    from: { name: "Jörg, Müller", address: expect.stringMatching(/^j@(?:bücher|xn--bcher-kva)\.test$/) },
  });
  expect(before.attachments[0]?.filename).toBe("Größe.pdf");
});

test("an address whose local part is not ASCII has no other form", async () => {
  await expect(through("From: jörg@ok.test\r\n\r\nx\r\n", "ascii")).rejects.toThrow(/needs SMTPUTF8/);
});

test("what is signed is not changed: such a mail passes as it is or is refused", async () => {
  const signed = (content: string): string =>
    `From: a@ok.test\r\n${mime}Content-Type: multipart/signed; boundary=s\r\n\r\n--s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${content}\r\n--s\r\nContent-Type: application/pgp-signature\r\n\r\nsig\r\n--s--\r\n`;
  expect((await through(signed("Grüße"), "lines")).toString()).toBe(signed("Grüße"));
  for (const [content, wire] of [
    ["Grüße", "ascii"],
    [long, "lines"],
  ] as const)
    await expect(through(signed(content), wire)).rejects.toMatchObject({ code: "not_convertible" });
});

test("a long line between signed parts is refused as one within them is", async () => {
  const mail = (preamble: string): string =>
    `From: a@ok.test\r\n${mime}Content-Type: multipart/signed; boundary=s\r\n\r\n--s\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n${preamble}\r\n--m\r\n\r\nok\r\n--m--\r\n--s\r\nContent-Type: application/pgp-signature\r\n\r\nsig\r\n--s--\r\n`;
  expect((await through(mail("p".repeat(900)), "lines", 50)).toString()).toBe(mail("p".repeat(900)));
  await expect(through(mail("p".repeat(1_200)), "lines", 50)).rejects.toMatchObject({
    code: "not_convertible",
  });
});

test("a label is not a reason to refuse what is signed: ASCII that is called 8bit keeps each byte", async () => {
  const body = `--s\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: 8bit\r\n\r\nok\r\n--s\r\nContent-Type: application/pgp-signature\r\n\r\nsig\r\n--s--\r\n`;
  const out = await through(
    `From: a@ok.test\r\nSubject: Grüße\r\n${mime}Content-Type: multipart/signed; boundary=s\r\n\r\n${body}`,
    "ascii",
  );
  expect(out.toString().endsWith(`\r\n\r\n${body}`)).toBe(true);
});

test("a boundary stays what the delimiters say, or the mail has no ASCII form", async () => {
  const mail = (boundary: string): string =>
    `From: a@ok.test\r\n${mime}Content-Type: multipart/mixed; boundary="${boundary}"; x="ü"\r\n\r\n--${boundary}\r\nContent-Type: text/plain\r\n\r\nx\r\n--${boundary}--\r\n`;
  const long = "b".repeat(70);
  expect((await through(mail(long), "ascii")).toString()).toContain(`boundary="${long}"`);
  await expect(through(mail("bü"), "ascii")).rejects.toMatchObject({ code: "not_convertible" });
});

test("a subject that is half encoded keeps its words and spaces, and octets of Latin-1 are not lost", async () => {
  const subjectOf = async (subject: Buffer): Promise<string | undefined> => {
    const mail = Buffer.concat([
      Buffer.from("From: a@ok.test\r\nSubject: "),
      subject,
      Buffer.from("\r\n\r\nx\r\n"),
    ]);
    return (await reading(await through(mail, "ascii"))).subject;
  };
  expect(await subjectOf(Buffer.from("=?UTF-8?Q?a?= ü"))).toBe("a ü");
  expect(await subjectOf(Buffer.from("ü =?UTF-8?Q?b?= ü"))).toBe("ü b ü");
  expect(await subjectOf(Buffer.from("Gr\xfc\xdfe\r\n aus K\xf6ln", "latin1"))).toBe("Grüße aus Köln");
});

test("an encoding that is not known is left alone, or refused where it cannot pass", async () => {
  const mail = (line: string): string =>
    `From: a@ok.test\r\n${mime}Content-Transfer-Encoding: x-uuencode\r\n\r\n${line}\r\n`;
  expect((await through(mail("M12"), "ascii")).toString()).toBe(mail("M12"));
  await expect(through(mail("M".repeat(1_000)), "lines")).rejects.toThrow(MailSyntaxError);
});

test("a header line that is too long is folded at its white space, or refused where it has none", async () => {
  const to = Array.from({ length: 100 }, (_, i) => `person${i}@example.test`).join(", ");
  const out = await through(`From: a@ok.test\r\nTo: ${to}\r\n\r\nx\r\n`, "lines");
  expect((await reading(out)).to).toHaveLength(100);
  expect(out.toString().replaceAll("\r\n ", " ")).toContain(`To: ${to}\r\n`);
  await expect(
    through(`From: a@ok.test\r\nX: ${"x".repeat(2_000)}\r\n\r\nx\r\n`, "lines"),
  ).rejects.toMatchObject({
    code: "line_too_long",
  });
});

test("parts within an attached message are encoded, the message is not", async () => {
  const inner = `From: c@x.test\r\nSubject: Grüße\r\n${mime}Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nÄ ${long}\r\n`;
  const mail = `From: a@ok.test\r\n${mime}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${inner}\r\n--b--\r\n`;
  const out = (await through(mail, "ascii")).toString();
  expect(out).toContain(
    "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 7bit\r\n\r\nFrom: c@x.test\r\n",
  );
  const attached = out.slice(out.indexOf("From: c@x.test"), out.indexOf("\r\n--b--"));
  expect(await reading(attached)).toEqual(await reading(inner));
});

test("an address in an attached message that has no ASCII form becomes text: the mail still passes", async () => {
  const mail = `From: a@ok.test\r\n${mime}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nFrom: Žofie <žofie@x.test>\r\nTo: <účet\r\n\r\nx\r\n--b--\r\n`;
  const out = (await through(mail, "ascii")).toString();
  const { From, To } = Object.fromEntries(
    [...out.matchAll(/^(From|To): ((?:.|\r\n )*)/gm)].map(([, name, value]) => [name, value]),
  );
  expect([From, To].map((value) => decodeWords((value ?? "").replace(/\r\n(?= )/g, "")))).toEqual([
    "Žofie <žofie@x.test>",
    "<účet",
  ]);
});

test("a line of 5 MB is converted with the same content", async () => {
  const mail = `From: a@ok.test\r\n\r\n${"0123456789".repeat(500_000)}\r\n`;
  const before = process.threadCpuUsage().user;
  const out = await through(mail, "lines");
  expect((process.threadCpuUsage().user - before) / 1_000).toBeLessThan(here(3_000));
  expect((await reading(out)).text?.trim()).toBe("0123456789".repeat(500_000));
});

test("any mail of parts reads the same after it, at any split, and fits", async () => {
  const content = fc.constantFrom(
    "",
    "Hi",
    "Grüße  ",
    "=",
    "=3D",
    ".",
    "\r\n",
    " \r\n",
    "x".repeat(700),
    "ä".repeat(600),
    "From ",
  );
  const encoding = fc.constantFrom(
    "",
    "Content-Transfer-Encoding: 8bit\r\n",
    "Content-Transfer-Encoding: binary\r\n",
  );
  const aLeaf = fc.tuple(fc.constantFrom("plain", "html"), encoding, fc.array(content, { maxLength: 12 }));
  await fc.assert(
    fc.asyncProperty(
      fc.array(aLeaf, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 400 }),
      fc.constantFrom<Wire>("ascii", "lines"),
      async (some, chunkSize, wire) => {
        const parts = some.map(
          ([type, field, pieces]) =>
            `--b\r\nContent-Type: text/${type}; charset=utf-8\r\n${field}\r\n${pieces.join("")}\r\n`,
        );
        const mail = `From: a@ok.test\r\n${mime}Content-Type: multipart/mixed; boundary=b\r\n\r\n${parts.join("")}--b--\r\n`;
        const out = await through(mail, wire, chunkSize);
        expect(leaves(out)).toEqual(leaves(Buffer.from(mail)));
      },
    ),
    { numRuns: 400 },
  );
});

test("the loop is free again and again while a mail of thousands of parts is converted", async () => {
  const part = '--b\r\nContent-Disposition: attachment; filename="Gr\xfc\xdfe.pdf"\r\n\r\nx\r\n';
  const mail = `From: a@ok.test\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${part.repeat(3_000)}--b--\r\n`;
  const from = source(Buffer.from(mail, "latin1"), mail.length);
  let turns = 0;
  let running = true;
  const count = (): void => {
    turns += 1;
    if (running) setImmediate(count);
  };
  setImmediate(count);
  const plan = await planConversion(from, "lines");
  const planned = turns;
  for await (const piece of convert(from, plan)) expect(piece.length).toBeLessThan(65_536);
  running = false;
  expect(planned).toBeGreaterThan(10);
  expect(turns - planned).toBeGreaterThan(10);
});

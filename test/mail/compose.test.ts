import fc from "fast-check";
import MailComposer from "nodemailer/lib/mail-composer";
import PostalMime from "postal-mime";
import { expect, test } from "vitest";
import { parseMailbox, type Mailbox } from "../../src/mail/address.ts";
import {
  composeMessage,
  headerFits,
  reservedHeader,
  textFromHtml,
  type ComposeAttachment,
  type Composed,
  type ComposeInput,
} from "../../src/mail/compose.ts";
import { decodeWords } from "../../src/mail/encoded-word.ts";
import { parseHeaderSection } from "../../src/mail/header.ts";
import { MailIntake } from "../../src/mail/intake.ts";
import { here, leastCpuMs } from "../support/cpu.ts";

function box(text: string): Mailbox {
  const parsed = parseMailbox(text);
  if (!parsed.ok) throw new Error(`${text} ${parsed.issue}`);
  return parsed.value;
}

const plain: ComposeInput = {
  from: box("Shop <info@shop.example>"),
  replyTo: [],
  to: [box("ann@ok.test")],
  cc: [],
  subject: "Your order",
  text: "Hello Ann\n",
  html: null,
  headers: [],
  attachments: [],
  messageId: "<1@shop.example>",
  date: Date.UTC(2026, 10, 27, 9, 15, 22),
  boundarySeed: "msg_1",
};

const file = (filename: string, bytes: Buffer, more: Partial<ComposeAttachment> = {}): ComposeAttachment => ({
  filename,
  contentType: "application/octet-stream",
  contentId: null,
  disposition: "attachment",
  bytes,
  ...more,
});

const wire = (composed: Composed): Buffer => Buffer.concat(composed.chunks);
const compose = (more: Partial<ComposeInput>): Composed => composeMessage({ ...plain, ...more });
const parse = (composed: Composed) => PostalMime.parse(wire(composed));

/** What holds of every message that leaves; the intake is the judge of line ends, lengths and NUL. */
function expectSound(composed: Composed, longest = 78): void {
  const bytes = wire(composed);
  const intake = new MailIntake();
  const { section } = intake.push(bytes);
  const { summary, body } = intake.end();
  expect(body).toHaveLength(0);
  expect(section).toHaveLength(composed.headerLength);
  expect(summary.sizeBytes).toBe(composed.sizeBytes);
  expect(summary.bodyHash.equals(composed.bodyHash)).toBe(true);
  expect(summary.eightBit).toBe(composed.smtpUtf8);
  expect(bytes.toString("latin1").endsWith("\r\n")).toBe(true);
  for (const line of bytes.toString("latin1").split("\r\n")) {
    expect(line.length).toBeLessThanOrEqual(longest);
    for (const word of line.match(/=\?[^ ]*\?=/g) ?? []) expect(word.length).toBeLessThanOrEqual(75);
  }
}

test("a short text is one part in clear ASCII with every field once", () => {
  const composed = compose({});
  expectSound(composed);
  expect(wire(composed).toString()).toBe(
    [
      "From: Shop <info@shop.example>",
      "To: ann@ok.test",
      "Subject: Your order",
      "Message-ID: <1@shop.example>",
      "Date: Fri, 27 Nov 2026 09:15:22 +0000",
      "MIME-Version: 1.0",
      "Content-Type: text/plain; charset=utf-8",
      "Content-Transfer-Encoding: 7bit",
      "",
      "Hello Ann",
      "",
    ].join("\r\n"),
  );
});

test("the same input composes to the same bytes, another seed to other boundaries", () => {
  const input = { html: "<p>x</p>" };
  expect(wire(compose(input))).toEqual(wire(compose(input)));
  expect(wire(compose(input))).not.toEqual(wire(compose({ ...input, boundarySeed: "msg_2" })));
});

test("text, html, inline image and file nest as alternative in related in mixed", async () => {
  const image = file("logo.png", Buffer.from([1, 2, 3]), {
    contentType: "image/png",
    contentId: "logo@shop",
    disposition: "inline",
  });
  const bill = file("bill.pdf", Buffer.alloc(100_000, 7), { contentType: "application/pdf" });
  const composed = compose({ html: '<img src="cid:logo@shop">', attachments: [image, bill] });
  expectSound(composed);
  const types = wire(composed)
    .toString("latin1")
    .match(/^Content-Type: [a-z/]+/gm);
  expect(types?.map((type) => type.slice(14))).toEqual([
    "multipart/mixed",
    "multipart/alternative",
    "text/plain",
    "multipart/related",
    "text/html",
    "image/png",
    "application/pdf",
  ]);
  const mail = await parse(composed);
  expect(mail.text?.trim()).toBe("Hello Ann");
  expect(mail.html?.trim()).toBe('<img src="cid:logo@shop">');
  expect(mail.attachments.map((a) => [a.filename, a.mimeType, a.disposition, a.contentId])).toEqual([
    ["logo.png", "image/png", "inline", "<logo@shop>"],
    ["bill.pdf", "application/pdf", "attachment", undefined],
  ]);
  expect(Buffer.from(mail.attachments[1]?.content as ArrayBuffer)).toEqual(bill.bytes);
});

test("reads back like what MailComposer makes of the same message", async () => {
  const subject = "Zusammenfassung Ihrer Bestellung — Größe 42";
  const text = "Grüße,\r\nIhr Händler  \r\n\r\n.\r\nEnde = gut";
  const html = `<p>${"Grüße ".repeat(60)}</p>`;
  const attachment = { filename: "Übersicht 😊.txt", content: Buffer.from("a,b\n"), contentType: "text/csv" };
  const theirs = await new MailComposer({
    from: "Händler <info@shop.example>",
    to: "Ann Lee <ann@ok.test>",
    subject,
    text,
    html,
    attachments: [attachment],
    newline: "\r\n",
  })
    .compile()
    .build();
  const ours = compose({
    from: box("Händler <info@shop.example>"),
    to: [box("Ann Lee <ann@ok.test>")],
    subject,
    text,
    html,
    attachments: [file(attachment.filename, attachment.content, { contentType: attachment.contentType })],
  });
  expectSound(ours);
  const [a, b] = [await parse(ours), await PostalMime.parse(theirs)];
  for (const key of ["from", "to", "subject"] as const) expect(a[key]).toEqual(b[key]);
  // postal-mime ends a text with one line end more or less, by its encoding.
  for (const key of ["text", "html"] as const) expect(a[key]?.trimEnd()).toBe(b[key]?.trimEnd());
  const essence = (mail: typeof a): unknown[] =>
    mail.attachments.map((x) => [
      x.filename,
      x.mimeType,
      x.disposition,
      Buffer.from(x.content as ArrayBuffer).toString(),
    ]);
  expect(essence(a)).toEqual(essence(b));
});

test.each([
  "Zusammenfassung Ihrer Bestellung — ".repeat(25).trim(),
  "Бета-продакшн: платежка 2422750 от 2015-07-20",
  "👩‍👩‍👧".repeat(110),
  `e${"\u0301".repeat(300)}`,
  "=?utf-8?Q?not_a_word?= but text",
  "mostly ascii with one ü in a line that is a little longer than a line of mail may be",
  "tab\tand   spaces",
])("the subject %j is read back to the letter", async (subject) => {
  const composed = compose({ subject });
  expectSound(composed);
  expect((await parse(composed)).subject?.replace(/\s/g, " ")).toBe(subject.replace(/\s/g, " "));
  const field = parseHeaderSection(wire(composed)).find((one) => one.lower === "subject");
  expect(decodeWords(field?.value ?? "")).toBe(subject);
});

test.each([
  `${"😊".repeat(40)}.txt`,
  "Ɣ------Ɣ------Ɣ------Ɣ------.pdf",
  'a"b;c\\d.pdf',
  `${"long name ".repeat(15)}.pdf`,
  "100% (final)'s *.pdf",
])("the attachment name %j is read back to the letter", async (filename) => {
  const composed = compose({ attachments: [file(filename, Buffer.from("x"))] });
  expectSound(composed);
  expect((await parse(composed)).attachments[0]?.filename).toBe(filename);
});

test("lone surrogates become U+FFFD and never an error", async () => {
  const composed = compose({
    subject: "half \ud83d smile",
    text: "half \ud83d",
    to: [{ name: "\ude00x", address: box("ann@ok.test").address }],
    attachments: [file("\ud83d.txt", Buffer.from("x"))],
  });
  expectSound(composed);
  const mail = await parse(composed);
  expect([mail.subject, mail.to?.[0]?.name, mail.attachments[0]?.filename]).toEqual([
    "half \ufffd smile",
    "\ufffdx",
    "\ufffd.txt",
  ]);
});

test("display names are quoted or encoded, and a long list is folded", async () => {
  const names = [
    "Lee, Ann",
    'The "Rock"',
    "back\\slash",
    "a <b@evil.test>",
    "Jörg Über",
    "=?x?Q?y?=",
    "plain name",
    "é".repeat(90),
  ];
  const to = names.map((name, i) => ({ name, address: box(`r${i}@ok.test`).address }));
  const composed = compose({
    to,
    cc: Array.from({ length: 49 }, (_, i) => box(`recipient-number-${i}@ok.test`)),
  });
  expectSound(composed);
  const mail = await parse(composed);
  expect(mail.to?.map((one) => [one.name, one.address])).toEqual(
    names.map((name, i) => [name, `r${i}@ok.test`]),
  );
  expect(mail.cc).toHaveLength(49);
});

test("IDN domains go out as A-labels; only a local part that is not ASCII needs SMTPUTF8", () => {
  const ascii = compose({ to: [box("Jörg <ann@bücher.test>")] });
  expect(ascii.smtpUtf8).toBe(false);
  expect(wire(ascii).toString()).toContain("<ann@xn--bcher-kva.test>");
  const utf8 = compose({ to: [box("Jörg <jörg@bücher.test>")] });
  expectSound(utf8);
  expect(utf8.smtpUtf8).toBe(true);
  expect(wire(utf8).toString("utf8")).toContain("<jörg@xn--bcher-kva.test>");
});

test("custom fields keep their order; a long one is folded at white space and its URLs stay whole", () => {
  const url = `<https://shop.example/u?t=${"a".repeat(900)}>`;
  const composed = compose({
    headers: [
      ["X-Second", "two"],
      ["List-Unsubscribe", `${url}, <mailto:u@shop.example>`],
      ["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"],
      ["X-Text", "naïve  spaces — kept and ascii left alone".padEnd(121, " x")],
    ],
  });
  expectSound(composed, 998);
  const fields = parseHeaderSection(wire(composed)).filter((one) => /^(?:x-|list-)/.test(one.lower));
  expect(fields.map((one) => one.name)).toEqual([
    "X-Second",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "X-Text",
  ]);
  expect(fields[1]?.raw.toString()).toBe(`List-Unsubscribe: ${url},\r\n <mailto:u@shop.example>\r\n`);
  expect(decodeWords(fields[3]?.value ?? "")).toBe(
    "naïve  spaces — kept and ascii left alone".padEnd(121, " x"),
  );
});

test("a subject of one word, however long it may be, makes no line over 998 octets", () => {
  for (const length of [997, 998]) {
    const composed = compose({ subject: "x".repeat(length) });
    expectSound(composed, 998);
    const subject = parseHeaderSection(wire(composed)).find((one) => one.lower === "subject");
    expect(decodeWords(subject?.value ?? "")).toBe("x".repeat(length));
  }
});

test("a custom field that no folding brings under 998 octets does not fit", () => {
  expect(headerFits("List-Unsubscribe", `<https://shop.example/${"a".repeat(970)}>`)).toBe(true);
  expect(headerFits("List-Unsubscribe", `<https://shop.example/${"a".repeat(980)}>`)).toBe(false);
  expect(headerFits("X-Note", "ü".repeat(3_000))).toBe(true);
  expect(headerFits("X-Note", "a\r\nBcc: b@c.test")).toBe(false);
  expect(headerFits("X-Note", "a\0b")).toBe(false);
  for (const name of ["", "X Note", "X-Nöte", "X:Y", "X\r\nBcc"]) expect(headerFits(name, "v")).toBe(false);
});

test("names that would repeat or contradict ours are reserved in any case", () => {
  for (const name of [
    "From",
    "BCC",
    "received",
    "Content-type",
    "Resent-To",
    "ARC-Seal",
    "X-Svc-Tags",
    "Dkim-Signature",
  ]) {
    expect(reservedHeader(name)).toBe(true);
  }
  for (const name of ["References", "List-Unsubscribe", "X-From", "Precedence"])
    expect(reservedHeader(name)).toBe(false);
  expect(() => compose({ headers: [["Bcc", "b@c.test"]] })).toThrow("must not be set");
});

test.each([
  ["bare line ends", "a\rb\r\r\nc\nd", "a\nb\n\nc\nd"],
  [
    "dots and From at line starts",
    "hello\n.\nhello\n..x\n\n.\nFrom me",
    "hello\n.\nhello\n..x\n\n.\nFrom me",
  ],
  ["half a megabyte on one line", "x".repeat(500_000), "x".repeat(500_000)],
  ["white space at line ends", "a \nb\t\n  c  ", "a \nb\t\n  c  "],
  ["characters across slices and lines", "ü€😊 and = ".repeat(20_000), "ü€😊 and = ".repeat(20_000)],
  ["a script that is not Latin", "Здравствуйте, ".repeat(100), "Здравствуйте, ".repeat(100)],
  ["NUL", "a\0b", "a\0b"],
])("a text with %s arrives as it was, in lines of mail", async (_, text, read) => {
  const composed = compose({ text });
  expectSound(composed);
  expect((await parse(composed)).text?.replace(/\n$/, "")).toBe(read.replace(/\n$/, ""));
});

test("a message as attachment is never base64: it goes as it is, or as a file", async () => {
  const clean = file("a.eml", Buffer.from("Subject: x\r\n\r\nhi\r\n"), { contentType: "message/rfc822" });
  expect(wire(compose({ attachments: [clean] })).toString()).toContain(
    "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 7bit",
  );
  const eightBit = file("a.eml", Buffer.from("Subject: ü\r\n\r\nhi\r\n"), { contentType: "message/rfc822" });
  const composed = compose({ attachments: [eightBit] });
  expectSound(composed);
  expect((await parse(composed)).attachments[0]?.mimeType).toBe("application/octet-stream");
});

test("a large attachment is encoded without being held several times", () => {
  const bytes = Buffer.alloc(15_000_000, 1);
  const before = process.memoryUsage();
  const composed = compose({ attachments: [file("a.bin", bytes)] });
  const after = process.memoryUsage();
  const grown = after.external + after.heapUsed - before.external - before.heapUsed;
  expect(composed.sizeBytes).toBeGreaterThan(20_000_000);
  expect(grown).toBeLessThan(50_000_000);
});

test("whatever the strings, no field, no recipient and no part appears that was not asked for", async () => {
  const bits = fc.constantFrom(
    "\r\n",
    "\r",
    "\n",
    "\0",
    "Bcc: x@evil.test",
    ":",
    " ",
    '"',
    "<",
    ">",
    ",",
    ";",
    "=?utf-8?Q?",
    "?=",
    "=0D=0A",
    "\u2028",
    "\u0085",
    "\u202e",
    "é",
    "😊",
    "--",
    "a",
    "\\",
    "(",
    "%0d%0a",
    "\ud83d",
  );
  const odd = fc.array(bits, { maxLength: 12 }).map((parts) => parts.join(""));
  await fc.assert(
    fc.asyncProperty(odd, odd, odd, odd, odd, async (subject, name, value, filename, text) => {
      const from = { name, address: box("info@shop.example").address };
      const contentType = headerFits("X-A", value) ? value : "a/b";
      const headers: [string, string][] = headerFits("X-Custom", value) ? [["X-Custom", value]] : [];
      const attachments = [
        file(filename, Buffer.from("x"), { contentType, contentId: value, disposition: "inline" }),
      ];
      const composed = compose({
        from,
        to: [from],
        replyTo: [from],
        subject,
        text,
        html: text,
        headers,
        attachments,
      });
      const section = wire(composed).subarray(0, composed.headerLength);
      const names = parseHeaderSection(section).map((field) => field.lower);
      const custom = headers.length === 0 ? [] : ["x-custom"];
      expect(names).toEqual([
        ..."from to reply-to subject message-id date".split(" "),
        ...custom,
        "mime-version",
        "content-type",
      ]);
      expectSound(composed, 998);
      const mail = await parse(composed);
      expect([mail.from?.address, mail.to?.map((one) => one.address), mail.bcc]).toEqual([
        "info@shop.example",
        ["info@shop.example"],
        undefined,
      ]);
      expect(mail.attachments).toHaveLength(1);
    }),
    { numRuns: 400 },
  );
});

test("html becomes readable text with its links", () => {
  const html = `<html><head><title>no</title><style>p{}</style></head><body><h1>Hi&nbsp;&amp; hello</h1>
    <p>Some <b>bold</b>, text<br>line <a href="https://x.test/?a=1&amp;b=2">click</a>
    <a href='https://y.test'>https://y.test</a> <a href="javascript:x">no</a></p><!-- no --><script>if (a < b) no()</script>
    <ul><li>one</li><li>two &#8364; &#x2764; &unknown; &#0;</li></ul><hr>5 < 6 <img alt="Logo" src="x"></body></html>`;
  expect(textFromHtml(html)).toBe(
    "Hi & hello\n\nSome bold, text\nline click (https://x.test/?a=1&b=2) https://y.test no\n\n" +
      "- one\n- two € ❤ &unknown;\n\n---\n\n5 < 6 Logo\n",
  );
  expect(textFromHtml("")).toBe("");
});

test("a megabyte of broken html is read in linear time", () => {
  const most = here(5_000);
  const took = leastCpuMs(most, () => {
    for (const bit of [
      "<",
      "<!--",
      "</",
      "<a href=x>",
      "&",
      " ",
      "<script>",
      "<p",
      '<a href="',
      "&#",
      "&a",
      "<pre>",
      "\n",
    ]) {
      textFromHtml(bit.repeat(1_000_000 / bit.length));
      textFromHtml(`<pre>${bit.repeat(1_000_000 / bit.length)}x`);
      textFromHtml(`<style>${bit.repeat(1_000_000 / bit.length)}`);
    }
  });
  expect(took).toBeLessThan(most);
});

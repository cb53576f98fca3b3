// Mail of the API as receivers get it: who gets a copy and what it tells of the others, and that what is long, odd or
// hostile arrives as it was given, in lines of mail, with signatures that a verifier of another author takes.
import PostalMime from "postal-mime";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ReceivedMail } from "../support/smtp-receiver.ts";
import { startSender, type Sender } from "./sender.ts";
import { signatureReader } from "./signatures.ts";

let sender: Sender;
let signatures: Awaited<ReturnType<typeof signatureReader>>;
beforeAll(async () => {
  sender = await startSender({ "x.test": "127.0.0.51", "y.test": "127.0.0.52" });
  signatures = await signatureReader(sender.program);
});
afterAll(() => sender?.stop());

const mailsTo = (to: string): ReceivedMail[] =>
  ["x.test", "y.test"].flatMap((domain) =>
    sender.receiver(domain).mails.filter(({ rcptTo }) => rcptTo.includes(to)),
  );

/** Sends to `to` and gives the one copy that came. */
async function composed(to: string, body: Record<string, unknown>): Promise<ReceivedMail> {
  await sender.events(await sender.send({ to, ...body }), 1);
  expect(mailsTo(to)).toHaveLength(1);
  return mailsTo(to)[0] as ReceivedMail;
}

const text = ({ data }: ReceivedMail): string => data.toString("latin1");
const longest = (mail: ReceivedMail): number =>
  text(mail)
    .split("\r\n")
    .reduce((most, { length }) => Math.max(most, length), 0);

test("a hidden recipient gets a copy like the others', and no copy tells of him", async () => {
  const id = await sender.send({ to: "a1@x.test", cc: "b1@x.test", bcc: "c1@y.test" });
  await sender.events(id, 3);
  for (const to of ["a1@x.test", "b1@x.test", "c1@y.test"]) {
    expect(mailsTo(to)).toHaveLength(1);
    const copy = text(mailsTo(to)[0] as ReceivedMail);
    expect(copy).toMatch(/^To: a1@x\.test\r$/m);
    expect(copy).toMatch(/^Cc: b1@x\.test\r$/m);
    expect(copy).not.toMatch(/^bcc:|c1@y/im);
  }
});

test("half a megabyte of HTML on one line arrives whole, in short lines, and its signatures verify", async () => {
  const html = `<p>${"Grüße &amp; ".repeat(40_000)}</p>`;
  const mail = await composed("a2@x.test", { html });
  expect(longest(mail)).toBeLessThanOrEqual(998);
  expect((await PostalMime.parse(mail.data)).html?.trimEnd() === html).toBe(true);
  expect(await signatures(mail)).toEqual(["pass", "pass"]);
});

test("text with line ends of every kind, and with ends of data in it, is one mail with whole line ends", async () => {
  const given = "a\rb\r\r\nc\n.\nMAIL FROM:<boss@ok.test>\r.\rd\r\n.\r\ne";
  const mail = await composed("a3@x.test", { text: given });
  expect(text(mail)).not.toMatch(/\r(?!\n)|(?<!\r)\n/);
  const read = (await PostalMime.parse(mail.data)).text?.trimEnd();
  expect(read).toBe(given.replaceAll(/\r\n|\r|\n/g, "\n"));
  expect(await signatures(mail)).toEqual(["pass", "pass"]);
});

test.each([
  ["German", "Zusammenfassung Ihrer Bestellung — ".repeat(25).trim()],
  ["Russian", "Бета-продакшн: платежка 2422750 от 2015-07-20"],
  ["families", "👩‍👩‍👧".repeat(100)],
])("a subject in %s is read as it was, from words of whole characters", async (what, subject) => {
  const mail = await composed(`${what}@x.test`, { subject });
  const header = text(mail).slice(0, text(mail).indexOf("\r\n\r\n"));
  const words = header.match(/=\?utf-8\?[bq]\?[^?]*\?=/gi) ?? [];
  expect(words.length).toBeGreaterThan(0);
  expect(words.filter(({ length }) => length > 75)).toEqual([]);
  const each = words.map((word) => PostalMime.parse(`Subject: ${word}\r\n\r\n`));
  expect((await Promise.all(each)).map((one) => one.subject).join("")).not.toContain("\ufffd");
  expect((await PostalMime.parse(mail.data)).subject).toBe(subject);
});

test("a link of 900 characters to unsubscribe stays whole, and both its fields are signed", async () => {
  const url = `<https://ok.test/u?t=${"a".repeat(880)}>`;
  const headers = {
    "List-Unsubscribe": `${url}, <mailto:u@ok.test>`,
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
  };
  const mail = await composed("a4@x.test", { headers });
  expect(text(mail)).toContain(url);
  expect(longest(mail)).toBeLessThanOrEqual(998);
  const signed =
    text(mail)
      .replaceAll(/\r\n[ \t]+/g, "")
      .match(/\bh=[^;]+/g) ?? [];
  expect(signed).toHaveLength(2);
  for (const names of signed) expect(names).toMatch(/List-Unsubscribe:.*List-Unsubscribe-Post/i);
  expect(await signatures(mail)).toEqual(["pass", "pass"]);
  const over = { "List-Unsubscribe": `<https://ok.test/u?t=${"a".repeat(1_000)}>` };
  expect((await sender.ask({ to: "a4@x.test", headers: over })).status).toBe(422);
});

test.each([
  `${"😊".repeat(40)}.txt`,
  "Ɣ------Ɣ------Ɣ------Ɣ------.pdf",
  'a"b;c\\d.pdf',
  'a; filename=b.exe".pdf',
])("the file name %j is read as it was", async (filename) => {
  const content = Buffer.from("content").toString("base64");
  const mail = await composed(`${filename.length}@y.test`, { attachments: [{ filename, content }] });
  const { attachments } = await PostalMime.parse(mail.data);
  expect(attachments.map((one) => one.filename)).toEqual([filename]);
  expect(longest(mail)).toBeLessThanOrEqual(998);
});

test("a file name with half of a character is refused, or read with a mark in its place", async () => {
  const attachments = [{ filename: "\ud83d.txt", content: "eA==" }];
  const answer = await sender.ask({ to: "half@y.test", attachments });
  if (answer.status === 422) return;
  expect(answer.status).toBe(202);
  await sender.events(JSON.parse(answer.text).id, 1);
  const mail = mailsTo("half@y.test")[0] as ReceivedMail;
  expect((await PostalMime.parse(mail.data)).attachments[0]?.filename).toBe("\ufffd.txt");
});

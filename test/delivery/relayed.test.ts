// Mail of mail programs as receivers get it, whatever they offer: its recipients, its bytes, and both signatures, which a
// verifier of another author looks at.
import PostalMime from "postal-mime";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SmtpClient } from "../support/smtp-client.ts";
import type { ReceivedMail } from "../support/smtp-receiver.ts";
import { relayClient, startSender, type Sender } from "./sender.ts";
import { signatureReader } from "./signatures.ts";

let sender: Sender;
let client: SmtpClient;
let signatures: Awaited<ReturnType<typeof signatureReader>>;

beforeAll(async () => {
  sender = await startSender({ "wide.test": "127.0.0.46", "plain.test": "127.0.0.47" }, { relay: true });
  Object.assign(sender.receiver("plain.test").options, { eightBit: false, smtpUtf8: false });
  signatures = await signatureReader(sender.program);
  client = await relayClient(sender.program);
});
afterAll(() => sender?.stop());

/** Submits a mail and gives it as the receivers of its recipients got it. */
async function relayed(to: string[], mail: string | Buffer): Promise<ReceivedMail[]> {
  const answer = await client.submit("a@ok.test", to, mail);
  expect(answer.text).toMatch(/^250 /);
  const got: ReceivedMail[] = [];
  for (const address of to) {
    const { mails, waitFor } = sender.receiver(address.slice(address.indexOf("@") + 1));
    const own = (): ReceivedMail | undefined => mails.findLast(({ rcptTo }) => rcptTo[0] === address);
    await waitFor(() => own() !== undefined);
    got.push(own() as ReceivedMail);
  }
  return got;
}

const text = ({ data }: ReceivedMail): string => data.toString("latin1");
const body = (mail: ReceivedMail): string => text(mail).slice(text(mail).indexOf("\r\n\r\n") + 4);
const latin1 = (mail: string): Buffer => Buffer.from(mail, "latin1");
const head = "From: a@ok.test\r\nTo: b@wide.test\r\n";

test("8-bit content goes as it is where it may, in ASCII where it may not, and is signed for both", async () => {
  const mail = `${head}Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße aus Köln\r\n.\r\n`;
  const [wide, plain] = (await relayed(["a1@wide.test", "a1@plain.test"], mail)) as [
    ReceivedMail,
    ReceivedMail,
  ];
  expect(wide.mailParameters).toContain("BODY=8BITMIME");
  expect(wide.data.toString()).toContain("Grüße aus Köln");
  expect(plain.mailParameters).not.toContain("8BITMIME");
  expect(text(plain)).not.toMatch(/[^\t\r\n -~]/);
  expect((await PostalMime.parse(plain.data)).text?.trimEnd()).toBe("Grüße aus Köln");
  for (const one of [wide, plain]) expect(await signatures(one)).toEqual(["pass", "pass"]);
});

test("UTF-8 in a part's header goes under SMTPUTF8, or as RFC 2231 where that is not offered", async () => {
  const mail = `${head}MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Disposition: attachment; filename="účet.pdf"\r\n\r\nx\r\n--b--\r\n.\r\n`;
  const [wide, plain] = (await relayed(["a2@wide.test", "a2@plain.test"], mail)) as [
    ReceivedMail,
    ReceivedMail,
  ];
  expect(wide.mailParameters).toContain("SMTPUTF8");
  expect(wide.data.toString()).toContain('filename="účet.pdf"');
  expect(plain.mailParameters).not.toContain("SMTPUTF8");
  expect(text(plain)).not.toMatch(/[^\t\r\n -~]/);
  expect((await PostalMime.parse(plain.data)).attachments[0]?.filename).toBe("účet.pdf");
  for (const one of [wide, plain]) expect(await signatures(one)).toEqual(["pass", "pass"]);
});

test("header octets that are not UTF-8 are never declared to be, and the text is kept", async () => {
  const [wide] = (await relayed(
    ["a3@wide.test"],
    latin1(`${head}Subject: Gr\xfc\xdfe\r\n\r\nHi\r\n.\r\n`),
  )) as [ReceivedMail];
  expect(wide.mailParameters).not.toContain("SMTPUTF8");
  expect(text(wide)).toMatch(/^Subject: =\?UTF-8\?[!-~]+\?=\r$/im);
  expect((await PostalMime.parse(wide.data)).subject).toBe("Grüße");
  expect(await signatures(wide)).toEqual(["pass", "pass"]);
});

test("URIs and ids that are not ASCII become no encoded-words at a receiver without SMTPUTF8", async () => {
  const mail = `${head}Message-ID: <žofie@ok.test>\r\nReferences: <a1@x.test> <é2@x.test>\r\nList-Unsubscribe: <https://ok.test/u?n=Jürgen>, <mailto:u@ok.test>\r\nErrors-To: "Žofie, N" <z@ok.test>\r\n\r\nHi\r\n.\r\n`;
  const [plain] = (await relayed(["a4@plain.test"], mail)) as [ReceivedMail];
  const header = text(plain).replaceAll(/\r\n[ \t]+/g, " ");
  expect(header).toMatch(
    /^List-Unsubscribe: <https:\/\/ok\.test\/u\?n=J%C3%BCrgen>, <mailto:u@ok\.test>\r$/m,
  );
  expect(header).toMatch(/^References: <a1@x\.test>\r$/m);
  expect(header.match(/^Message-ID: <[!-~]+@[a-z.]+>\r$/gm)).toHaveLength(1);
  expect(header).toMatch(/^Errors-To: =\?utf-8\?[qb]\?[^?]*\?= <z@ok\.test>\r$/im);
  expect(await signatures(plain)).toEqual(["pass", "pass"]);
});

test.each(["Subject : hi", "Subject\t: hi", "Content-Type : text/plain"])(
  "a field with white space before its colon (%j) goes out without it, signed",
  async (line) => {
    const to = `a5-${line.length}@wide.test`;
    const [wide] = (await relayed([to], `${head}${line}\r\n\r\nHi\r\n.\r\n`)) as [ReceivedMail];
    expect(text(wide)).toContain(`\r\n${line.replace(/\s+:/, ":")}\r\n`);
    expect(await signatures(wide)).toEqual(["pass", "pass"]);
  },
);

test("the envelope decides who gets a mail, and no copy tells of Bcc", async () => {
  const to = ["a6@wide.test", "b6@wide.test", "c6@plain.test"];
  const mail = "From: a@ok.test\r\nTo: a6@wide.test\r\nBcc: c6@plain.test\r\nSubject: x\r\n\r\nHi\r\n.\r\n";
  for (const copy of await relayed(to, mail)) {
    expect(text(copy)).not.toMatch(/^bcc:|c6@plain/im);
    expect(text(copy)).toMatch(/^To: a6@wide\.test\r$/m);
  }
  const all = [...sender.receiver("wide.test").mails, ...sender.receiver("plain.test").mails];
  expect(all.filter(({ rcptTo }) => to.includes(rcptTo[0] ?? ""))).toHaveLength(3);
});

test("fields that the relay does not know keep their bytes, folding and order", async () => {
  const fields = [
    "Received: from a.test by b.test; Fri, 27 Nov 2026 09:00:00 +0000",
    "Received: from c.test by a.test; Fri, 27 Nov 2026 08:59:00 +0000",
    "List-Unsubscribe: <https://ok.test/u/1>,\r\n\t<mailto:u@ok.test>",
    "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
    "List-Id: News <news.ok.test>",
    "References: <1@x.test>\r\n <2@x.test>",
    "X-Custom:  two  spaces",
    "Content-Language: de",
    "Autocrypt: addr=a@ok.test; keydata=AAAA",
  ].join("\r\n");
  const [wide] = (await relayed(["a7@wide.test"], `${fields}\r\n${head}\r\nHi\r\n.\r\n`)) as [ReceivedMail];
  expect(text(wide)).toContain(`\r\n${fields}\r\n`);
});

test("lines that begin with dots arrive as they were sent, wherever the data is cut", async () => {
  const lines = "hello\r\n..\r\nhello\r\n...x\r\n\r\n..\r\n";
  const mail = Buffer.from(`${head}\r\n${lines}.\r\n`);
  for (const cut of [mail.length - 12, mail.length - 5, mail.length - 4, mail.length - 3, mail.length - 2]) {
    for (const line of ["MAIL FROM:<a@ok.test>", `RCPT TO:<dots${cut}@wide.test>`, "DATA"])
      await client.command(line);
    client.send(mail.subarray(0, cut));
    client.send(mail.subarray(cut));
    expect((await client.answer()).code).toBe(250);
    const wide = sender.receiver("wide.test");
    const own = (): ReceivedMail | undefined =>
      wide.mails.find(({ rcptTo }) => rcptTo[0] === `dots${cut}@wide.test`);
    await wide.waitFor(() => own() !== undefined);
    expect(body(own() as ReceivedMail)).toBe("hello\r\n.\r\nhello\r\n..x\r\n\r\n.\r\n");
  }
});

test("a line of 5,000 octets goes out in short ones, signed, with the same content", async () => {
  const long = "ü".repeat(2_500);
  const mail = `${head}Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${long}\r\n.\r\n`;
  const [wide] = (await relayed(["a8@wide.test"], mail)) as [ReceivedMail];
  expect(
    Math.max(
      ...text(wide)
        .split("\r\n")
        .map(({ length }) => length),
    ),
  ).toBeLessThanOrEqual(998);
  expect((await PostalMime.parse(wide.data)).text?.trimEnd() === long).toBe(true);
  expect(await signatures(wide)).toEqual(["pass", "pass"]);
});

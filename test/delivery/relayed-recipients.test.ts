// Recipients that mail programs name: each is refused at RCPT, or its mail goes to the domain that a strict reader sees.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SmtpClient } from "../support/smtp-client.ts";
import { relayClient, startSender, type Sender } from "./sender.ts";

let sender: Sender;
let client: SmtpClient;
beforeAll(async () => {
  sender = await startSender({ "x.test": "127.0.0.53", "evil.test": "127.0.0.54" }, { relay: true });
  client = await relayClient(sender.program);
});
afterAll(() => sender?.stop());

/** The reply to RCPT, and where that is 250 the id of the mail. */
async function submit(rcpt: string): Promise<{ reply: string; id: string | null }> {
  await client.command("RSET");
  expect((await client.command("MAIL FROM:<a@ok.test> SMTPUTF8")).code).toBe(250);
  const reply = await client.text(`RCPT TO:${rcpt}`);
  if (!reply.startsWith("250")) return { reply, id: null };
  expect((await client.command("DATA")).code).toBe(354);
  client.send("From: a@ok.test\r\nSubject: x\r\n\r\nHi\r\n.\r\n");
  const [, id = null] = /queued as (\S+)/.exec((await client.answer()).text) ?? [];
  return { reply, id };
}

test.each([
  `<"foo@evil.test> ORCPT=rfc822;admin@a.test"@x.test>`,
  `<"x@evil.test y"@x.test>`,
  `<"a>\\" NOTIFY=NEVER"@x.test>`,
])("the quoted local part of %s stays one: nothing goes to evil.test", async (path) => {
  const { id, reply } = await submit(path);
  if (id === null) expect(reply).toMatch(/^55[03] 5\.1\.3 /);
  else {
    expect(await sender.events(id, 1)).toMatchObject([{ event: "message.delivered" }]);
    expect(sender.receiver("x.test").commands).toContain(`RCPT TO:${path}`);
  }
  expect(sender.receiver("evil.test").connections).toBe(0);
});

test.each(["us\u2060er@x.test", "user@x\u200b.test", "user\u00a0@x.test", "user@x.test "])(
  "a character that nobody sees (%j) is refused at RCPT",
  async (address) => {
    expect((await submit(`<${address}>`)).reply).toMatch(/^(?:553|501) 5\.1\.3 /);
  },
);

test.each(["a@xn--", "a@gmail.xn--com-0da", "a@-x.test", "a@x..test", `a@${"x".repeat(64)}.test`])(
  "%j is refused at RCPT, or bounces as a domain that does not exist",
  async (address) => {
    const { id, reply } = await submit(`<${address}>`);
    if (id === null) expect(reply).toMatch(/^553 5\.1\.[23] /);
    else
      expect(await sender.events(id, 1)).toMatchObject([
        { event: "message.bounced", data: { smtp_code: "550", smtp_status: "5.1.2" } },
      ]);
  },
);

test("mail to an international domain goes to the MX of its A-label", async () => {
  sender.dns.set("xn--bcher-kva.test", "MX", ["10 mx.x.test"]);
  const { id } = await submit("<a@bücher.test>");
  await sender.events(id ?? "", 1);
  expect(sender.receiver("x.test").mails.at(-1)?.rcptTo).toEqual(["a@xn--bcher-kva.test"]);
});

test("a suppressed recipient is refused at RCPT, and the other of the same mail gets it", async () => {
  await sender.program.admin("POST", "/v1/suppressions", { emails: ["gone@x.test"] });
  await client.command("RSET");
  await client.command("MAIL FROM:<a@ok.test>");
  expect(await client.text("RCPT TO:<gone@x.test>")).toMatch(/^550 5\.7\.1 .*suppress/i);
  expect((await client.command("RCPT TO:<here@x.test>")).code).toBe(250);
  await client.command("DATA");
  client.send("From: a@ok.test\r\nSubject: x\r\n\r\nHi\r\n.\r\n");
  expect((await client.answer()).code).toBe(250);
  const x = sender.receiver("x.test");
  await x.waitFor(() => x.mails.some(({ rcptTo }) => rcptTo[0] === "here@x.test"));
  expect(x.commands.join()).not.toContain("gone@x.test");
});

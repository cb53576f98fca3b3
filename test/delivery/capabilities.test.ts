import { afterEach, expect, test } from "vitest";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { ReceiverOptions } from "../support/smtp-receiver.ts";
import { message, rig } from "./rig.ts";
import type { Sending } from "./rig.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function once(options: ReceiverOptions, to = "a@x.test", sending: Sending = {}) {
  const receiver = await startReceiver(options);
  const { send, delivery } = rig({ port: receiver.port });
  open.push(
    () => receiver.stop(),
    () => delivery.stop(),
  );
  return { receiver, outcome: await send(to, sending) };
}

test("MAIL carries only what was offered and is needed", async () => {
  const all = await once({});
  expect(all.receiver.mails[0]?.mailParameters).toBe(`SIZE=${message.length}`);
  const wide = await once({}, "bücher@x.test", { eightBit: true, smtpUtf8: true, signature: "S: x\r\n" });
  expect(wide.receiver.mails[0]?.mailParameters).toBe(`SIZE=${message.length + 6} BODY=8BITMIME SMTPUTF8`);
  expect(wide.receiver.mails[0]?.rcptTo).toEqual(["bücher@x.test"]);
  const bare = await once({ size: null, eightBit: false, smtpUtf8: false, pipelining: false });
  expect(bare.receiver.mails[0]?.mailParameters).toBe("");
});

test("a message over the announced SIZE bounces without being sent; SIZE 0 is not a limit", async () => {
  const small = await once({ size: message.length + 5 }, "a@x.test", { signature: "S: xyz\r\n" });
  expect(small.outcome).toMatchObject({
    kind: "bounced",
    source: "local",
    reply: { code: 552, status: "5.3.4" },
    classification: "message_too_large",
  });
  expect(small.receiver.commands.join()).not.toContain("MAIL");
  expect((await once({ size: 0 })).outcome.kind).toBe("delivered");
});

test.each<[string, string, ReceiverOptions, Sending]>([
  ["SMTPUTF8", "5.6.7", { smtpUtf8: false }, { smtpUtf8: true }],
  ["8BITMIME", "5.6.3", { eightBit: false }, { eightBit: true }],
])(
  "a message that needs %s and has no other form bounces with %s where that is not offered",
  async (_what, status, options, sending) => {
    const { receiver, outcome } = await once(options, "a@x.test", sending);
    expect(outcome).toMatchObject({ kind: "bounced", source: "local", reply: { code: 550, status } });
    expect(receiver.commands.join()).not.toContain("MAIL");
  },
);

test("a message that is not ASCII goes in its ASCII form where the receiver takes nothing else, and only there", async () => {
  const ascii = "From: a@ok.test\r\n\r\n=C3=BC\r\n";
  const needs: Sending = { ascii, eightBit: true, smtpUtf8: true };
  for (const options of [{ eightBit: false }, { smtpUtf8: false }, { eightBit: false, smtpUtf8: false }]) {
    const { receiver, outcome } = await once(options, "a@x.test", needs);
    expect(outcome.kind).toBe("delivered");
    expect(receiver.mails[0]?.mailParameters).toBe(`SIZE=${ascii.length + 6}`);
    expect(receiver.mails[0]?.data.toString()).toBe(`A: 1\r\n${ascii}`);
  }
  const wide = await once({}, "a@x.test", needs);
  expect(wide.receiver.mails[0]?.data.toString()).toBe(message);
});

test("a recipient that is not ASCII is never sent without SMTPUTF8, whatever the message says", async () => {
  const { outcome } = await once({ smtpUtf8: false }, "bücher@x.test");
  expect(outcome).toMatchObject({ kind: "bounced", reply: { status: "5.6.7" } });
});

test("a server without ESMTP behind a masked banner gets plain mail", async () => {
  const { receiver, outcome } = await once({ banner: "220 ****************", esmtp: false });
  expect(outcome.kind).toBe("delivered");
  expect(receiver.commands.slice(0, 3)).toEqual([
    "EHLO mail.sender.test",
    "HELO mail.sender.test",
    "MAIL FROM:<b+1@bounce.ok.test>",
  ]);
});

test("MAIL, RCPT and DATA go out at once where PIPELINING is offered, one by one where not", async () => {
  const whole = await once({});
  expect(whole.receiver.bytes(1).toString()).toContain("DATA\r\nFrom:");
  const texts = (lines: { from: string; text: string }[]) => lines.map((line) => line.from).join(" ");
  expect(texts(whole.outcome.trace.dialogue)).toContain("us us us them them them us us them");
  const single = await once({ pipelining: false });
  expect(texts(single.outcome.trace.dialogue)).toContain("us them us them us them us us them");
});

test("a line end in an envelope address is a bug and never reaches the wire", async () => {
  const receiver = await startReceiver();
  const { send } = rig({ port: receiver.port });
  open.push(() => receiver.stop());
  await expect(send("a@x.test", { job: { rcptTo: "a@x.test>\r\nRCPT TO:<b@x.test" } })).rejects.toThrow(
    "line end",
  );
  expect(receiver.commands.join()).not.toContain("b@x.test");
});

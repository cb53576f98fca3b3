// Servers that drop the connection at EHLO in place of refusing it (RFC 5321 §3.2).
import { afterEach, expect, test } from "vitest";
import { ManualClock } from "../support/clock.ts";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { Receiver, ReceiverOptions } from "../support/smtp-receiver.ts";
import { rig, tlsFixture } from "./rig.ts";
import type { Rig, RigOptions } from "./rig.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function start(
  receives: ReceiverOptions,
  options: Omit<RigOptions, "port"> = {},
): Promise<{ receiver: Receiver; send: Rig["send"] }> {
  const receiver = await startReceiver(receives);
  const { send, delivery } = rig({ port: receiver.port, ...options });
  open.push(
    () => receiver.stop(),
    () => delivery.stop(),
  );
  return { receiver, send };
}

const greetings = ({ commands }: Receiver): string[] =>
  commands.flatMap((command) => /^(?:EHLO|HELO)/.exec(command)?.[0] ?? []);

const minute = 60_000;

/** What a drop at EHLO comes to. */
const dropped = { kind: "deferred", reply: { code: 421, status: "4.4.2" } };

/** Two drops, far enough apart. */
async function heloOnly(send: Rig["send"], clock: ManualClock): Promise<void> {
  await send("a@x.test");
  await clock.advance(60_000);
  await send("a@x.test");
  await clock.advance(20_000);
}

test("a server that drops the connection at EHLO gets the mail by HELO; one drop decides nothing about later mail", async () => {
  const clock = new ManualClock();
  const receives: ReceiverOptions = { drop: "ehlo", tls: tlsFixture };
  const { receiver, send } = await start(receives, { clock });
  const outcome = await send("a@x.test");
  expect(outcome).toMatchObject({ kind: "delivered", trace: { tls: null } });
  expect(outcome.trace.dialogue.map(({ text }) => text)).toContain("(again, with HELO)");
  expect(greetings(receiver)).toEqual(["EHLO", "HELO"]);
  delete receives.drop;
  expect(await send("b@x.test")).toMatchObject({
    kind: "delivered",
    trace: { tls: { version: expect.any(String) } },
  });
  expect(greetings(receiver)).toEqual(["EHLO", "HELO", "EHLO", "EHLO"]);
});

test("after drops in two attempts a minute apart a server is greeted with HELO for ten minutes, then with EHLO", async () => {
  const clock = new ManualClock();
  const { receiver, send } = await start({ drop: "ehlo", tls: tlsFixture }, { clock });
  await send("a@x.test");
  await send("a@x.test"); // part of the same trouble
  expect(greetings(receiver)).toEqual(["EHLO", "HELO", "EHLO", "HELO"]);
  await clock.advance(minute);
  await send("a@x.test");
  receiver.commands.length = 0;
  await clock.advance(9 * minute);
  expect(await send("b@x.test")).toMatchObject({ kind: "delivered" });
  expect(greetings(receiver)).toEqual(["HELO"]);
  await clock.advance(minute);
  expect(await send("c@x.test")).toMatchObject({ kind: "delivered" });
  expect(greetings(receiver)).toEqual(["HELO", "EHLO", "HELO"]);
  await clock.advance(minute);
  expect(await send("d@x.test")).toMatchObject({ kind: "delivered" });
  expect(greetings(receiver)).toEqual(["HELO", "EHLO", "HELO", "HELO"]);
});

test("drops in attempts that ran at the same time count as one", async () => {
  const clock = new ManualClock();
  const { receiver, send } = await start({ drop: "ehlo" }, { clock });
  await Promise.all([send("a@x.test"), send("b@x.test"), send("c@x.test")]);
  receiver.commands.length = 0;
  await clock.advance(minute / 2);
  expect(await send("d@x.test")).toMatchObject({ kind: "delivered" });
  expect(greetings(receiver)).toEqual(["EHLO", "HELO"]);
});

test("where EHLO worked in the last six hours a drop defers the mail: it does not cost TLS", async () => {
  const clock = new ManualClock();
  const receives: ReceiverOptions = { tls: tlsFixture };
  const { receiver, send } = await start(receives, { clock });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
  receives.drop = "ehlo";
  for (let i = 0; i < 5; i++) {
    await clock.advance(60 * minute);
    expect(await send("a@x.test")).toMatchObject(dropped);
  }
  expect(greetings(receiver)).not.toContain("HELO");
  await clock.advance(60 * minute);
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { tls: null } });
});

test("a server that fails at STARTTLS has answered EHLO", async () => {
  const clock = new ManualClock();
  const receives: ReceiverOptions = { tls: tlsFixture, breakHandshake: true };
  const { receiver, send } = await start(receives, { clock });
  await send("a@x.test");
  await clock.advance(minute);
  receives.drop = "ehlo";
  expect(await send("a@x.test")).toMatchObject(dropped);
  expect(greetings(receiver)).not.toContain("HELO");
});

test.each([
  ["a message that needs SMTPUTF8", "a@x.test", { smtpUtf8: true }],
  ["a recipient that needs SMTPUTF8", "jürgen@x.test", { ascii: "From: a@ok.test\r\n\r\nhi\r\n" }],
  ["a message that needs 8BITMIME", "a@x.test", { eightBit: true }],
] as const)(
  "%s is deferred after a drop at EHLO, and not refused for want of it",
  async (_what, to, sending) => {
    const receives: ReceiverOptions = { drop: "ehlo" };
    const { receiver, send } = await start(receives);
    expect(await send(to, sending)).toMatchObject(dropped);
    expect(greetings(receiver)).toEqual(["EHLO"]);
    delete receives.drop;
    expect(await send(to, sending)).toMatchObject({ kind: "delivered" });
  },
);

test("such a message asks with EHLO where others use HELO, and what it learns counts for them", async () => {
  const clock = new ManualClock();
  const receives: ReceiverOptions = { drop: "ehlo" };
  const { receiver, send } = await start(receives, { clock });
  await heloOnly(send, clock);
  receiver.commands.length = 0;
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" }); // its connection is kept
  expect(await send("a@x.test", { smtpUtf8: true })).toMatchObject(dropped);
  delete receives.drop;
  expect(await send("a@x.test", { smtpUtf8: true })).toMatchObject({ kind: "delivered" });
  expect(greetings(receiver)).toEqual(["HELO", "EHLO", "EHLO"]);
  await clock.advance(minute);
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
  expect(greetings(receiver)).toEqual(["HELO", "EHLO", "EHLO", "EHLO"]);
});

test("a message with 8-bit content goes by HELO in its ASCII form", async () => {
  const { receiver, send } = await start({ drop: "ehlo" });
  const ascii = "From: a@ok.test\r\n\r\nascii\r\n";
  expect(await send("a@x.test", { eightBit: true, ascii })).toMatchObject({ kind: "delivered" });
  expect(receiver.mails[0]?.data.toString()).toContain("ascii");
});

test.each([
  ["mail", "530 5.7.0 Must issue a STARTTLS command first"],
  ["mail", "503 5.5.1 EHLO first"],
  ["rcpt", "550 5.7.10 encryption needed"],
  ["rcpt", "550 5.7.1 TLS required"],
  ["dot", "554 5.6.1 no 8-bit content"],
] as const)("a refusal of the session after HELO at %s (%s) defers the mail", async (stage, reply) => {
  const { send } = await start({ drop: "ehlo", reply: { [stage]: reply } });
  expect(await send("a@x.test")).toMatchObject({
    kind: "deferred",
    reply: { code: Number(reply.slice(0, 3)) },
  });
});

test("a full mailbox after HELO is the recipient's, as after EHLO", async () => {
  const { send } = await start({ drop: "ehlo" });
  expect(await send("full@x.test")).toMatchObject({ kind: "deferred", classification: "mailbox_full" });
});

test("a refusal of the recipient after HELO bounces", async () => {
  const { send } = await start({ drop: "ehlo" });
  expect(await send("permfail@x.test")).toMatchObject({
    kind: "bounced",
    reply: { code: 550, status: "5.1.1" },
  });
});

test("where HELO fails too, an attempt is one failure, and for ten minutes HELO is not tried again", async () => {
  const clock = new ManualClock();
  const { receiver, send } = await start({ drop: "ehlo", reply: { helo: "421 4.3.2 busy" } }, { clock });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", reply: { code: 421, status: "4.3.2" } });
  expect(await send("a@x.test")).toMatchObject(dropped);
  expect(greetings(receiver)).toEqual(["EHLO", "HELO", "EHLO"]);
});

test("a host that no longer takes HELO is asked with EHLO the next time", async () => {
  const receives: ReceiverOptions = { drop: "ehlo" };
  const clock = new ManualClock();
  const { receiver, send } = await start(receives, { clock });
  await heloOnly(send, clock);
  receiver.commands.length = 0;
  await clock.advance(20_000);
  delete receives.drop;
  receives.reply = { helo: "502 5.5.1 speak EHLO" };
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred" });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
  expect(greetings(receiver)).toEqual(["HELO", "EHLO"]);
});

test.each([
  ["TLS is required", { outbound: { tls: "require" } }],
  ["a certificate has to be valid", { outbound: { tls: "verify" } }],
] as const)("HELO is not tried where %s: it has no STARTTLS", async (_what, options) => {
  const { receiver, send } = await start({ drop: "ehlo" }, options);
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred" });
  expect(greetings(receiver)).toEqual(["EHLO"]);
});

test("silence and nonsense at EHLO are no reason for HELO", async () => {
  const { receiver, send } = await start({ reply: { ehlo: "what?" } });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred" });
  expect(greetings(receiver)).toEqual(["EHLO"]);
});

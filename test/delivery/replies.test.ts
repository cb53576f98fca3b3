import { afterEach, expect, test } from "vitest";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { Receiver, ReceiverOptions } from "../support/smtp-receiver.ts";
import { impatient, rig } from "./rig.ts";
import type { Rig } from "./rig.ts";

const open: { receiver: Receiver; delivery: Rig["delivery"] }[] = [];
afterEach(async () => {
  for (const { receiver, delivery } of open.splice(0)) {
    await delivery.stop();
    await receiver.stop();
  }
});

async function start(options: ReceiverOptions = {}): Promise<{ receiver: Receiver; send: Rig["send"] }> {
  const receiver = await startReceiver(options);
  const { send, delivery } = rig({ port: receiver.port, outbound: { timeouts: impatient } });
  open.push({ receiver, delivery });
  return { receiver, send };
}

test.each([
  ["tempfail@x.test", "deferred", 451, "4.3.0", "receiver_error"],
  ["full@x.test", "deferred", 452, "4.2.2", "mailbox_full"],
  ["unknown@x.test", "bounced", 550, "5.1.1", "invalid_recipient"],
  ["dotfail@x.test", "bounced", 554, "5.7.1", undefined],
])("%s is %s with the server's own reply", async (to, kind, code, status, classification) => {
  const { receiver, send } = await start();
  const outcome = await send(to);
  expect(outcome).toMatchObject({ kind, reply: { code, status } });
  if (classification) expect(outcome).toMatchObject({ classification });
  if (outcome.kind === "bounced") expect(outcome.source).toBe("smtp");
  expect(receiver.mails).toEqual([]);
  expect(outcome.trace).toMatchObject({ host: "mail.test", address: "127.0.0.1", sendingIp: "127.0.0.1" });
});

test.each([true, false])(
  "each recipient has its own fate over one connection (pipelining: %s)",
  async (pipelining) => {
    const { receiver, send } = await start({ pipelining });
    const fates = [];
    for (const to of ["a@x.test", "unknown@x.test", "tempfail@x.test", "b@x.test"])
      fates.push((await send(to)).kind);
    expect(fates).toEqual(["delivered", "bounced", "deferred", "delivered"]);
    expect(receiver.mails.map((mail) => mail.rcptTo[0])).toEqual(["a@x.test", "b@x.test"]);
    expect(receiver.connections).toBe(1);
    expect(receiver.commands.filter((command) => command === "RSET")).toHaveLength(2);
  },
);

test.each([true, false])(
  "a receiver whose reply lines end in LF alone gets its mail, and its refusals count (pipelining: %s)",
  async (pipelining) => {
    const { receiver, send } = await start({ lineEnd: "\n", pipelining });
    expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
    expect(await send("unknown@x.test")).toMatchObject({
      kind: "bounced",
      reply: { code: 550, status: "5.1.1" },
    });
    expect(receiver.mails).toHaveLength(1);
  },
);

test.each([
  ["552 5.5.3 no more", "deferred", "5.5.3", "rate_limited"],
  ["552 Too many recipients", "deferred", null, "rate_limited"],
  ["552 5.2.2 mailbox full", "bounced", "5.2.2", "mailbox_full"],
  ["552 5.2.2 too many recipients share this full mailbox", "bounced", "5.2.2", "mailbox_full"],
  ["552 5.0.0 too many recipients", "deferred", "5.0.0", "rate_limited"],
  ["550 5.5.3 too many recipients", "bounced", "5.5.3", "rate_limited"],
  ["550 4.2.1 mailbox disabled", "bounced", "4.2.1", "inactive_mailbox"],
])(
  "RCPT answered with %j is %s: the first digit decides but for 552 with too many recipients",
  async (reply, kind, status, classification) => {
    const { send } = await start({ onRcpt: () => reply });
    const code = Number(reply.slice(0, 3));
    expect(await send("a@x.test")).toMatchObject({ kind, reply: { code, status }, classification });
  },
);

test.each([
  ["552 5.5.3 no more", "bounced", "5.5.3", "rate_limited"],
  ["552 5.3.4 too big", "bounced", "5.3.4", "message_too_large"],
])(
  "the final dot answered with %j is %s: 552 is temporary for RCPT alone",
  async (reply, kind, status, classification) => {
    const { send } = await start({ onData: () => reply });
    expect(await send("a@x.test")).toMatchObject({ kind, reply: { code: 552, status }, classification });
  },
);

test("without pipelining nothing follows a refused RCPT but the next message", async () => {
  const { receiver, send } = await start({ pipelining: false });
  await send("unknown@x.test");
  expect(receiver.commands).not.toContain("DATA");
});

test("354 although every RCPT was refused is answered with a lone dot, and the RCPT reply decides", async () => {
  const { receiver, send } = await start({ dataWithoutRecipient: true });
  expect(await send("unknown@x.test")).toMatchObject({
    kind: "bounced",
    reply: { code: 550, status: "5.1.1" },
  });
  expect(receiver.refused.map((mail) => mail.data.length)).toEqual([0]);
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
  expect(receiver.connections).toBe(1);
});

test("even a 250 to the lone dot delivers nothing", async () => {
  const { send } = await start({ dataWithoutRecipient: true, onData: () => "250 2.0.0 sure" });
  expect(await send("unknown@x.test")).toMatchObject({ kind: "bounced", reply: { code: 550 } });
});

test("the first digit of the code decides, whatever the enhanced status says", async () => {
  const { send } = await start({ onRcpt: (to) => (to.startsWith("a") ? "450 5.1.1 odd" : "550 4.2.1 odd") });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", reply: { code: 450, status: "5.1.1" } });
  expect(await send("b@x.test")).toMatchObject({ kind: "bounced", reply: { code: 550, status: "4.2.1" } });
});

test("a refused sender is never taken for an unknown recipient", async () => {
  const { send } = await start({ reply: { mail: "550 5.1.1 go away" } });
  expect(await send("a@x.test")).toMatchObject({ kind: "bounced", classification: "invalid_sender" });
});

test("a delay that the receiver names is passed on", async () => {
  const { send } = await start({ reply: { rcpt: "451 4.7.1 Greylisted, please try again in 300 seconds" } });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", retryAfterMs: 300_000 });
});

test.each([
  ["data", "250 what"],
  ["rcpt", "354 what"],
  ["mail", "150 what"],
  ["mail", "999 what"],
  ["mail", "2501 what"],
  ["rcpt", "25"],
  ["rcpt", "hello"],
  ["data", "354\tgo"],
  ["rcpt", "250-" + "x".repeat(70_000)],
  ["rcpt", Array(150).fill("250-more").join("\r\n")],
] as const)(
  "a reply to %s that is none (%.12s) is a protocol error: deferred, never delivered",
  async (stage, reply) => {
    const { receiver, send } = await start({ reply: { [stage]: reply } });
    const outcome = await send("a@x.test");
    expect(outcome).toMatchObject({
      kind: "deferred",
      reply: { code: 451, status: "4.5.0" },
      classification: "protocol_error",
      trace: { ambiguous: false },
    });
    expect(outcome.reply.text).toMatch(/^\[local\] /);
    await receiver.waitFor(() => receiver.open === 0);
  },
);

test("a 3xx to the dot is a protocol error whose effect is unknown", async () => {
  const { send } = await start({ reply: { dot: "354 more?" } });
  expect(await send("a@x.test")).toMatchObject({
    kind: "deferred",
    reply: { status: "4.5.0" },
    trace: { ambiguous: true },
  });
});

test.each(["2501 what", "25", "hello", "150 wait", "999 what", "250\tok", "250-" + "x".repeat(70_000)])(
  "a reply to the dot that is none (%.12s) is no delivery, and its effect is unknown",
  async (dot) => {
    const { receiver, send } = await start({ reply: { dot } });
    const outcome = await send("a@x.test");
    expect(outcome).toMatchObject({
      kind: "deferred",
      reply: { code: 451, status: "4.5.0" },
      classification: "protocol_error",
      trace: { ambiguous: true },
    });
    expect(outcome.reply.text).toContain("may have the message");
    await receiver.waitFor(() => receiver.open === 0);
  },
);

test.each(["banner", "ehlo", "mail", "rcpt", "data", "dot"] as const)(
  "a line of 10 MB in the reply at %s is cut off with the connection",
  async (stage) => {
    const { receiver, send } = await start({ reply: { [stage]: `250 ${"x".repeat(10_000_000)}` } });
    expect(await send("a@x.test")).toMatchObject({ kind: "deferred", classification: "protocol_error" });
    await receiver.waitFor(() => receiver.open === 0);
  },
);

test.each([
  ["mail", true],
  ["mail", false],
  ["rcpt", true],
  ["rcpt", false],
  ["data", true],
  ["data", false],
] as const)(
  "two replies to %s (pipelining: %s) deliver nothing, to this recipient or the next",
  async (stage, pipelining) => {
    const { receiver, send } = await start({ pipelining });
    expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
    const twice = stage === "data" ? "354 go\r\n354 go" : "250 ok\r\n250 ok";
    receiver.options.reply = { [stage]: twice };
    expect(await send("b@x.test")).toMatchObject({ kind: "deferred", reply: { status: "4.5.0" } });
    receiver.options.reply = {};
    expect(await send("unknown@x.test")).toMatchObject({ kind: "bounced", reply: { code: 550 } });
    expect(receiver.mails.map((mail) => mail.rcptTo[0])).toEqual(["a@x.test"]);
  },
);

test("the last code of a reply with several counts", async () => {
  const { send } = await start({ reply: { rcpt: "550-5.1.1 no\r\n450 4.2.1 or later" } });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", reply: { code: 450, status: "4.2.1" } });
});

test("an unsolicited reply after EHLO is not the answer to MAIL", async () => {
  const { receiver, send } = await start({
    reply: { ehlo: "250-receiver.test\r\n250 PIPELINING\r\n250 extra" },
  });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", reply: { status: "4.5.0" } });
  expect(receiver.mails).toEqual([]);
});

test("a second reply to the dot does not reach the next message", async () => {
  const { receiver, send } = await start({ reply: { dot: "250 2.0.0 taken\r\n250 2.0.0 taken again" } });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
  expect(await send("unknown@x.test")).toMatchObject({ kind: "bounced", reply: { code: 550 } });
  expect(receiver.connections).toBe(2);
});

test("a refusal in the middle of a long message is honoured, and the rest is not sent", async () => {
  const { receiver, send } = await start({
    reply: { data: "354 go on\r\n550 5.7.1 enough" },
    stall: "block",
  });
  const outcome = await send("a@x.test", { chunks: Array<Buffer>(400).fill(Buffer.alloc(65_536, "x\r\n")) });
  expect(outcome).toMatchObject({ kind: "bounced", reply: { code: 550, status: "5.7.1" } });
  expect(receiver.mails).toEqual([]);
});

test("a refusal right behind 354 is honoured though the server reads on", async () => {
  const { receiver, send } = await start({
    reply: { data: "354 go on\r\n550 5.7.1 enough" },
    onData: () => "250 2.0.0 taken",
  });
  for (const pipelining of [true, false]) {
    receiver.options.pipelining = pipelining;
    expect(await send("a@x.test")).toMatchObject({ kind: "bounced", reply: { code: 550, status: "5.7.1" } });
  }
});

test("a 250 before our dot is not a delivery", async () => {
  const { receiver, send } = await start({ reply: { data: "354 go on\r\n250 2.0.0 taken" } });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", reply: { status: "4.5.0" } });
  expect(receiver.mails).toEqual([]);
});

test("421 in the middle of a session defers with the server's words, and the connection is not used again", async () => {
  const { receiver, send } = await start({ onRcpt: () => "421 4.7.28 slow down" });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", reply: { code: 421, status: "4.7.28" } });
  await receiver.waitFor(() => receiver.open === 0);
});

test("a hostile reply is kept as one safe line", async () => {
  const { send } = await start({ reply: { rcpt: `550 5.1.1 \u001b[31m<b>\u0000\u2028${"x".repeat(8000)}` } });
  const { reply } = await send("a@x.test");
  expect(reply.text).not.toMatch(/[\p{Cc}\u2028]/u);
  expect(reply.text.length).toBeLessThanOrEqual(2000);
});

import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { ReceiverOptions, Stage } from "../support/smtp-receiver.ts";
import { ManualClock } from "../support/clock.ts";
import { impatient, rig, tlsFixture } from "./rig.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function start(options: ReceiverOptions) {
  const receiver = await startReceiver(options);
  open.push(() => receiver.stop());
  return { receiver, ...rig({ port: receiver.port, outbound: { timeouts: impatient } }) };
}

test.each<[Stage, string]>([
  ["banner", ""],
  ["ehlo", "EHLO"],
  ["starttls", "STARTTLS"],
  ["handshake", "STARTTLS"],
  ["mail", "MAIL"],
  ["rcpt", "RCPT"],
  ["data", "DATA"],
  ["block", "DATA"],
])(
  "at shutdown an attempt that hangs at %s ends at once, and one to come is not begun",
  async (stage, verb) => {
    const tls = stage === "starttls" || stage === "handshake" ? { tls: tlsFixture } : {};
    const receiver = await startReceiver({ stall: stage, ...tls });
    open.push(() => receiver.stop());
    const { delivery, send } = rig({ port: receiver.port });
    const attempt = send("a@x.test", stage === "block" ? { chunks: long } : {});
    await receiver.waitFor(
      () => receiver.open === 1 && (verb === "" || receiver.commands.some((line) => line.startsWith(verb))),
    );
    delivery.cutShort();
    const cut = { kind: "deferred", reply: { text: expect.stringMatching(/^\[local\] .*stopping/) } };
    expect(await attempt).toMatchObject({ ...cut, trace: { ambiguous: false } });
    expect((await send("b@x.test")).kind).toBe("deferred");
    expect(receiver.connections).toBe(1);
  },
);

test("at shutdown an attempt that waits for the reply to its dot is left to wait", async () => {
  const receiver = await startReceiver();
  open.push(() => receiver.stop());
  const { delivery, send } = rig({ port: receiver.port });
  const attempt = send("slow@x.test");
  await receiver.waitForMails(1);
  delivery.cutShort();
  receiver.release();
  expect((await attempt).kind).toBe("delivered");
});

const long = Array<Buffer>(400).fill(Buffer.alloc(65_536, "x\r\n"));

test.each<[Stage, string, boolean]>([
  ["banner", "4.4.1", false],
  ["ehlo", "4.4.2", false],
  ["starttls", "4.4.2", false],
  ["mail", "4.4.2", false],
  ["rcpt", "4.4.2", false],
  ["data", "4.4.2", false],
  ["block", "4.4.2", false],
  ["dot", "4.4.2", true],
])(
  "silence at %s defers with %s once its time is over, and the slot is free",
  async (stage, status, ambiguous) => {
    const { receiver, send } = await start({
      stall: stage,
      ...(stage === "starttls" ? { tls: tlsFixture } : {}),
    });
    const outcome = await send("a@x.test", stage === "block" ? { chunks: long } : {});
    expect(outcome).toMatchObject({
      kind: "deferred",
      reply: { code: 421, status },
      classification: "connection_failed",
      trace: { ambiguous },
    });
    expect(outcome.reply.text).toMatch(/^\[local\] .*nothing within 0\.1 s/);
    await receiver.waitFor(() => receiver.open === 0 || stage === "block");
    expect(receiver.mails).toHaveLength(ambiguous ? 1 : 0);
  },
);

test.each(["mail", "rcpt", "data"] as const)("a hang-up at %s defers", async (stage) => {
  const { send } = await start({ drop: stage });
  expect(await send("a@x.test")).toMatchObject({
    kind: "deferred",
    reply: { code: 421, status: "4.4.2" },
    trace: { ambiguous: false },
  });
});

test("a hang-up after the dot defers and says that the receiver may have a copy", async () => {
  const { receiver, send } = await start({});
  const outcome = await send("drop@x.test");
  expect(outcome).toMatchObject({ kind: "deferred", reply: { status: "4.4.2" }, trace: { ambiguous: true } });
  expect(outcome.reply.text).toContain("may have the message");
  expect(receiver.mails).toHaveLength(1);
  expect(receiver.connections).toBe(1);
});

test("a reply that drips in byte by byte does not extend its deadline", async () => {
  const clock = new ManualClock();
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    const drip = (): void => {
      if (socket.destroyed) return;
      socket.write("2");
      clock.after(20_000, drip);
    };
    drip();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => new Promise((resolve) => server.close(() => resolve())));
  const { port } = server.address() as AddressInfo;
  const timeouts = {
    connectMs: 30_000,
    greetingMs: 60_000,
    commandMs: 60_000,
    dataMs: 180_000,
    dotMs: 600_000,
  };
  const sending = rig({ port, clock, outbound: { timeouts } }).send("a@x.test");
  await new Promise<void>((resolve) => server.once("connection", () => resolve()));
  await clock.advance(10_000);
  await clock.advance(60_000);
  expect(await sending).toMatchObject({ kind: "deferred", reply: { status: "4.4.1" } });
});

test.each<[Stage, number]>([
  ["banner", 300_000],
  ["ehlo", 290_000],
  ["mail", 290_000],
  ["rcpt", 290_000],
  ["data", 290_000],
  ["dot", 600_000],
])("a reply at %s of lines that never end, one each twenty seconds, has %d ms in all", async (stage, ms) => {
  const clock = new ManualClock();
  const receiver = await startReceiver({ stall: stage });
  open.push(() => receiver.stop());
  const timeouts = {
    connectMs: 30_000,
    greetingMs: 300_000,
    commandMs: 290_000,
    dataMs: 180_000,
    dotMs: 600_000,
  };
  const { send } = rig({ port: receiver.port, clock, outbound: { timeouts } });
  let ended = false;
  const sending = send("a@x.test").finally(() => (ended = true));
  const reached = {
    banner: () => receiver.open === 1,
    dot: () => receiver.mails.length === 1,
  }[stage as "banner" | "dot"];
  await receiver.waitFor(
    reached ?? (() => receiver.commands.some((line) => line.startsWith(stage.toUpperCase()))),
  );
  const more = (): void => {
    receiver.say("250-and more\r\n");
    clock.after(20_000, more);
  };
  more();
  await clock.advance(ms - 10_000);
  expect(ended).toBe(false);
  await clock.advance(10_000);
  expect(await sending).toMatchObject({
    kind: "deferred",
    reply: { code: 421, text: expect.stringContaining(`nothing within ${ms / 1000} s`) },
    trace: { ambiguous: stage === "dot" },
  });
});

test.each([
  ["less than a kilobyte a second is not waited for", 0.8, "deferred"],
  ["more than a kilobyte a second is waited for", 1.2, "delivered"],
] as const)("a server that reads a long message on, but %s", async (_what, kilobytesPerSecond, kind) => {
  const clock = new ManualClock();
  const receiver = await startReceiver({ slowData: true, size: 0 });
  open.push(() => receiver.stop());
  const timeouts = { ...impatient, commandMs: 300_000, dataMs: 10_000_000, dotMs: 600_000 };
  const { send } = rig({ port: receiver.port, clock, outbound: { timeouts } });
  let taken = 0;
  const chunks = Array<Buffer>(1_600).fill(Buffer.alloc(65_536, "x\r\n"));
  const whole = chunks.values();
  chunks[Symbol.iterator] = function* () {
    for (const chunk of whole) {
      taken++;
      yield chunk;
    }
    return undefined;
  };
  let ended = false;
  const sending = send("a@x.test", { chunks }).finally(() => (ended = true));
  await receiver.waitFor(() => receiver.commands.includes("DATA"));
  // The systems' buffers lie between the two, so a look at what was taken from the message is what tells.
  for (let before = 0; !ended && taken < 1_600; before = taken) {
    receiver.readOn(true);
    while (!ended && taken === before) await new Promise((resolve) => setImmediate(resolve));
    if (taken === 1_600) break; // the end has its own time
    receiver.readOn(false);
    await clock.advance(((taken - before) * 65_536) / 1.024 / kilobytesPerSecond);
  }
  receiver.readOn(true);
  const outcome = await sending;
  expect(outcome).toMatchObject({ kind, trace: { ambiguous: false } });
  if (kind === "deferred") expect(outcome.reply.text).toMatch(/less than a kilobyte a second/);
  expect(receiver.mails).toHaveLength(kind === "delivered" ? 1 : 0);
});

test("the dot has its own, longer time, of which the commands before it used up nothing", async () => {
  const clock = new ManualClock();
  const receiver = await startReceiver();
  open.push(() => receiver.stop());
  const timeouts = {
    connectMs: 30_000,
    greetingMs: 60_000,
    commandMs: 60_000,
    dataMs: 180_000,
    dotMs: 600_000,
  };
  const { send } = rig({ port: receiver.port, clock, outbound: { timeouts } });
  const slow = send("slow@x.test");
  await receiver.waitForMails(1);
  await clock.advance(599_000);
  receiver.release();
  expect(await slow).toMatchObject({ kind: "delivered" });
  const lost = send("slow@x.test");
  await receiver.waitForMails(2);
  await clock.advance(600_000);
  expect(await lost).toMatchObject({ kind: "deferred", trace: { ambiguous: true } });
});

test.each<Stage>(["banner", "ehlo", "starttls", "handshake", "mail", "rcpt", "data", "block", "dot"])(
  "fifty sessions that stall at %s do not slow down a healthy host",
  async (stage) => {
    const tls = stage === "starttls" || stage === "handshake" ? { tls: tlsFixture } : {};
    const stalled = await startReceiver({ address: "127.0.0.21", stall: stage, ...tls });
    const healthy = await startReceiver({ address: "127.0.0.22", port: stalled.port });
    open.push(
      () => stalled.stop(),
      () => healthy.stop(),
    );
    const zone = { "dead.test": { a: ["127.0.0.21"] }, "well.test": { a: ["127.0.0.22"] } };
    const { send, delivery } = rig({
      port: stalled.port,
      zone,
      deps: { limitsOf: () => ({ connections: 50, messagesPerConnection: 100 }) },
      clock: new ManualClock(), // on which no stage ever takes too long
    });
    const body = stage === "block" ? { chunks: long } : {};
    const hanging = Array.from({ length: 50 }, (_, i) => send(`r${i}@dead.test`, body));
    await stalled.waitFor(() => stalled.connections === 50);
    for (let i = 0; i < 100; i++) expect((await send(`r${i}@well.test`)).kind).toBe("delivered");
    expect(healthy.connections).toBe(1);
    expect([stalled.open, stalled.connections]).toEqual([50, 50]);
    delivery.cutShort();
    if (stage === "dot") stalled.hangUp(); // the one stage that is waited for at a stop
    expect((await Promise.all(hanging)).every((outcome) => outcome.kind === "deferred")).toBe(true);
    await delivery.stop();
  },
);

import { afterEach, expect, test } from "vitest";
import { ManualClock, settle } from "../support/clock.ts";
import { makeJob } from "../support/jobs.ts";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { Receiver, ReceiverOptions } from "../support/smtp-receiver.ts";
import { anySource, rig } from "./rig.ts";
import type { Rig, RigOptions } from "./rig.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function start(
  options: ReceiverOptions = {},
  rigOptions: Partial<RigOptions> = {},
): Promise<Rig & { receiver: Receiver }> {
  const receiver = await startReceiver(options);
  const made = rig({ port: receiver.port, ...rigOptions });
  open.push(() => receiver.stop());
  return { ...made, receiver };
}

const ms = 20_000;

test("a 421 that waits on a kept connection costs the next message nothing", async () => {
  const { receiver, send } = await start();
  await send("a@x.test");
  receiver.say("421 4.4.2 idle timeout\r\n");
  receiver.hangUp();
  const outcome = await send("b@x.test");
  expect(outcome).toMatchObject({ kind: "delivered" });
  expect(receiver.connections).toBe(2);
  expect(receiver.mails).toHaveLength(2);
});

test.each([true, false])(
  "a 421 in answer to MAIL on a kept connection is not the message's (pipelining: %s)",
  async (pipelining) => {
    const { receiver, send } = await start({ pipelining });
    await send("a@x.test");
    receiver.options.reply = { mail: "421 4.4.2 too long idle" };
    const sending = send("b@x.test");
    await receiver.waitFor(() => receiver.commands.filter((line) => line.startsWith("MAIL")).length === 2);
    receiver.options.reply = {};
    expect(await sending).toMatchObject({ kind: "delivered" });
    expect(receiver.connections).toBe(2);
    expect(receiver.mails.map((mail) => mail.rcptTo[0])).toEqual(["a@x.test", "b@x.test"]);
  },
);

test("nor is a 421 in answer to MAIL after RSET was taken", async () => {
  const { receiver, send } = await start();
  await send("unknown@x.test");
  receiver.options.reply = { mail: "421 4.7.0 too many messages on this connection" };
  const sending = send("b@x.test");
  await receiver.waitFor(() => receiver.commands.filter((line) => line.startsWith("MAIL")).length === 2);
  receiver.options.reply = {};
  expect(await sending).toMatchObject({ kind: "delivered" });
  expect(receiver.commands).toContain("RSET");
  expect(receiver.connections).toBe(2);
});

test.each([true, false])(
  "a kept connection on which RSET is never answered is given up in 20 s and costs the next message nothing (pipelining: %s)",
  async (pipelining) => {
    const clock = new ManualClock();
    const timeouts = {
      connectMs: 30_000,
      greetingMs: 300_000,
      commandMs: 300_000,
      dataMs: 180_000,
      dotMs: 600_000,
    };
    const { receiver, send } = await start({ pipelining }, { clock, outbound: { timeouts } });
    await send("unknown@x.test"); // leaves a transaction open
    receiver.options.stall = "rset";
    const sending = send("b@x.test");
    await receiver.waitFor(() => receiver.commands.at(-1) === "RSET");
    delete receiver.options.stall;
    await clock.advance(20_000);
    expect(await sending).toMatchObject({ kind: "delivered" });
    expect(receiver.connections).toBe(2);
    expect(receiver.mails.map((mail) => mail.rcptTo[0])).toEqual(["b@x.test"]);
  },
);

test.each(["end", "reset"] as const)(
  "a kept connection that the server closed (%s) is replaced",
  async (how) => {
    const { receiver, send } = await start();
    await send("a@x.test");
    receiver.hangUp(how);
    expect(await send("b@x.test")).toMatchObject({ kind: "delivered" });
  },
);

test("a kept connection on which the server speaks unasked is dropped", async () => {
  const { receiver, send } = await start();
  await send("a@x.test");
  receiver.say("250 2.0.0 surprise\r\n");
  await receiver.waitFor(() => receiver.open === 0);
  expect(await send("b@x.test")).toMatchObject({ kind: "delivered" });
  expect(receiver.connections).toBe(2);
});

test("an idle connection is let go with QUIT after ten seconds", async () => {
  const clock = new ManualClock();
  const { receiver, send } = await start({}, { clock });
  await send("a@x.test");
  await clock.advance(6_000);
  await send("b@x.test");
  await clock.advance(9_000);
  expect(receiver.commands).not.toContain("QUIT");
  await clock.advance(1_000);
  await receiver.waitFor(() => receiver.open === 0);
  expect(receiver.commands.at(-1)).toBe("QUIT");
  await settle();
  expect(clock.pending).toBe(0);
});

test("250 is final: a QUIT that is never answered delays no other and the connection is dropped", async () => {
  const clock = new ManualClock();
  const { receiver, send, delivery } = await start({ stall: "quit" }, { clock });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
  const stopped = delivery.stop();
  await receiver.waitFor(() => receiver.commands.at(-1) === "QUIT");
  await clock.advance(2_000);
  await stopped;
  await receiver.waitFor(() => receiver.open === 0);
});

test("a connection carries a hundred messages at most", { timeout: ms }, async () => {
  const { receiver, send, delivery } = await start();
  for (let i = 0; i < 101; i++) await send(`r${i}@x.test`);
  expect(receiver.mails[99]?.connection).toBe(1);
  expect(receiver.mails[100]?.connection).toBe(2);
  await delivery.stop();
});

test("a connection carries no more messages than its group allows", async () => {
  const limitsOf = (group: string) => ({
    connections: 10,
    messagesPerConnection: group === "mail.test" ? 2 : 9,
  });
  const { receiver, send, delivery } = await start({}, { deps: { limitsOf } });
  for (let i = 0; i < 5; i++) await send(`r${i}@x.test`);
  expect(receiver.mails.map(({ connection }) => connection)).toEqual([1, 1, 2, 2, 3]);
  await delivery.stop();
});

test("a group never has more connections than its limit: an idle one makes room", async () => {
  const zone = {
    "x.test": { mx: ["10 mx1.x.test"] },
    "y.test": { mx: ["10 mx2.x.test"] },
    "mx1.x.test": { a: ["127.0.0.1"] },
    "mx2.x.test": { a: ["127.0.0.1"] },
  };
  const { receiver, send, delivery } = await start(
    {},
    { zone, deps: { limitsOf: () => ({ connections: 1, messagesPerConnection: 100 }) } },
  );
  await send("a@x.test");
  await send("a@y.test");
  await receiver.waitFor(() => receiver.open === 1);
  expect(receiver.connections).toBe(2);
  expect(receiver.commands.filter((command) => command === "QUIT")).toHaveLength(1);
  await delivery.stop();
});

test("messages at the same time have connections of their own, and one that hangs delays no other", async () => {
  const { receiver, send, delivery } = await start();
  const slow = send("slow@x.test");
  await receiver.waitForMails(1);
  for (let i = 0; i < 3; i++) expect(await send("quick@x.test")).toMatchObject({ kind: "delivered" });
  expect(receiver.connections).toBe(2);
  receiver.release();
  expect(await slow).toMatchObject({ kind: "delivered" });
  await delivery.stop();
});

test("an attempt whose lease is gone ends before the final dot", async () => {
  const { receiver, send } = await start();
  for (const chunks of [[Buffer.from("a\r\n")], Array<Buffer>(10).fill(Buffer.alloc(65_536, "x\r\n"))]) {
    const outcome = await send("a@x.test", { chunks, mayFinish: () => false });
    expect(outcome).toMatchObject({ kind: "deferred", trace: { ambiguous: false } });
  }
  await receiver.waitFor(() => receiver.open === 0);
  expect(receiver.mails).toEqual([]);
});

test("a stored message that cannot be read leaves no half message and no connection behind", async () => {
  const { receiver, delivery } = await start();
  const route = await delivery.route("x.test", 1);
  if (route.kind !== "hosts") throw new Error("no route");
  const attempt = delivery.attempt({
    job: makeJob(1),
    route,
    mailFrom: "b@bounce.ok.test",
    wire: {
      signature: Buffer.alloc(0),
      sizeBytes: 10,
      open: async function* () {
        yield Buffer.from("half");
        throw new Error("the disk is gone");
      },
    },
    ascii: async () => null,
    mayFinish: () => true,
    source: anySource,
    sourceOf: () => null,
  });
  await expect(attempt).rejects.toThrow("the disk is gone");
  await receiver.waitFor(() => receiver.open === 0);
  expect(receiver.mails).toEqual([]);
});

test("the dialogue shows commands and replies, and of the message its size alone", async () => {
  const { receiver, send, delivery } = await start();
  await send("a@x.test");
  const { trace } = await send("tempfail@x.test");
  expect(trace.dialogue.map((line) => `${line.from} ${line.text}`)).toEqual([
    "us (kept connection, message 2 on it)",
    "us MAIL FROM:<b+1@bounce.ok.test> SIZE=39",
    "us RCPT TO:<tempfail@x.test>",
    "us DATA",
    "them 250 2.1.0 ok",
    "them 451 4.3.0 try again later",
    "them 503 5.5.1 no valid recipients",
  ]);
  const { trace: delivered } = await send("b@x.test");
  expect(delivered.dialogue.map((line) => line.text)).toContain("(message, 39 bytes)");
  expect(receiver.mails).toHaveLength(2);
  await delivery.stop();
});

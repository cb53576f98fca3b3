// The inbound port on loopback, with a feedback of the test's own: who gets in, what is refused, when 250 is said.
import { readFileSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import type { Mailbox } from "../../src/feedback/mailbox.ts";
import { silentLog } from "../../src/log.ts";
import { inboundLimits, keptBytes } from "../../src/relay/inbound-limits.ts";
import { createInbound, maxReportBytes } from "../../src/relay/inbound.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { ManualClock } from "../support/clock.ts";
import { connectSmtp, type SmtpClient } from "../support/smtp-client.ts";

const pem = (name: string): string =>
  readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), "utf8");
const pair = { key: pem("mail.test.key"), cert: pem("mail.test.cert") };
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (let close = closers.pop(); close; close = closers.pop()) await close();
});

async function start(options: { tls?: boolean; full?: boolean; closed?: boolean } = {}) {
  const clock = new ManualClock();
  const taken: { mail: Buffer; mailboxes: readonly Mailbox[] }[] = [];
  const on: { take: () => Promise<"taken" | "later"> } = { take: async () => "taken" };
  const inbound = createInbound({
    config: { hostname: "mail.test", inbound: { listen: [{ host: "127.0.0.1", port: 0 }] } },
    certificates:
      options.tls === false
        ? null
        : {
            current: () => pair,
            covers: () => true,
            onChange: () => () => undefined,
            reload: async () => null,
          },
    feedback: {
      mailboxOf: async (address) =>
        address.startsWith("b+")
          ? { kind: "return_path", messageKey: 1, recipientKey: address.length }
          : null,
      async take(mail, mailboxes) {
        const result = await on.take();
        taken.push({ mail: Buffer.from(mail), mailboxes });
        return result;
      },
    },
    store: { full: async () => options.full ?? false },
    maintenance: { refusal: () => (options.closed ? new Refusal("maintenance", "In maintenance") : null) },
    clock,
    log: silentLog,
  });
  await inbound.start();
  closers.push(async () => {
    const stopped = inbound.stop();
    await clock.advance(12_000);
    await stopped;
  });
  const address = inbound.addresses()[0]?.address ?? "";
  const dial = (localAddress = "127.0.0.1"): Promise<SmtpClient> =>
    connectSmtp({ port: Number(address.split(":").at(-1)), localAddress });
  const client = async (): Promise<SmtpClient> => {
    const smtp = await dial();
    closers.push(async () => smtp.end());
    await smtp.answer();
    return smtp;
  };
  return { inbound, taken, on, client, dial, clock };
}

test("a report from the null sender is taken whole, and 250 is said after it is stored", async () => {
  const { taken, on, client } = await start();
  const steps: string[] = [];
  on.take = async () => {
    steps.push("stored");
    return "taken";
  };
  const smtp = await client();
  await smtp.text("EHLO mx.far.test");
  expect(await smtp.text("MAIL FROM:<>")).toMatch(/^250 /);
  expect(await smtp.text("RCPT TO:<b+aa@rp.test>")).toMatch(/^250 /);
  expect(await smtp.text("DATA")).toMatch(/^354/);
  steps.push(await smtp.text("Subject: x\r\n\r\n..dot\r\nbye\r\n."));
  expect(steps).toEqual(["stored", "250 2.0.0 Taken"]);
  expect(taken.map(({ mail, mailboxes }) => [mail.toString(), mailboxes])).toEqual([
    ["Subject: x\r\n\r\n.dot\r\nbye\r\n", [{ kind: "return_path", messageKey: 1, recipientKey: 12 }]],
  ]);
});

test("STARTTLS is offered and AUTH is not; without a certificate there is neither", async () => {
  const withTls = await (await start()).client();
  const offers = await withTls.text("EHLO mx.far.test");
  expect(offers).toContain("STARTTLS");
  expect(offers).toContain(`SIZE ${maxReportBytes}`);
  expect(offers).not.toContain("AUTH");
  expect(await withTls.text("AUTH PLAIN AGEAYg==")).toMatch(/^50[02] /);
  const bare = await (await start({ tls: false })).client();
  expect(await bare.text("EHLO mx.far.test")).not.toContain("STARTTLS");
});

test("a handshake that is never finished after STARTTLS ends within 30 s, and another report is taken", async () => {
  const { client, clock } = await start();
  const stuck = await client();
  await stuck.command("EHLO mx.far.test");
  await stuck.command("STARTTLS");
  await clock.advance(30_000);
  await stuck.closed;
  expect(await (await client()).text("EHLO mx.far.test")).toContain("STARTTLS");
});

test("nothing is relayed: any other address is refused at RCPT, and a guesser is sent away", async () => {
  const { taken, client } = await start();
  const smtp = await client();
  await smtp.text("EHLO mx.far.test");
  await smtp.text("MAIL FROM:<eve@far.test>");
  const replies: string[] = [];
  for (let n = 0; n < 20; n++) replies.push(await smtp.text(`RCPT TO:<u${n}@elsewhere.test>`));
  expect(new Set(replies.slice(0, 19).map((reply) => reply.slice(0, 9)))).toEqual(new Set(["550 5.7.1"]));
  expect(replies[19]).toMatch(/^421 4\.7\.0 /);
  expect(taken).toEqual([]);
});

test("DATA without an accepted recipient is out of order", async () => {
  const smtp = await (await start()).client();
  await smtp.text("EHLO mx.far.test");
  await smtp.text("MAIL FROM:<>");
  await smtp.text("RCPT TO:<other@elsewhere.test>");
  expect(await smtp.text("DATA")).toMatch(/^503 /);
});

/** Time passes until the reply has come: what is large is read at its source's pace (inbound-pace.ts). */
async function readAtItsPace<T>(clock: ManualClock, reply: Promise<T>): Promise<T> {
  let over = false;
  void reply.finally(() => (over = true));
  while (!over) await clock.advance(clock.pending > 0 ? 100 : 0);
  return reply;
}

test("of a report that returns a large message the first 256 KB are kept", async () => {
  const { clock, taken, client } = await start();
  const smtp = await client();
  await smtp.text("EHLO mx.far.test");
  await smtp.text("MAIL FROM:<>");
  await smtp.text("RCPT TO:<b+aa@rp.test>");
  await smtp.text("DATA");
  const line = `${"x".repeat(998)}\r\n`;
  const reply = smtp.text(`Subject: x\r\n\r\n${line.repeat(5_000)}.`);
  expect(await readAtItsPace(clock, reply)).toMatch(/^250 /);
  expect(taken.map(({ mail }) => mail.length)).toEqual([keptBytes]);
  expect(taken[0]?.mail.toString("latin1", 0, 20)).toBe("Subject: x\r\n\r\nxxxxxx");
});

test("a report larger than any is refused, by its announced size and by its real one", async () => {
  const { clock, taken, client } = await start();
  const smtp = await client();
  await smtp.text("EHLO mx.far.test");
  expect(await smtp.text(`MAIL FROM:<> SIZE=${maxReportBytes + 1}`)).toMatch(/^552 5\.3\.4/);
  await smtp.text("MAIL FROM:<>");
  await smtp.text("RCPT TO:<b+aa@rp.test>");
  await smtp.text("DATA");
  const megabyte = `${"x".repeat(998)}\r\n`.repeat(1_000);
  for (let sent = 0; sent <= maxReportBytes; sent += megabyte.length) smtp.send(megabyte);
  expect(await readAtItsPace(clock, smtp.text("."))).toMatch(/^552 5\.3\.4/);
  expect(taken).toEqual([]);
});

test.each([
  ["is busy with that recipient", async () => "later" as const, /^451 4\.3\.2/],
  ["cannot write", () => Promise.reject(new StoreUnavailable("failed", "disk")), /^451 4\.3\.0/],
  ["has no room", () => Promise.reject(new StoreUnavailable("full", "disk")), /^452 4\.3\.1/],
  ["has a bug", () => Promise.reject(new Error("bug")), /^451 4\.3\.0/],
])("while the store %s the sender is to try again", async (_, take, reply) => {
  const { on, client } = await start();
  on.take = take;
  const smtp = await client();
  await smtp.text("EHLO mx.far.test");
  await smtp.text("MAIL FROM:<>");
  await smtp.text("RCPT TO:<b+aa@rp.test>");
  await smtp.text("DATA");
  expect(await smtp.text("Subject: x\r\n\r\nbye\r\n.")).toMatch(reply);
  expect(await smtp.text("NOOP")).toMatch(/^250 /);
});

test("a full disk refuses at MAIL", async () => {
  const smtp = await (await start({ full: true })).client();
  await smtp.text("EHLO mx.far.test");
  expect(await smtp.text("MAIL FROM:<>")).toMatch(/^452 4\.3\.1/);
});

test("parameters that were not offered are refused", async () => {
  const smtp = await (await start()).client();
  await smtp.text("EHLO mx.far.test");
  expect(await smtp.text("MAIL FROM:<> RET=HDRS")).toMatch(/^555 5\.5\.4/);
});

test("in maintenance what comes back is asked to come again later", async () => {
  const { client, taken } = await start({ closed: true });
  const smtp = await client();
  await smtp.text("EHLO mx.far.test");
  expect(await smtp.text("MAIL FROM:<>")).toMatch(/^451 4\.3\.2 /);
  expect(taken).toEqual([]);
});

test("a peer that brings no mail within five minutes is let go, whatever it says; each mail gives it five more", async () => {
  const { client, clock } = await start();
  const [idle, sender] = [await client(), await client()];
  const pass = async (): Promise<void> => {
    for (let gone = 0; gone < 295; gone += 5) {
      await idle.command("NOOP");
      await sender.command("EHLO mx.x.test");
      await clock.advance(5_000);
    }
  };
  await pass();
  expect((await sender.submit("", ["b+1@mail.test"], "Subject: x\r\n\r\nhi\r\n.\r\n")).code).toBe(250);
  await clock.advance(5_000);
  expect((await idle.answer()).text).toMatch(/^421 4\.7\.0 No mail within five minutes/);
  await idle.closed;
  for (let gone = 0; gone < 290; gone += 5) {
    expect((await sender.command("NOOP")).code).toBe(250);
    await clock.advance(5_000);
  }
  expect((await sender.command("NOOP")).code).toBe(250);
  await clock.advance(5_000);
  expect((await sender.answer()).text).toMatch(/^421 4\.7\.0 No mail within five minutes/);
});

test("300 replies without a mail end the session", async () => {
  const { client } = await start();
  const peer = await client();
  peer.send("NOOP\r\n".repeat(400));
  expect((await peer.answers(300))[299]?.text).toBe("421 4.7.0 Too many commands without a mail");
  await peer.closed;
});

test("500 sessions that bring nothing do not shut out one who has a report", async () => {
  const { dial, clock } = await start();
  const held: SmtpClient[] = [];
  for (let source = 2; source < 27; source++)
    for (let i = 0; i < 20; i++) held.push(await dial(`127.0.0.${source}`));
  for (const peer of held) expect((await peer.answer()).code).toBe(220);
  expect((await (await dial()).answer()).text).toMatch(/^421 4\.7\.0 /);
  await clock.advance(30_000);
  const sender = await dial();
  expect((await sender.answer()).code).toBe(220);
  await sender.command("EHLO mx.x.test");
  expect((await sender.submit("", ["b+1@mail.test"], "Subject: x\r\n\r\nhi\r\n.\r\n")).code).toBe(250);
  expect((await held[0]?.answer())?.text).toBe("421 4.7.0 Too many sessions; try again later");
  for (const peer of [...held, sender]) peer.end();
});

test("at shutdown a report that is being stored gets its 250 first", async () => {
  const { inbound, on, client } = await start();
  const [begun, stored] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  on.take = async () => (begun.resolve(), await stored.promise, "taken");
  const sender = await client();
  await sender.command("EHLO mx.x.test");
  const answer = sender.submit("", ["b+1@mail.test"], "Subject: x\r\n\r\nhi\r\n.\r\n");
  await begun.promise;
  void inbound.stop();
  stored.resolve();
  expect((await answer).text).toBe("250 2.0.0 Taken");
  expect((await sender.answer()).text).toMatch(/^421 4\.3\.2 /);
});

test("a source that sends too many mails within a minute is answered with the limit and when to try again", async () => {
  const { client, clock } = await start();
  const { messages } = inboundLimits.perMinute;
  const session = async (): Promise<SmtpClient> => {
    const peer = await client();
    await peer.text("EHLO mx.far.test");
    return peer;
  };
  for (let begun = 0; begun < messages;) {
    const peer = await session();
    for (let n = 0; n < 100; n++, begun++) {
      expect(await peer.text("MAIL FROM:<>")).toMatch(/^250 /);
      await peer.text("RSET");
    }
    peer.end();
  }
  const smtp = await session();
  await clock.advance(15_000);
  expect(await smtp.text("MAIL FROM:<>")).toBe(
    "451 4.7.0 The limit of 600 mails a minute from 127.0.0.1 is reached; try again in 45 seconds",
  );
  await clock.advance(45_000);
  expect(await smtp.text("MAIL FROM:<>")).toMatch(/^250 /);
});

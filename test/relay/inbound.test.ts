// The inbound port on loopback, with a feedback of the test's own: who gets in, what is refused, when 250 is said.
import { readFileSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import type { Mailbox } from "../../src/feedback/mailbox.ts";
import { silentLog } from "../../src/log.ts";
import { createInbound, keptBytes, maxReportBytes } from "../../src/relay/inbound.ts";
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
  const taken: { mail: Buffer; mailboxes: readonly Mailbox[] }[] = [];
  const on: { take: () => Promise<"taken" | "later"> } = { take: async () => "taken" };
  const inbound = createInbound({
    config: { hostname: "mail.test", inbound: { listen: [{ host: "127.0.0.1", port: 0 }] } },
    certificates:
      options.tls === false
        ? null
        : { current: () => pair, onChange: () => () => undefined, reload: async () => null },
    feedback: {
      mailboxOf: async (address) =>
        address.startsWith("b-")
          ? { kind: "return_path", messageKey: 1, recipientKey: address.length }
          : null,
      async take(mail, mailboxes) {
        const result = await on.take();
        taken.push({ mail: Buffer.from(mail), mailboxes });
        return result;
      },
    },
    store: { full: () => options.full ?? false },
    maintenance: { refusal: () => (options.closed ? new Refusal("maintenance", "In maintenance") : null) },
    clock: new ManualClock(),
    log: silentLog,
  });
  await inbound.start();
  closers.push(() => inbound.stop());
  const address = inbound.addresses()[0]?.address ?? "";
  const client = async (): Promise<SmtpClient> => {
    const smtp = await connectSmtp({ port: Number(address.split(":").at(-1)) });
    closers.push(async () => smtp.end());
    await smtp.answer();
    return smtp;
  };
  return { inbound, taken, on, client };
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
  expect(await smtp.text("RCPT TO:<b-aa@rp.test>")).toMatch(/^250 /);
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

test("of a report that returns a large message the first megabyte is kept", async () => {
  const { taken, client } = await start();
  const smtp = await client();
  await smtp.text("EHLO mx.far.test");
  await smtp.text("MAIL FROM:<>");
  await smtp.text("RCPT TO:<b-aa@rp.test>");
  await smtp.text("DATA");
  const line = `${"x".repeat(998)}\r\n`;
  expect(await smtp.text(`Subject: x\r\n\r\n${line.repeat(5_000)}.`)).toMatch(/^250 /);
  expect(taken.map(({ mail }) => mail.length)).toEqual([keptBytes]);
  expect(taken[0]?.mail.toString("latin1", 0, 20)).toBe("Subject: x\r\n\r\nxxxxxx");
});

test("a report larger than any is refused, by its announced size and by its real one", async () => {
  const { taken, client } = await start();
  const smtp = await client();
  await smtp.text("EHLO mx.far.test");
  expect(await smtp.text(`MAIL FROM:<> SIZE=${maxReportBytes + 1}`)).toMatch(/^552 5\.3\.4/);
  await smtp.text("MAIL FROM:<>");
  await smtp.text("RCPT TO:<b-aa@rp.test>");
  await smtp.text("DATA");
  const megabyte = `${"x".repeat(998)}\r\n`.repeat(1_000);
  for (let sent = 0; sent <= maxReportBytes; sent += megabyte.length) smtp.send(megabyte);
  expect(await smtp.text(".")).toMatch(/^552 5\.3\.4/);
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
  await smtp.text("RCPT TO:<b-aa@rp.test>");
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

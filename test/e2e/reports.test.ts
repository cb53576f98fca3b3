// What comes back, from the outside: a message is delivered, the receiver reports later, to our port 25, what became
// of it; the event, the suppression and the next refusal follow. And what nobody may do there.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePort, type Appliance } from "../support/appliance.ts";
import { arfMail, dsnMail } from "../support/reports.ts";
import { connectSmtp, type SmtpClient } from "../support/smtp-client.ts";
import { startSending, type Sending } from "../support/sending.ts";
import type { Receiver } from "../support/smtp-receiver.ts";

const port = await freePort();
let sending: Sending;
let receiver: Receiver;
let svc: Appliance;
let key: string;

beforeAll(async () => {
  sending = await startSending("far.test", { address: "127.0.0.21", port }, { outbound: { retry: ["1s"] } });
  ({ receiver, svc, key } = sending);
});
afterAll(() => sending?.stop());

const send = (to: string) =>
  svc.api(key, "POST", "/v1/messages", { from: "shop@ok.test", to, subject: "Your order", text: "Hi" });
interface Shown {
  event: string;
  data: Record<string, unknown>;
}
const eventsOf = async (id: string): Promise<Shown[]> =>
  (await svc.admin("GET", `/v1/events?message_id=${id}`)).json.data;
/** Sent and delivered: its id, and the return path that the receiver saw. */
async function delivered(to: string): Promise<{ id: string; returnPath: string }> {
  const { json } = await send(to);
  await eventually(
    async () => ((await eventsOf(json.id)).length > 0 ? true : null),
    undefined,
    "the delivery",
  );
  const mail = receiver.mails.find(({ rcptTo }) => rcptTo.includes(to));
  return { id: json.id, returnPath: mail?.mailFrom ?? "" };
}
async function port25(): Promise<SmtpClient> {
  const client = await connectSmtp({ port: svc.inboundPort });
  await client.answer();
  await client.command("EHLO mx.far.test");
  return client;
}
async function report(to: string, mail: string): Promise<string> {
  const client = await port25();
  const { text } = await client.submit("", [to], `${mail.replace(/^\./gm, "..")}\r\n.\r\n`);
  client.end();
  return text;
}

test("a DSN for a delivered message bounces it once, suppresses, and the next send is refused", async () => {
  const { id, returnPath } = await delivered("ann@far.test");
  expect(returnPath).toMatch(/^b\+[a-z2-7]+@bounce\.ok\.test$/);
  const mail = dsnMail({ to: returnPath, recipient: "ann@far.test" });
  expect(await report(returnPath, mail)).toMatch(/^250 2\.0\.0/);
  expect(await report(returnPath, mail)).toMatch(/^250 2\.0\.0/);
  const events = await eventsOf(id);
  expect(events.map(({ event }) => event)).toEqual(["message.delivered", "message.bounced"]);
  expect(events[1]?.data).toMatchObject({
    bounce_type: "hard",
    bounce_classification: "invalid_recipient",
    source: "dsn",
    suppressed: true,
  });
  const record = (await svc.api(key, "GET", `/v1/messages/${id}`)).json;
  expect(record).toMatchObject({
    status: "bounced",
    recipients: [{ smtp_code: "550", smtp_status: "5.1.1" }],
  });
  const again = await send("Ann@FAR.test");
  expect(again.status).toBe(422);
  expect(again.json).toMatchObject({
    code: "recipient_suppressed",
    suppressed_recipients: [{ reason: "hard_bounce" }],
  });
});

test("a complaint to the address of a feedback loop names the loop and suppresses", async () => {
  const { id, returnPath } = await delivered("bob@far.test");
  const to = "fbl+yahoo@mail.svc.test";
  const returned = [`Return-Path: <${returnPath}>`, "Subject: Your order"];
  expect(await report(to, arfMail({ to, returned }))).toMatch(/^250 /);
  const [, complained] = await eventsOf(id);
  expect(complained).toMatchObject({
    event: "message.complained",
    data: { to: "bob@far.test", complaint_source: "yahoo", complaint_type: "abuse" },
  });
  expect((await send("bob@far.test")).json).toMatchObject({
    suppressed_recipients: [{ reason: "complaint" }],
  });
  const record = (await svc.api(key, "GET", `/v1/messages/${id}`)).json;
  expect(record.recipients[0].complained_at).toMatch(/Z$/);
});

test("port 25 does not relay, takes no forged return path, and answers no mail", async () => {
  const { id, returnPath } = await delivered("cid@far.test");
  const mails = receiver.mails.length;
  const client = await port25();
  await client.command("MAIL FROM:<eve@far.test>");
  for (const to of [
    "ann@far.test",
    "info@mail.svc.test",
    `x${returnPath}`,
    returnPath.replace(/(.)@/, (_, c) => `${c === "a" ? "b" : "a"}@`),
  ])
    expect(await client.text(`RCPT TO:<${to}>`)).toMatch(/^550 5\.7\.1 /);
  client.end();
  expect(
    await report(
      returnPath,
      "From: cid@far.test\r\nSubject: Re: Your order\r\nAuto-Submitted: auto-replied\r\n\r\nAway.",
    ),
  ).toMatch(/^250 /);
  expect(await eventsOf(id)).toHaveLength(1);
  expect(receiver.mails).toHaveLength(mails);
});

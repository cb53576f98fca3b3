// Attacks on port 25 of the built program, without credentials: complaints forged by what an outsider can know, bounces
// of co-recipients, and a flood beside which honest reports get through.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePort, type Appliance } from "../support/appliance.ts";
import { arfMail, dsnMail } from "../support/reports.ts";
import { connectSmtp } from "../support/smtp-client.ts";
import { startSending, type Sending } from "../support/sending.ts";
import type { Receiver } from "../support/smtp-receiver.ts";

const port = await freePort();
const loop = "127.0.0.33";
const flooder = "127.0.0.34";
let sending: Sending;
let receiver: Receiver;
let svc: Appliance;
let key: string;

beforeAll(async () => {
  sending = await startSending(
    "far.test",
    { address: "127.0.0.23", port },
    {
      records: {
        "33.0.0.127.in-addr.arpa": { PTR: ["mx.loop.test"] },
        "mx.loop.test": { A: [loop] },
        // Says that it is the loop; the loop does not say so.
        "34.0.0.127.in-addr.arpa": { PTR: ["mx.loop.test"] },
      },
      outbound: { retry: ["1s"] },
      config: { feedback: { loops: ["loop.test"] } },
    },
  );
  ({ receiver, svc, key } = sending);
});
afterAll(() => sending?.stop());

interface Sent {
  id: string;
  messageIdHeader: string;
  /** By recipient. */
  returnPaths: string[];
}
async function delivered(...to: string[]): Promise<Sent> {
  const body = { from: "shop@ok.test", to, subject: "Your order", text: "Hi" };
  const { json } = await svc.api(key, "POST", "/v1/messages", body);
  await eventually(
    async () => ((await eventsOf(json.id)).length >= to.length ? true : null),
    15_000,
    "the delivery",
  );
  const returnPaths = to.map(
    (one) => receiver.mails.find(({ rcptTo }) => rcptTo.includes(one))?.mailFrom ?? "",
  );
  return { id: json.id, messageIdHeader: json.message_id_header, returnPaths };
}
const eventsOf = async (id: string): Promise<{ event: string; data: Record<string, unknown> }[]> =>
  (await svc.admin("GET", `/v1/events?message_id=${id}`)).json.data;
const complaintsOf = async (id: string): Promise<unknown[]> =>
  (await eventsOf(id)).filter(({ event }) => event === "message.complained").map(({ data }) => data["to"]);
const isSuppressed = async (email: string): Promise<boolean> =>
  (await svc.api(key, "GET", `/v1/suppressions/${email}`)).status === 200;
async function report(to: string, mail: string, from = flooder): Promise<string> {
  const client = await connectSmtp({ port: svc.inboundPort, localAddress: from });
  await client.answer();
  await client.command("EHLO mx.loop.test");
  const { text } = await client.submit("", [to], `${mail.replace(/^\./gm, "..")}\r\n.\r\n`);
  client.end();
  return text;
}
const fbl = "fbl@mail.svc.test";
const complain = (returned: string[], lines: string[] = [], from = flooder) =>
  report(fbl, arfMail({ to: fbl, returned, report: lines }), from);

test("ids of others cannot be distinguished from the own ones, and one that is known proves nothing", async () => {
  const ids = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => {
      const body = { from: "shop@ok.test", to: `v${n}@far.test`, subject: "Your order", text: "Hi" };
      return String((await svc.api(key, "POST", "/v1/messages", body)).json.id);
    }),
  );
  expect(new Set(ids.map((id) => id.slice(14, 22))).size, "the upper random half is fresh too").toBe(20);
  const { id, messageIdHeader } = await delivered("known@far.test");
  expect(messageIdHeader).toMatch(/^<[0-9a-z]{26}\.[a-z2-7]{16}@mail\.svc\.test>$/);
  for (const line of [`Message-ID: <${id.slice(4)}@mail.svc.test>`, `Received: by mail.svc.test id ${id}; x`])
    for (const from of [flooder, loop])
      expect(await complain([line], ["Original-Rcpt-To: known@far.test"], from)).toMatch(/^250 /);
  expect(await complaintsOf(id)).toEqual([]);
  expect(await isSuppressed("known@far.test")).toBe(false);
});

test("a co-recipient's complaint in the name of another is reported and does not suppress, by whatever it comes", async () => {
  const { id, messageIdHeader } = await delivered("eve@far.test", "victim@far.test");
  for (const from of [flooder, loop])
    await complain([`Message-ID: ${messageIdHeader}`], ["Original-Rcpt-To: victim@far.test"], from);
  expect(await complaintsOf(id)).toEqual(["victim@far.test"]);
  expect(await isSuppressed("victim@far.test")).toBe(false);
});

test("a forged reverse name or signature is not a known loop, the true one is", async () => {
  const { id, messageIdHeader } = await delivered("only@far.test");
  const mail = arfMail({ to: fbl, returned: [`Message-ID: ${messageIdHeader}`], from: "fbl@loop.test" });
  const signed = `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=loop.test; s=s1; h=from; bh=AAAA; b=AAAA\r\n${mail}`;
  for (const forged of [mail, signed]) expect(await report(fbl, forged)).toMatch(/^250 /);
  expect(await complaintsOf(id)).toEqual(["only@far.test"]);
  expect(await isSuppressed("only@far.test")).toBe(false);
  expect(await report(fbl, mail, loop)).toMatch(/^250 /);
  expect(await isSuppressed("only@far.test")).toBe(true);
});

test("a return path bounces its own recipient and no co-recipient", async () => {
  const { id, returnPaths } = await delivered("mallory@far.test", "target@far.test");
  const [own = ""] = returnPaths;
  expect(await report(own, dsnMail({ to: own, recipient: "target@far.test" }))).toMatch(/^250 /);
  const bounced = (await eventsOf(id)).filter(({ event }) => event === "message.bounced");
  expect(bounced.map(({ data }) => [data["to"], data["suppressed"]])).toEqual([["mallory@far.test", false]]);
  expect([await isSuppressed("target@far.test"), await isSuppressed("mallory@far.test")]).toEqual([
    false,
    false,
  ]);
});

test("while one source floods port 25 its mail is refused with the limit, and honest bounces and loops get through", async () => {
  const { id, returnPaths } = await delivered("honest@far.test");
  const [path = ""] = returnPaths;
  const flood = Array.from({ length: 15 }, async () => {
    const client = await connectSmtp({ port: svc.inboundPort, localAddress: flooder });
    await client.answer();
    await client.command("EHLO x.test");
    const replies: string[] = [];
    for (let n = 0; n < 60; n++) {
      replies.push(await client.text("MAIL FROM:<>"));
      await client.text("RSET");
    }
    client.end();
    return replies;
  });
  const replies = (await Promise.all(flood)).flat();
  expect(replies.filter((reply) => reply.startsWith("250")).length).toBeLessThanOrEqual(600);
  expect(replies.at(-1)).toMatch(
    /^451 4\.7\.0 The limit of 600 mails a minute from 127\.0\.0\.34 is reached; try again in \d+ seconds$/,
  );
  const client = await connectSmtp({ port: svc.inboundPort, localAddress: flooder });
  await client.answer();
  await client.command("EHLO x.test");
  expect(await client.text("MAIL FROM:<>")).toMatch(/^451 4\.7\.0 /);
  client.end();
  expect(await report(path, dsnMail({ to: path, recipient: "honest@far.test" }), "127.0.0.35")).toMatch(
    /^250 /,
  );
  expect((await eventsOf(id)).map(({ event }) => event)).toContain("message.bounced");
});

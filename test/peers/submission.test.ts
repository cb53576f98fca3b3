// Mail programs of the world at each port of the relay, ten mails of different shapes by each, and their bytes as
// a Postfix receives them: equal but for what is documented to come on top and to go.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dkimVerify } from "mailauth";
import PostalMime from "postal-mime";
import { eventually, freePorts, startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { missingClients, startMailClients, type Listener, type MailClient } from "../support/mail-clients.ts";
import { missingPeers, startPostfix, type Postfix } from "../support/peers.ts";
import { publish } from "../support/publish.ts";
import { keptFields, mailOf, shapes, type Shape } from "../support/shapes.ts";

const missing = missingPeers() ?? (missingClients().join(", ") || null);
if (missing && process.env["CI"]) throw new Error(`tests with real mail clients cannot run: ${missing}`);
if (missing) console.warn(`SKIPPED: tests with real mail clients: ${missing}`);

const listenerNames = ["587", "2525", "465"] as const;
const programs = [
  "swaks",
  "msmtp",
  "curl",
  "Python smtplib",
  "nodemailer (pooled)",
  "Postfix as a null client",
  "Exim as a smart-host client",
  "git send-email",
];

describe.skipIf(missing !== null)("mail programs", () => {
  let dns: DnsServer;
  let postfix: Postfix;
  let narrow: Postfix;
  let svc: Appliance;
  let clients: MailClient[];
  let listeners: Listener[];

  beforeAll(async () => {
    const [a = 0, b = 0, c = 0, port = 0] = await freePorts(4);
    listeners = [a, b, c].map((at, i) => ({ name: listenerNames[i] ?? "", port: at, implicitTls: i === 2 }));
    dns = await startDnsServer({
      "narrow.test": { MX: ["10 mx.narrow.test"] },
      "mx.narrow.test": { A: ["127.0.0.32"] },
      "one.test": { MX: ["10 mx.one.test"] },
      "mx.one.test": { A: ["127.0.0.31"] },
    });
    postfix = await startPostfix({
      address: "127.0.0.31",
      port,
      domain: "one.test",
      hostname: "mx.one.test",
    });
    narrow = await startPostfix({
      address: "127.0.0.32",
      port,
      domain: "narrow.test",
      hostname: "mx.narrow.test",
      without: ["8bitmime", "smtputf8"],
    });
    svc = await startAppliance({
      config: {
        dns: { servers: [dns.server] },
        relay: { starttls: [`127.0.0.1:${a}`, `127.0.0.1:${b}`], implicit_tls: [`127.0.0.1:${c}`] },
        outbound: { port, allow_networks: ["127.0.0.0/8"] },
      },
    });
    await publish(svc, dns, "ok.test");
    const login = (await svc.admin("POST", "/v1/smtp_credentials", { name: "clients", test: false })).json;
    clients = await startMailClients(login, listeners);
    expect(clients.map(({ name }) => name)).toEqual(programs);
  });

  afterAll(async () => {
    for (const client of clients ?? []) await client.stop();
    await svc?.stop();
    await Promise.all([postfix?.stop(), narrow?.stop(), dns?.stop()]);
  });

  const cases = programs.flatMap((program) => listenerNames.map((listener) => [program, listener] as const));
  test.each(cases)("%s at %s: ten mails of different shapes", async (program, listenerName) => {
    const client = clients.find(({ name }) => name === program);
    const listener = listeners.find(({ name }) => name === listenerName);
    if (!client || !listener) throw new Error("no such client or listener");
    const recipients = shapes.map((_, i) =>
      `${program.replace(/\W+/g, "-")}-${listenerName}-${i}@one.test`.toLowerCase(),
    );
    for (const [i, shape] of shapes.entries()) {
      const to = recipients[i] ?? "";
      const { taken, said } = await client.send({ listener, from: shape.from, to, mail: mailOf(shape) });
      expect(taken, `${shape.name}\n${said}`).toBe(shape.refused === undefined);
      if (shape.refused) expect(said.replace(/\s+/g, " ")).toMatch(shape.refused);
      else expect(said).not.toMatch(/executable|not verified/);
    }
    for (const [i, shape] of shapes.entries()) {
      if (shape.refused) continue;
      const to = recipients[i] ?? "";
      const received = await eventually(
        async () => postfix.mails().find((mail) => mail.includes(`X-Original-To: ${to}\n`)),
        20_000,
        `${shape.name} at Postfix\n${postfix.log().slice(-2_000)}`,
      );
      await expectSame(received, shape, client);
    }
    const all = postfix
      .mails()
      .filter((mail) => recipients.some((to) => mail.includes(`X-Original-To: ${to}\n`)));
    expect(all).toHaveLength(shapes.filter(({ refused }) => refused === undefined).length);
  });

  const wide = "From: Shop <shop@ok.test>\r\nTo: =?UTF-8?Q?=C3=84?= <ann@one.test>\r\n";
  const mime =
    "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n";
  test.each([
    [
      "8-bit text",
      "narrow.test",
      `${wide}Subject: 8bit\r\n${mime}\r\n`,
      "Grüße aus Köln, mit besten Wünschen",
    ],
    ["a raw UTF-8 subject", "narrow.test", `${wide}Subject: Grüße\r\n${mime}\r\n`, "plain"],
    ["a line of 1 MB", "one.test", `${wide}Subject: long\r\n${mime}\r\n`, "wörd ".repeat(200_000)],
    ["8-bit text that may stay as it is", "one.test", `${wide}Subject: 8bit\r\n${mime}\r\n`, "Grüße\r\n  x"],
  ])(
    "%s at %s reads the same, and both signatures verify behind Postfix",
    async (name, domain, header, text) => {
      const client = clients.find((one) => one.name === "Python smtplib");
      const [listener] = listeners;
      if (!client || !listener) throw new Error("no such client or listener");
      const to = `${name.replace(/\W+/g, "-").toLowerCase()}@${domain}`;
      const mail = Buffer.from(`${header}${text}\r\n`);
      const { taken, said } = await client.send({ listener, from: "shop@ok.test", to, mail });
      expect(taken, said).toBe(true);
      const server = domain === "one.test" ? postfix : narrow;
      const received = await eventually(
        async () => server.mails().find((one) => one.includes(`X-Original-To: ${to}\n`)),
        20_000,
        `${name} at Postfix\n${server.log().slice(-2_000)}`,
      );
      const [sent, got] = [await PostalMime.parse(mail), await PostalMime.parse(received)];
      expect([got.subject, got.text?.trim(), got.from]).toEqual([sent.subject, sent.text?.trim(), sent.from]);
      // oxlint-disable-next-line no-control-regex
      if (domain === "narrow.test") expect(received.toString("latin1")).toMatch(/^[\x00-\x7f]*$/);
      const crlf = Buffer.from(received.toString("latin1").replaceAll("\n", "\r\n"), "latin1");
      const { results } = await dkimVerify(crlf, { resolver: (at, type) => publishedBy(svc, at, type) });
      expect(results.map(({ algo, status }) => `${algo} ${status.result}`).toSorted()).toEqual([
        "ed25519-sha256 pass",
        "rsa-sha256 pass",
      ]);
    },
  );
});

/** The records that the appliance says to publish, as DNS would answer. */
async function publishedBy(svc: Appliance, name: string, type: string): Promise<string[][]> {
  const { json } = await svc.admin("GET", "/v1/domains/ok.test");
  const found = json.records.filter(
    (record: { name: string; type: string }) => record.name === name && record.type === type,
  );
  if (found.length === 0) throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
  return found.map((record: { value: string }) => [record.value]);
}

async function expectSame(received: Buffer, shape: Shape, { exact, loose, name }: MailClient): Promise<void> {
  const text = received.toString("utf8").replaceAll("\n", "\r\n");
  const end = text.indexOf("\r\n\r\n") + 2;
  const fields = text
    .slice(0, end)
    .split(/\r\n(?![ \t])/)
    .slice(0, -1);
  const ours = fields.findIndex((field) => /^Received: .*by mail\.svc\.test/s.test(field));
  expect(ours, text).toBeGreaterThan(0);
  expect(fields.slice(0, ours).filter((field) => field.startsWith("DKIM-Signature:"))).toHaveLength(2);
  // Behind our Received stands our message token (mail/message-token.ts).
  expect(fields[ours + 1]).toMatch(/^X-Feedback-Token: [0-9a-z]{26}\.[a-z2-7]{16}$/);
  const came = fields.slice(ours + 2);
  expect(text.toLowerCase()).not.toMatch(/^(?:bcc|x-svc-)/m);
  const sent = keptFields(shape);
  const body = text.slice(end + 2);
  if (shape.encoded) {
    const parsed = await PostalMime.parse(received);
    expect(parsed.html?.trim()).toBe(shape.body.trim());
    expect(Math.max(...text.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(998);
    return;
  }
  expect(loose ? body.trimEnd() : body).toBe(loose ? shape.body.trimEnd() : shape.body);
  if (exact) expect(came).toEqual(sent);
  // The others add fields of their own, and git writes the usual ones again.
  else if (name !== "git send-email") expect(came.filter((field) => sent.includes(field))).toEqual(sent);
  else expect(came.join("\r\n")).toContain("shop@ok.test");
}

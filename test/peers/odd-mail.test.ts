// Two hundred odd mails (support/odd-mail.ts), submitted by SMTP and REST, to Postfix, Exim, OpenSMTPD and Haraka and to a
// Postfix that takes ASCII alone. What each holds is held against what a recording receiver with the same EHLO
// keywords was sent of the same message, octet for octet below the trace fields; then four verifiers judge the signatures.
import { domainToASCII } from "node:url";
import PostalMime from "postal-mime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, freePort, startAppliance, type Appliance } from "../support/appliance.ts";
import { verifiers } from "../support/dkim-verifiers.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { startExim } from "../support/exim.ts";
import { startHaraka } from "../support/haraka.ts";
import { oddMails, type OddMail } from "../support/odd-mail.ts";
import {
  missingPeers,
  serveOnPort53,
  startOpenSmtpd,
  startPostfix,
  type MailServer,
} from "../support/peers.ts";
import { publish } from "../support/publish.ts";
import { connectSmtp, type SmtpClient } from "../support/smtp-client.ts";
import { startReceiver, type Receiver } from "../support/smtp-receiver.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: odd mails to real receivers: ${missing}`);

const port = await freePort();
/** Each peer, and the recording receiver that is offered the same. */
const peers = [
  { name: "postfix", start: startPostfix, wire: "all" },
  { name: "exim", start: startExim, wire: "all" },
  { name: "haraka", start: startHaraka, wire: "all" },
  { name: "opensmtpd", start: startOpenSmtpd, wire: "8bitmime" },
  {
    name: "postfix-ascii",
    start: startPostfix,
    wire: "ascii",
    without: ["8bitmime", "smtputf8", "chunking"],
  },
] as const;
const wires = [
  { name: "all", options: {} },
  { name: "8bitmime", options: { smtpUtf8: false } },
  { name: "ascii", options: { smtpUtf8: false, eightBit: false } },
] as const;
const names = [...peers, ...wires].map(({ name }) => name);
const domains = names.map((name) => `${name}.test`);
const takesUtf8 = new Set(["postfix", "exim", "haraka", "all"]);
/** What a receiver puts on top: RFC 5321 §4.4, and what mailboxes add. */
const trace = /^(?:Return-Path|X-Original-To|Delivered-To|Received):/i;
/** What svc puts on top of a mail by SMTP. */
const ours = /^(?:DKIM-Signature|Received|X-Feedback-Token):/;

interface Sent extends OddMail {
  /** Public id without its prefix; what was said where it was refused. */
  id: string;
  refused: string | null;
}

describe.skipIf(missing !== null)("two hundred odd mails", () => {
  const stops: (() => Promise<void>)[] = [];
  const servers = new Map<string, MailServer>();
  const recorded = new Map<string, Receiver>();
  let dns: DnsServer;
  let port53: { address: string; stop(): Promise<void> };
  let svc: Appliance;
  let sent: Sent[];

  beforeAll(async () => {
    dns = await startDnsServer();
    stops.push(() => dns.stop());
    port53 = await serveOnPort53(dns.port);
    stops.push(() => port53.stop());
    const places = names.map((name, i) => {
      const [domain, address] = [`${name}.test`, `127.0.0.${141 + i}`];
      dns.set(domain, "MX", [`10 mx.${domain}`]);
      dns.set(`mx.${domain}`, "A", [address]);
      return { domain, address, port, hostname: `mx.${domain}` };
    });
    await Promise.all([
      ...peers.map(async ({ name, start, ...more }, i) => {
        const without = "without" in more ? { without: [...more.without] } : {};
        const server = await start({ ...(places[i] as (typeof places)[number]), ...without });
        stops.push(() => server.stop());
        servers.set(name, server);
      }),
      ...wires.map(async ({ name, options }, i) => {
        const { address = "" } = places[peers.length + i] ?? {};
        const receiver = await startReceiver({ address, port, ...options });
        stops.push(() => receiver.stop());
        recorded.set(name, receiver);
      }),
    ]);
    svc = await startAppliance({
      config: {
        dns: { servers: [dns.server] },
        outbound: { port, allow_networks: ["127.0.0.0/8"], retry: ["1s"] },
      },
    });
    stops.push(() => svc.stop());
    await publish(svc, dns, "ok.test");
    sent = await sendAll(svc);
    await settled(svc);
  });

  afterAll(async () => {
    await Promise.all(stops.map((stop) => stop()));
  });

  const mailsOf = (receiver: string): Map<string, Buffer[]> =>
    byId(recorded.get(receiver)?.mails.map(({ data }) => data) ?? [], sent);
  const heldBy = async (name: string): Promise<Map<string, Buffer[]>> => {
    const server = servers.get(name);
    if (!server) throw new Error(`${name} is not started`);
    const expected = sent.reduce((sum, mail) => sum + takenBy(mail, name), 0);
    const mails = await eventually(
      async () => {
        const found = server.mails();
        return found.length >= expected ? found : null;
      },
      60_000,
      `${expected} mails at ${name}\n${server.log().slice(-5_000)}`,
    );
    return byId(mails, sent);
  };

  test("each is accepted", () => {
    expect(sent.length).toBeGreaterThanOrEqual(200);
    expect(sent.flatMap(({ name, refused }) => (refused === null ? [] : [`${name}: ${refused}`]))).toEqual(
      [],
    );
  });

  test.each(peers)("$name holds each as it was sent, once a recipient", async ({ name, wire }) => {
    const recordings = mailsOf(wire);
    const held = await heldBy(name);
    const faults = sent.flatMap((mail) => {
      const copies = held.get(mail.id) ?? [];
      const [original] = recordings.get(mail.id) ?? [];
      if (copies.length !== takenBy(mail, name)) return [`${mail.name}: ${copies.length} copies`];
      if (copies.length > 0 && !original) return [`${mail.name}: was never recorded`];
      return copies.flatMap((copy) => (original ? differences(mail.name, copy, original) : []));
    });
    expect(faults).toEqual([]);
  });

  test("an address that a receiver cannot take bounces, and no other", async () => {
    const faults: string[] = [];
    for (const mail of sent) {
      const { recipients } = (await svc.admin("GET", `/v1/messages/msg_${mail.id}`)).json;
      for (const { email, status } of recipients as { email: string; status: string }[]) {
        const name = names[domains.indexOf(email.slice(email.lastIndexOf("@") + 1))] ?? "";
        const expected = refuses(mail, name) ? "bounced" : "delivered";
        if (status !== expected) faults.push(`${mail.name}: ${status} at ${name}`);
      }
    }
    expect(faults).toEqual([]);
  });

  test("a mail by SMTP leaves as it was submitted, below what is put on top", () => {
    const recordings = mailsOf("all");
    const faults = sent.flatMap(({ name, id, data, changed }) => {
      const [wire] = recordings.get(id) ?? [];
      if (!data || !wire || changed) return [];
      return differences(name, wire, data, ours);
    });
    expect(faults).toEqual([]);
  });

  test("the form in ASCII is ASCII and reads as the mail does", async () => {
    const [originals, converted] = [mailsOf("all"), mailsOf("ascii")];
    const faults: string[] = [];
    let differing = 0;
    for (const { id, name } of sent) {
      const [original, ascii] = [originals.get(id)?.[0], converted.get(id)?.[0]];
      if (!original || !ascii || original.equals(ascii)) continue;
      differing += 1;
      if (ascii.some((octet) => octet > 127)) faults.push(`${name}: is not ASCII`);
      const [was, is] = [await reading(original), await reading(ascii)];
      if (was !== is) faults.push(`${name}: ${was}\nbecame ${is}`);
    }
    expect(faults).toEqual([]);
    expect(differing).toBeGreaterThan(15);
  });

  test.each(verifiers)(
    "$name verifies each as the receivers hold it, and none that was changed",
    async (verifier) => {
      const held = await Promise.all(peers.map(({ name }) => heldBy(name)));
      const copies = sent.map(({ id }, i) => {
        const turns = [...held.slice(i % held.length), ...held.slice(0, i % held.length)];
        return crlf(turns.map((at) => at.get(id)?.[0]).find((copy) => copy !== undefined) ?? Buffer.alloc(0));
      });
      const changed = copies.slice(0, 5).map((mail) => Buffer.concat([mail, Buffer.from("changed\r\n")]));
      const from = { domain: "ok.test", dnsPort: dns.port, dnsAddress: port53.address };
      const verdicts = await verifier.verify([...copies, ...changed], from);
      const faults = sent.flatMap(({ name }, i) =>
        String(verdicts[i]) === String(verifier.good) ? [] : [`${name}: ${String(verdicts[i])}`],
      );
      expect(faults).toEqual([]);
      for (const verdict of verdicts.slice(copies.length)) {
        expect(verdict).toHaveLength(verifier.good.length);
        expect(verdict.filter((said) => said.endsWith(" pass"))).toEqual([]);
      }
    },
  );
});

/** The receivers that refuse an address of the mail. */
function refuses({ utf8Addresses, locals }: OddMail, name: string): boolean {
  if (utf8Addresses && !takesUtf8.has(name)) return true;
  return name === "opensmtpd" && locals.some((local) => local.startsWith('"'));
}

/** How many copies of the mail the peer holds. */
function takenBy(mail: OddMail, name: string): number {
  return refuses(mail, name) ? 0 : recipientsAt(mail, `${name}.test`).length;
}

/** Resolves once no recipient waits. */
async function settled(svc: Appliance): Promise<void> {
  await eventually(
    async () => {
      const { scheduled, queued, deferred, sending } = (await svc.admin("GET", "/v1/status")).json.queue;
      return scheduled + queued + deferred + sending === 0;
    },
    120_000,
    "an empty queue",
  );
}

function recipientsAt({ locals, spread }: OddMail, domain: string): string[] {
  if (spread === undefined) return locals.map((local) => `${local}@${domain}`);
  return Array.from({ length: spread }, (_, i) => i)
    .filter((i) => domains[i % domains.length] === domain)
    .map((i) => `${locals[0]}-${i}@${domain}`);
}

/** Submits all, a few at a time. */
async function sendAll(svc: Appliance): Promise<Sent[]> {
  const { key } = (await svc.admin("POST", "/v1/keys", { name: "odd", scope: "admin" })).json;
  const login = (await svc.admin("POST", "/v1/smtp_credentials", { name: "odd", test: false })).json;
  const waiting = oddMails();
  const sent: Sent[] = [];
  const worker = async (): Promise<void> => {
    const client = await connectSmtp({ port: svc.starttlsPort });
    await client.answer();
    await client.startTls();
    const plain = Buffer.from(`\0${login.username}\0${login.password}`).toString("base64");
    await client.command(`AUTH PLAIN ${plain}`);
    for (let mail = waiting.shift(); mail; mail = waiting.shift()) {
      const said = mail.data ? await submit(client, mail, mail.data) : await post(svc, key, mail);
      const id = /msg_([0-9a-z]{26})/.exec(said)?.[1];
      sent.push({ ...mail, id: id ?? "", refused: id === undefined ? said : null });
    }
    client.end();
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  return sent;
}

async function submit(client: SmtpClient, mail: OddMail, data: Buffer): Promise<string> {
  const to = domains.flatMap((domain) => recipientsAt(mail, domain));
  const lines = [
    `MAIL FROM:<${mail.from}@ok.test> BODY=8BITMIME${mail.utf8Addresses ? " SMTPUTF8" : ""}`,
    ...to.map((address) => `RCPT TO:<${address}>`),
    "DATA",
  ];
  client.send(lines.map((line) => `${line}\r\n`).join(""));
  const answers = await client.answers(lines.length);
  const refusal = answers.find(({ code }) => code >= 400);
  if (refusal) {
    if (answers.at(-1)?.code === 354) {
      client.send("\r\n.\r\n");
      await client.answer();
    }
    await client.command("RSET");
    return refusal.text;
  }
  client.send(Buffer.concat([stuffed(data), Buffer.from(".\r\n")]));
  return (await client.answer()).text;
}

/** RFC 5321 §4.5.2. */
function stuffed(data: Buffer): Buffer {
  return Buffer.from(data.toString("latin1").replace(/^\./gm, ".."), "latin1");
}

async function post(svc: Appliance, key: string, mail: OddMail): Promise<string> {
  const to = domains.flatMap((domain) => recipientsAt(mail, domain));
  return (await svc.api(key, "POST", "/v1/messages", { from: `${mail.from}@ok.test`, to, ...mail.request }))
    .text;
}

/** The mails of each message, by its id, which stands in a field of each. */
function byId(mails: Buffer[], sent: Sent[]): Map<string, Buffer[]> {
  const found = new Map(sent.map(({ id }) => [id, [] as Buffer[]]));
  for (const mail of mails) {
    const ids = mail.toString("latin1", 0, 32_768).match(/\b[0-9a-z]{26}\b/g) ?? [];
    const id = ids.find((one) => found.has(one));
    if (id === undefined)
      throw new Error(`a mail of no message:\n${mail.toString("latin1").slice(0, 2_000)}`);
    found.get(id)?.push(mail);
  }
  return found;
}

/** How the mail is not what it was, but for fields on top of it; mailboxes keep LF. */
function differences(name: string, copy: Buffer, original: Buffer, onTop = trace): string[] {
  const text = crlf(copy).toString("latin1");
  const wanted = original.toString("latin1");
  const top = text
    .slice(0, -wanted.length)
    .split(/\r\n(?![ \t])/)
    .slice(0, -1);
  if (text.endsWith(wanted) && top.every((field) => onTop.test(field))) return [];
  let at = 0;
  while (at < wanted.length && text.at(-1 - at) === wanted.at(-1 - at)) at++;
  const around = (from: string): string => JSON.stringify(from.slice(-at - 60).slice(0, 120));
  return [`${name}: ${around(wanted)} became ${around(text)}`];
}

/** Mailboxes keep LF; the wire had CRLF. */
function crlf(mail: Buffer): Buffer {
  return mail.includes("\r\n")
    ? mail
    : Buffer.from(mail.toString("latin1").replaceAll("\n", "\r\n"), "latin1");
}

/** What a mail program shows of the mail. It ends a leaf that is not encoded with one more line end, so those count once. */
async function reading(mail: Buffer): Promise<string> {
  const shown = (text: string | undefined) => text?.replace(/(?:\r?\n)+/g, "\n").trimEnd();
  const { from, to, subject, text, html, attachments } = await PostalMime.parse(mail);
  const files = attachments.map(({ filename, content }) => [
    filename,
    shown(Buffer.from(content as ArrayBuffer).toString("latin1")),
  ]);
  const parties = JSON.stringify({ from, to }).replace(
    /@([^"]+)"/g,
    (_, domain: string) => `@${domainToASCII(domain)}"`,
  );
  return [parties, subject, shown(text), shown(html), ...files].join("\n");
}

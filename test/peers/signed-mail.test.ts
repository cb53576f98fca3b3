// Mail whose lines no server may pass on as they are: what takes it, what leaves, and that both signatures still verify
// behind a real Postfix, which breaks longer lines than SMTP has (RFC 5321 §4.5.3.1.6), as four verifiers see it.
import PostalMime from "postal-mime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, freePorts, startAppliance, type Appliance } from "../support/appliance.ts";
import { verifiers } from "../support/dkim-verifiers.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { missingPeers, serveOnPort53, startPostfix, type Postfix } from "../support/peers.ts";
import { publish } from "../support/publish.ts";
import { connectSmtp } from "../support/smtp-client.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: signed mail behind a real Postfix: ${missing}`);

describe.skipIf(missing !== null)("behind Postfix", () => {
  let dns: DnsServer;
  let port53: { address: string; stop(): Promise<void> };
  let postfix: Postfix;
  let svc: Appliance;
  let key: string;
  let login: { username: string; password: string };

  beforeAll(async () => {
    const address = "127.0.0.151";
    const [port = 0] = await freePorts(1, address);
    dns = await startDnsServer({ "one.test": { MX: ["10 mx.one.test"] }, "mx.one.test": { A: [address] } });
    port53 = await serveOnPort53(dns.port);
    postfix = await startPostfix({ address, port, domain: "one.test", hostname: "mx.one.test" });
    const outbound = { port, allow_networks: ["127.0.0.0/8"], retry: ["1s"] };
    svc = await startAppliance({ config: { dns: { servers: [dns.server] }, outbound } });
    key = (await svc.admin("POST", "/v1/keys", { name: "test", scope: "admin" })).json.key;
    login = (await svc.admin("POST", "/v1/smtp_credentials", { name: "test", test: false })).json;
    await publish(svc, dns, "ok.test");
  });

  afterAll(async () => {
    await svc?.stop();
    await Promise.all([postfix?.stop(), port53?.stop(), dns?.stop()]);
  });

  const post = (to: string, body: Record<string, unknown>) =>
    svc.api(key, "POST", "/v1/messages", { from: "shop@ok.test", to, subject: "Hello", text: "Hi", ...body });

  /** Over SMTP with STARTTLS; the reply to the dot. */
  async function submit(to: string, mail: Buffer): Promise<string> {
    const client = await connectSmtp({ port: svc.starttlsPort });
    await client.answer();
    await client.startTls();
    const plain = Buffer.from(`\0${login.username}\0${login.password}`).toString("base64");
    await client.command(`AUTH PLAIN ${plain}`);
    await client.command("MAIL FROM:<shop@ok.test> BODY=8BITMIME");
    await client.command(`RCPT TO:<${to}>`);
    await client.command("DATA");
    client.send(Buffer.concat([mail, Buffer.from("\r\n.\r\n")]));
    const { text } = await client.answer();
    client.end();
    return text;
  }

  /** The mail as Postfix keeps it, with the line ends of the wire. */
  async function held(to: string): Promise<Buffer> {
    const mail = await eventually(
      async () => postfix.mails().find((one) => one.includes(`X-Original-To: ${to}\n`)),
      60_000,
      `mail to ${to}\n${postfix.log().slice(-2_000)}`,
    );
    return Buffer.from(mail.toString("latin1").replaceAll("\n", "\r\n"), "latin1");
  }

  /** Each verifier passes the mail, and none passes it with an octet more. */
  async function expectVerified(mail: Buffer): Promise<void> {
    const from = { domain: "ok.test", dnsPort: dns.port, dnsAddress: port53.address };
    const changed = Buffer.concat([mail, Buffer.from("x\r\n")]);
    expect(verifiers).toHaveLength(4);
    for (const { name, good, verify } of verifiers) {
      const [verdict, ofChanged] = await verify([mail, changed], from);
      expect([name, verdict]).toEqual([name, good]);
      expect([name, ofChanged?.filter((said) => said.endsWith(" pass"))]).toEqual([name, []]);
    }
  }

  const longestLine = (mail: Buffer): number =>
    Math.max(
      ...mail
        .toString("latin1")
        .split("\r\n")
        .map((line) => line.length),
    );

  test("8-bit text in a line of 5,000 octets, by SMTP: it leaves in lines of at most 998, reads the same and verifies", async () => {
    const line = "Grüße ".repeat(625);
    expect(Buffer.byteLength(line)).toBe(5_000);
    const header =
      "From: shop@ok.test\r\nTo: ann@one.test\r\nSubject: long\r\nMIME-Version: 1.0\r\n" +
      "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n";
    const said = await submit("ann@one.test", Buffer.from(`${header}${line}\r\nthe next line`));
    expect(said).toMatch(/^250 2\.0\.0 queued/);
    const mail = await held("ann@one.test");
    expect(longestLine(mail)).toBeLessThanOrEqual(998);
    const { text } = await PostalMime.parse(mail);
    expect(text?.trimEnd().replaceAll("\r\n", "\n") === `${line}\nthe next line`).toBe(true);
    await expectVerified(mail);
  });

  test("html of 500 KB in one line, by REST: it leaves in lines of at most 998, reads the same and verifies", async () => {
    const html = `<p>${"<b>wörd</b> ".repeat(38_462)}</p>`;
    expect(Buffer.byteLength(html)).toBeGreaterThan(500_000);
    expect((await post("bob@one.test", { html })).status).toBe(202);
    const mail = await held("bob@one.test");
    expect(longestLine(mail)).toBeLessThanOrEqual(998);
    expect((await PostalMime.parse(mail)).html?.trimEnd() === html).toBe(true);
    await expectVerified(mail);
  });

  test("a List-Unsubscribe with an URL of 900 characters is folded between its items, and four verifiers pass it", async () => {
    const url = `https://shop.example/u?t=${"a".repeat(875)}`;
    expect(url).toHaveLength(900);
    const post1 = { "List-Unsubscribe-Post": "List-Unsubscribe=One-Click" };
    const headers = { "List-Unsubscribe": `<${url}>, <mailto:u@ok.test>`, ...post1 };
    const accepted = await post("cy@one.test", { headers });
    expect(accepted.status, accepted.text).toBe(202);
    const mail = await held("cy@one.test");
    expect(mail.toString("latin1")).toContain(`\r\nList-Unsubscribe: <${url}>,\r\n <mailto:u@ok.test>\r\n`);
    expect(longestLine(mail)).toBeLessThanOrEqual(998);
    await expectVerified(mail);
    const signed = [...mail.toString("latin1").matchAll(/^DKIM-Signature:.*\r\n(?:[ \t].*\r\n)*/gim)];
    expect(signed).toHaveLength(2);
    for (const [field] of signed) {
      const names = /h=([^;]*);/.exec(field)?.[1]?.replace(/\s/g, "").toLowerCase().split(":");
      expect(names).toEqual(expect.arrayContaining(["list-unsubscribe", "list-unsubscribe-post"])); // RFC 8058 §4
    }
    const longer = { "List-Unsubscribe": `<${url}${"a".repeat(99)}>`, ...post1 };
    const refused = await post("cy@one.test", { headers: longer });
    expect([refused.status, refused.json.errors[0].field]).toEqual([422, "headers.List-Unsubscribe"]);
  });
});

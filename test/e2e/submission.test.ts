// The relay of the built program: options, refusals and logins, over a session as mail programs hold it.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { publish } from "../support/publish.ts";
import { connectSmtp, type SmtpClient } from "../support/smtp-client.ts";

const recipient = "delivered@simulator.svc";

describe("a session with the relay", () => {
  let dns: DnsServer;
  let svc: Appliance;
  let login: { id: string; username: string; password: string };

  beforeAll(async () => {
    dns = await startDnsServer();
    svc = await startAppliance({ config: { dns: { servers: [dns.server] } } });
    await publish(svc, dns, "ok.test");
    login = (await svc.admin("POST", "/v1/smtp_credentials", { name: "one", test: true })).json;
  });
  afterAll(async () => {
    await svc?.stop();
    await dns?.stop();
  });

  const token = (): string => Buffer.from(`\0${login.username}\0${login.password}`).toString("base64");
  const open = async (): Promise<SmtpClient> => {
    const client = await connectSmtp({ port: svc.tlsPort, tls: true });
    await client.answer();
    await client.command("EHLO client.test");
    expect((await client.command(`AUTH PLAIN ${token()}`)).code).toBe(235);
    return client;
  };
  const mail = (lines: string[], body = "Hi\r\n"): string =>
    `${["From: shop@ok.test", ...lines].map((line) => `${line}\r\n`).join("")}\r\n${body}.\r\n`;

  test("the same mail under an idempotency key is one message, over sessions and a restart", async () => {
    const keyed = mail(["X-Svc-Idempotency-Key: order-1", "Subject: once"]);
    const first = await (await open()).submit("a@ok.test", [recipient], keyed);
    expect(first.text).toMatch(/^250 2\.0\.0 queued as msg_[0-9a-z]{26}$/);
    await svc.kill();
    await svc.restart();
    const client = await open();
    expect((await client.submit("other@ok.test", [recipient], keyed)).text).toBe(first.text);
    const other = mail(["X-Svc-Idempotency-Key: order-1", "Subject: twice"]);
    expect((await client.submit("a@ok.test", [recipient], other)).text).toMatch(
      /^550 5\.7\.1 .*duplicate_idempotency_key/,
    );
    const { json } = await svc.admin("GET", "/v1/messages?limit=200");
    expect(json.data.filter(({ subject }: { subject: string }) => subject === "once")).toHaveLength(1);
  });

  test("what cannot be met is refused after the dot with its reason, and the session goes on", async () => {
    const client = await open();
    const cases: [string[], RegExp][] = [
      [["X-Svc-Ip-Pool: fast"], /^550 5\.7\.1 X-Svc-Ip-Pool: no pool of that name/],
      [["X-Svc-Track-Opens: true"], /^550 5\.7\.1 X-Svc-Track-Opens: tracking is not enabled for ok\.test/],
      [["X-Svc-Unsubscribe: yes"], /^550 5\.6\.0 X-Svc-Unsubscribe: expected true, or an object/],
      [["X-Svc-Send-At: soon"], /^550 5\.6\.0 X-Svc-Send-At: expected a time/],
      [["X-Svc-Metadata: no"], /^550 5\.6\.0 X-Svc-Metadata: expected a JSON object/],
      [["Content-Type: a/b; name=run.exe"], /^550 5\.7\.1 the attachment "run\.exe" has an executable/],
      [["From: ceo@bank.test"], /^550 5\.6\.0 the mail has more than one From field/],
      [[`X-Long: ${"x".repeat(1_000)}`], /^550 5\.6\.0 a header line has more than 998 octets/],
    ];
    for (const [lines, reply] of cases)
      expect((await client.submit("a@ok.test", [recipient], mail(lines))).text).toMatch(reply);
    expect((await client.submit("a@ok.test", [recipient], mail([]))).code).toBe(250);
  });

  test("a login that is revoked, or whose account is suspended, ends at the next MAIL", async () => {
    const client = await open();
    expect((await client.submit("a@ok.test", [recipient], mail([]))).code).toBe(250);
    await svc.admin("POST", `/v1/smtp_credentials/${login.id}/revoke`);
    expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^535 5\.7\.8 .*revoked/);
    expect((await client.command(`AUTH PLAIN ${token()}`)).code).toBe(535);
    login = (await svc.admin("POST", "/v1/smtp_credentials", { name: "two", test: true })).json;
    expect((await client.command(`AUTH PLAIN ${token()}`)).code).toBe(235);
    expect((await client.submit("a@ok.test", [recipient], mail([]))).code).toBe(250);
  });
});

// Mail to real receivers: Postfix and OpenSMTPD as MX, found through the DNS, over STARTTLS, a Postfix that takes none
// without TLS and one behind postgrey. Their signatures are odd-mail.test.ts's.
import PostalMime from "postal-mime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, freePort, startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import {
  missingPeers,
  startOpenSmtpd,
  startPostfix,
  startPostgrey,
  type MailServer,
  type Postfix,
} from "../support/peers.ts";
import { publish } from "../support/publish.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: tests with real receivers: ${missing}`);

const port = await freePort();
let dns: DnsServer;
let postfix: Postfix;
let opensmtpd: MailServer;
let encrypting: Postfix;
let greylisting: Postfix;
let postgrey: { port: number; stop(): Promise<void> };
let hook: WebhookReceiver;
let svc: Appliance;
let key: string;
const hookOptions = { secret: "", now: () => Date.now() };

describe.skipIf(missing !== null)("real receivers", () => {
  beforeAll(async () => {
    dns = await startDnsServer({
      "one.test": { MX: ["10 mx.one.test"] },
      "mx.one.test": { A: ["127.0.0.21"] },
      "two.test": { MX: ["10 mx.two.test"] },
      "mx.two.test": { A: ["127.0.0.22"] },
      "three.test": { MX: ["10 mx.three.test"] },
      "mx.three.test": { A: ["127.0.0.23"] },
      "four.test": { MX: ["10 mx.four.test"] },
      "mx.four.test": { A: ["127.0.0.24"] },
    });
    postgrey = await startPostgrey({ delaySeconds: 4 });
    const [three, four] = [
      { address: "127.0.0.23", port, domain: "three.test", hostname: "mx.three.test", tls: "encrypt" },
      { address: "127.0.0.24", port, domain: "four.test", hostname: "mx.four.test", policy: postgrey },
    ] as const;
    [encrypting, greylisting, postfix, opensmtpd, hook] = await Promise.all([
      startPostfix(three),
      startPostfix(four),
      startPostfix({ address: "127.0.0.21", port, domain: "one.test", hostname: "mx.one.test" }),
      startOpenSmtpd({ address: "127.0.0.22", port, domain: "two.test", hostname: "mx.two.test" }),
      startWebhookReceiver(hookOptions),
    ]);
    svc = await startAppliance({
      config: {
        dns: { servers: [dns.server] },
        outbound: { port, allow_networks: ["127.0.0.0/8"], retry: ["1s"] },
        webhooks: { allow_networks: ["127.0.0.0/8", "::1/128"], ca_file: hook.caFile },
        relay: { trusted: [{ network: "127.0.0.0/8", account: "default" }] },
      },
    });
    key = (await svc.admin("POST", "/v1/keys", { name: "test", scope: "admin" })).json.key;
    await publish(svc, dns, "ok.test");
    const endpoint = await svc.api(key, "POST", "/v1/webhooks", { url: hook.url });
    hookOptions.secret = endpoint.json.secret;
  });

  afterAll(async () => {
    await svc?.stop();
    await Promise.all([postfix?.stop(), opensmtpd?.stop(), encrypting?.stop(), greylisting?.stop()]);
    await Promise.all([postgrey?.stop(), hook?.stop(), dns?.stop()]);
  });

  const send = (body: Record<string, unknown>) =>
    svc.api(key, "POST", "/v1/messages", {
      from: "Shop <shop@ok.test>",
      subject: "Hello",
      text: "Hi",
      ...body,
    });
  const eventsOf = (id: string, count: number) =>
    eventually(
      async () => {
        const { json } = await svc.admin("GET", `/v1/events?message_id=${id}`); // no bucket there
        return json.data.length >= count ? json.data : null;
      },
      30_000,
      `${count} events of ${id}\n${postfix.log()}\n${opensmtpd.log()}`,
    );
  const holding = (server: MailServer, text: string, count: number) =>
    eventually(
      async () => {
        const found = server.mails().filter((mail) => mail.includes(text));
        return found.length >= count ? found : null;
      },
      20_000,
      `${count} mails with ${text}`,
    );

  test("html, text, an attachment, a non-ASCII subject and three recipients at two domains arrive over TLS", async () => {
    const subject = "Grüße aus Köln — 注文 №1";
    const { status, text, json } = await send({
      to: ["ann@one.test", "bob@two.test"],
      cc: "cy@two.test",
      subject,
      html: "<p>Hallo <b>Welt</b></p>",
      text: "Hallo Welt\n.\n..ende",
      attachments: [{ filename: "Rechnung ü.pdf", content: Buffer.from("%PDF-1.4 test").toString("base64") }],
    });
    expect(status, text).toBe(202);
    const events = await eventsOf(json.id, 3);
    expect(events.map((event: { event: string }) => event.event)).toEqual(Array(3).fill("message.delivered"));
    const tlsTo = (mta: string) =>
      events.find((event: { data: { receiving_mta: string } }) => event.data.receiving_mta === mta).data.tls;
    expect(tlsTo("mx.one.test")).toMatchObject({ version: "TLSv1.3", verified: false });
    // Debian 12's OpenSMTPD offers STARTTLS and then fails the handshake with OpenSSL 3: clear text, in the same attempt.
    expect(events.every((event: { data: { attempt: number } }) => event.data.attempt === 1)).toBe(true);
    const [atOne] = await holding(postfix, json.id.slice(4), 1);
    const atTwo = await holding(opensmtpd, json.id.slice(4), 2);
    for (const mail of [atOne, ...atTwo]) {
      const parsed = await PostalMime.parse(mail ?? Buffer.alloc(0));
      expect(parsed.subject).toBe(subject);
      expect(parsed.text?.replaceAll("\r\n", "\n").trim()).toBe("Hallo Welt\n.\n..ende");
      expect(parsed.html).toContain("<b>Welt</b>");
      expect(parsed.attachments[0]).toMatchObject({ filename: "Rechnung ü.pdf" });
    }
  });

  test("a webhook receiver written from the specification alone verifies every event", async () => {
    const { json } = await send({ to: "ann@one.test" });
    await eventsOf(json.id, 1);
    const requests = await eventually(async () => {
      const seen = hook.requests.filter(({ body }) => body.includes(json.id));
      return seen.length > 0 ? seen : null;
    });
    expect(requests[0]).toMatchObject({ event: "message.delivered", attempt: 1, problem: null });
    expect(hook.requests.filter(({ problem }) => problem !== null)).toEqual([]);
  });

  test("a permanent refusal by Postfix bounces, suppresses and refuses the next send", async () => {
    postfix.rule("permfail@one.test", "550 5.1.1 no such user here");
    const { json } = await send({ to: "permfail@one.test" });
    const [event] = await eventsOf(json.id, 1);
    expect(event).toMatchObject({
      event: "message.bounced",
      data: {
        bounce_type: "hard",
        bounce_classification: "invalid_recipient",
        smtp_code: "550",
        smtp_status: "5.1.1",
        suppressed: true,
      },
    });
    const next = await send({ to: "permfail@one.test" });
    expect([next.status, next.json.code]).toEqual([422, "recipient_suppressed"]);
  });

  test("a temporary refusal by Postfix is retried and delivered", async () => {
    postfix.rule("tempfail@one.test", "451 4.3.0 try again later");
    const { json } = await send({ to: "tempfail@one.test" });
    const [first] = await eventsOf(json.id, 1);
    expect(first).toMatchObject({ event: "message.deferred", data: { smtp_code: "451" } });
    postfix.rule("tempfail@one.test", null);
    const events = await eventually(async () => {
      const all = await eventsOf(json.id, 2);
      return all.at(-1).event === "message.delivered" ? all : null;
    });
    expect(events.at(-1).data.attempt).toBeGreaterThan(1);
    expect(await holding(postfix, json.id.slice(4), 1)).toHaveLength(1);
  });

  test("a Postfix with smtpd_tls_security_level=encrypt is delivered to over TLS, at the first attempt", async () => {
    const { json } = await send({ to: "ann@three.test" });
    const [event] = await eventsOf(json.id, 1);
    expect(event).toMatchObject({
      event: "message.delivered",
      data: { attempt: 1, tls: { version: "TLSv1.3" } },
    });
    expect(await holding(encrypting, json.id.slice(4), 1)).toHaveLength(1);
  });

  test("postgrey behind Postfix is passed after the delay that it states, and the mail arrives once", async () => {
    const { json } = await send({ to: "ann@four.test" });
    const events = await eventually(
      async () => {
        const all = await eventsOf(json.id, 1);
        return all.at(-1).event === "message.delivered" ? all : null;
      },
      60_000,
      `a delivery past postgrey\n${greylisting.log()}`,
    );
    const [first, last] = events;
    expect(events).toHaveLength(2);
    expect(first).toMatchObject({
      event: "message.deferred",
      data: { attempt: 1, smtp_code: "450", bounce_classification: "greylisted" },
    });
    expect(first.data.smtp_response).toMatch(/try again in 4 seconds/);
    expect(last.data.attempt).toBe(2);
    // outbound.retry would have been after a second.
    const { data } = (await svc.admin("GET", `/v1/messages/${json.id}/attempts`)).json;
    expect(data.map((attempt: { decided_by: string }) => attempt.decided_by)).toEqual(["receiver", "final"]);
    expect(await holding(greylisting, json.id.slice(4), 1)).toHaveLength(1);
    // The token of a return path is an extension to postgrey: it knows the sender now.
    const [next] = await eventsOf((await send({ to: "ann@four.test" })).json.id, 1);
    expect(next).toMatchObject({ event: "message.delivered", data: { attempt: 1 } });
  });
});

// The main job from the outside: REST in, real DNS look-ups, two receivers, events, a signed
// webhook, a bounce that suppresses and a deferral that is retried.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, freePort, startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { startReceiver, type Receiver } from "../support/smtp-receiver.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { publish } from "../support/publish.ts";

const port = await freePort();
let dns: DnsServer;
let one: Receiver;
let two: Receiver;
let hook: WebhookReceiver;
let svc: Appliance;
let key: string;
const hookOptions = { secret: "", now: () => Date.now() };

beforeAll(async () => {
  dns = await startDnsServer({
    "one.test": { MX: ["10 mx.one.test"] },
    "mx.one.test": { A: ["127.0.0.11"] },
    "two.test": { MX: ["10 dead.two.test", "20 mx.two.test"] },
    "dead.two.test": { A: ["127.0.0.99"] },
    "mx.two.test": { A: ["127.0.0.12"] },
    "null.test": { MX: ["0 ."] },
  });
  one = await startReceiver({ address: "127.0.0.11", port });
  two = await startReceiver({ address: "127.0.0.12", port });
  hook = await startWebhookReceiver(hookOptions);
  svc = await startAppliance({
    config: {
      dns: { servers: [dns.server] },
      outbound: { port, allow_networks: ["127.0.0.0/8"], retry: ["1s"] },
      webhooks: { allow_networks: ["127.0.0.0/8", "::1/128"], ca_file: hook.caFile },
    },
  });
  key = (await svc.admin("POST", "/v1/keys", { name: "test", scope: "admin" })).json.key;
  await publish(svc, dns, "ok.test");
});

afterAll(async () => {
  await svc?.stop();
  await Promise.all([one?.stop(), two?.stop(), hook?.stop(), dns?.stop()]);
});

const send = (body: Record<string, unknown>, headers: Record<string, string> = {}) =>
  svc.api(
    key,
    "POST",
    "/v1/messages",
    { from: "Shop <shop@ok.test>", subject: "Hello", text: "Hi", ...body },
    headers,
  );

const eventsOf = async (id: string, count: number) =>
  eventually(
    async () => {
      const { json } = await svc.admin("GET", `/v1/events?message_id=${id}`); // no bucket there
      return json.data.length >= count ? json.data : null;
    },
    undefined,
    `${count} events of ${id}`,
  );

test("its log says once that it is up, and where it listens", async () => {
  const line = await eventually(
    async () =>
      svc
        .log()
        .split("\n")
        .find((text) => text.includes('"svc started"')) ?? null,
  );
  expect(JSON.parse(line)).toMatchObject({
    level: "info",
    listeners: expect.arrayContaining([
      `http 127.0.0.1:${svc.httpPort}`,
      `smtp 127.0.0.1:${svc.starttlsPort}`,
      `smtps 127.0.0.1:${svc.tlsPort}`,
      `admin ${svc.socket}`,
    ]) as string[],
    data_dir: svc.dataDir,
  });
});

describe("a message to several recipients", () => {
  test("reaches each receiver once, by its own envelope, and says so in events", async () => {
    const answer = await send({
      to: ["Ann <ann@one.test>", "bob@two.test"],
      cc: "cy@two.test",
      bcc: "dan@one.test",
      subject: "Grüße aus Köln — 注文",
      html: "<p>Hi</p>",
      attachments: [{ filename: "ü.txt", content: Buffer.from("attached").toString("base64") }],
      tags: ["a"],
      metadata: { order: "7" },
    });
    expect(answer.status, answer.text).toBe(202);
    expect(answer.headers["location"]).toBe(`/v1/messages/${answer.json.id}`);
    const events = await eventsOf(answer.json.id, 4);
    expect(events.map((event: { event: string }) => event.event)).toEqual(Array(4).fill("message.delivered"));
    expect(events[0].data).toMatchObject({
      tags: ["a"],
      metadata: { order: "7" },
      attempt: 1,
      smtp_code: "250",
    });
    expect([...one.mails, ...two.mails].map(({ rcptTo }) => rcptTo.join()).toSorted()).toEqual([
      "ann@one.test",
      "bob@two.test",
      "cy@two.test",
      "dan@one.test",
    ]);
    const raw = one.mails[0]?.data.toString() ?? "";
    expect(raw).not.toMatch(/^bcc:/im);
    expect(raw.match(/^DKIM-Signature:/gim)).toHaveLength(2);
    expect(new Set([...one.mails, ...two.mails].map(({ mailFrom }) => mailFrom)).size).toBe(4);
    expect(one.mails[0]?.mailFrom).toMatch(/@bounce\.ok\.test$/);
    const record = await svc.api(key, "GET", `/v1/messages/${answer.json.id}`);
    expect(record.json).toMatchObject({ status: "delivered", source: "api" });
    expect(record.json.recipients.map((recipient: { status: string }) => recipient.status)).toEqual(
      Array(4).fill("delivered"),
    );
  });

  test("every attempt is explained: MX, address, dialogue, outcome", async () => {
    const { json } = await send({ to: "eve@two.test" });
    await eventsOf(json.id, 1);
    const attempts = (await svc.api(key, "GET", `/v1/messages/${json.id}/attempts`)).json.data;
    expect(attempts).toHaveLength(1);
    expect(attempts[0]).toMatchObject({
      recipient: "eve@two.test",
      attempt: 1,
      host: "mx.two.test",
      address: "127.0.0.12",
      outcome: "delivered",
      mx: [
        { host: "dead.two.test", preference: 10 },
        { host: "mx.two.test", preference: 20 },
      ],
    });
    expect(
      attempts[0].dialogue.some((line: { text: string }) => line.text.startsWith("RCPT TO:<eve@two.test>")),
    ).toBe(true);
  });
});

describe("what receivers say", () => {
  test("a permanent refusal is a bounce, a suppression, and a 422 on the next send", async () => {
    const { json } = await send({ to: ["permfail@one.test", "fine@one.test"] });
    const events = await eventsOf(json.id, 2);
    const bounced = events.find((event: { event: string }) => event.event === "message.bounced");
    expect(bounced.data).toMatchObject({
      to: "permfail@one.test",
      bounce_type: "hard",
      bounce_classification: "invalid_recipient",
      smtp_code: "550",
      smtp_status: "5.1.1",
      source: "smtp",
      suppressed: true,
      receiving_mta: "mx.one.test",
    });
    const next = await send({ to: ["PermFail@One.test", "fine@one.test"] });
    expect(next.status).toBe(422);
    expect(next.json).toMatchObject({
      code: "recipient_suppressed",
      suppressed_recipients: [{ email: "permfail@one.test", reason: "hard_bounce" }],
    });
    const entry = await svc.api(key, "GET", "/v1/suppressions/permfail@one.test");
    expect(entry.json).toMatchObject({
      reason: "hard_bounce",
      smtp_code: "550",
      source: "system",
      message_id: json.id,
      event_id: bounced.event_id,
    });
  });

  test("a temporary refusal is retried until it is taken", async () => {
    let refusals = 2;
    one.options.onRcpt = (address) =>
      address === "tempfail@one.test" && refusals-- > 0 ? "451 4.7.1 greylisted" : "250 2.1.5 ok";
    const { json } = await send({ to: "tempfail@one.test" });
    const events = await eventsOf(json.id, 3);
    delete one.options.onRcpt;
    expect(events.map((event: { event: string }) => event.event)).toEqual([
      "message.deferred",
      "message.deferred",
      "message.delivered",
    ]);
    expect(events[0].data).toMatchObject({
      smtp_code: "451",
      smtp_status: "4.7.1",
      bounce_type: "soft",
      bounce_classification: "greylisted",
    });
    expect(Date.parse(events[0].data.next_attempt_at)).toBeGreaterThan(Date.parse(events[0].occurred_at));
    expect(events[2].data.attempt).toBe(3);
    expect(one.mails.filter(({ rcptTo }) => rcptTo[0] === "tempfail@one.test")).toHaveLength(1);
  });

  test("a domain that does not exist bounces at once and does not suppress; a null MX suppresses", async () => {
    const { json } = await send({ to: ["a@nowhere.test", "b@null.test"] });
    const events = await eventsOf(json.id, 2);
    const by = (to: string) => events.find((event: { data: { to: string } }) => event.data.to === to).data;
    expect(by("a@nowhere.test")).toMatchObject({
      bounce_type: "hard",
      bounce_classification: "invalid_domain",
      smtp_code: "550",
      smtp_status: "5.1.2",
      source: "local",
      suppressed: false,
    });
    expect(by("b@null.test")).toMatchObject({
      bounce_type: "hard",
      smtp_code: "556",
      smtp_status: "5.1.10",
      suppressed: true,
    });
  });

  test("a DNS that cannot tell defers and never bounces", async () => {
    dns.fail("shaky.test", "servfail");
    const { json } = await send({ to: "a@shaky.test" });
    const [first] = await eventsOf(json.id, 1);
    expect(first).toMatchObject({
      event: "message.deferred",
      data: { smtp_code: "451", smtp_status: "4.4.3", bounce_classification: "dns_failure" },
    });
    dns.fail("shaky.test", null);
    dns.set("shaky.test", "MX", ["10 mx.one.test"]);
    const events = await eventually(async () => {
      const all = await eventsOf(json.id, 2);
      return all.at(-1).event === "message.delivered" ? all : null;
    });
    expect(events.some((event: { event: string }) => event.event === "message.bounced")).toBe(false);
  });
});

describe("webhooks", () => {
  test("each event arrives signed, and the receiver's own check agrees", async () => {
    const created = await svc.api(key, "POST", "/v1/webhooks", {
      url: hook.url,
      events: ["message.delivered"],
    });
    expect(created.status, created.text).toBe(201);
    expect(created.json.secret).toMatch(/^[!-~]{64}$/);
    hookOptions.secret = created.json.secret;
    const { json } = await send({ to: "ann@one.test" });
    const requests = await eventually(async () => {
      const seen = hook.requests.filter(({ body }) => body.includes(json.id));
      return seen.length > 0 ? seen : null;
    });
    expect(requests[0]).toMatchObject({
      event: "message.delivered",
      attempt: 1,
      problem: null,
      duplicate: false,
    });
    const event = (await eventsOf(json.id, 1))[0];
    const { deliveries, ...envelope } = event;
    expect(JSON.parse(requests[0]?.body.toString() ?? "")).toEqual(envelope);
    await eventually(async () => {
      const [again] = await eventsOf(json.id, 1);
      return (
        again.deliveries[0]?.status === "delivered" && again.deliveries[0].webhook_id === created.json.id
      );
    });
    expect(deliveries).toHaveLength(1);
  });

  test("the test button posts one signed event now", async () => {
    const [endpoint] = (await svc.api(key, "GET", "/v1/webhooks")).json.data;
    const answer = await svc.api(key, "POST", `/v1/webhooks/${endpoint.id}/test`);
    expect(answer.json).toMatchObject({ delivered: true, status: 200 });
    const sent = hook.requests.find(({ eventId }) => eventId === answer.json.event_id);
    expect(JSON.parse(sent?.body.toString() ?? "{}").data.test).toBe(true);
  });
});

describe("idempotency", () => {
  test("fifty parallel sends with one key give one message and fifty equal answers", async () => {
    const before = one.mails.length;
    const headers = { "idempotency-key": "order-1" };
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => send({ to: "idem@one.test" }, headers)),
    );
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(202);
    expect(answers.filter(({ headers: h }) => h["idempotency-replayed"] === "true")).toHaveLength(49);
    await eventsOf(answers[0]?.json.id, 1);
    expect(one.mails.length - before).toBe(1);
    const other = await send({ to: "idem@one.test", subject: "Another" }, headers);
    expect(other.status).toBe(409);
    expect(other.json.code).toBe("duplicate_idempotency_key");
  });
});

describe("life", () => {
  test("an unverified domain may not send, and the refusal names the command that mends it", async () => {
    const answer = await send({ from: "a@foreign.test", to: "ann@one.test" });
    expect(answer.status).toBe(422);
    expect(answer.json.code).toBe("sender_not_verified");
    expect(answer.json.errors[0].issue).toContain("svc domains add foreign.test");
  });

  test("a message for later waits, and can be canceled", async () => {
    const { json } = await send({
      to: "later@one.test",
      send_at: new Date(Date.now() + 3_600_000).toISOString(),
    });
    expect(json.status).toBe("scheduled");
    const canceled = await svc.api(key, "POST", `/v1/messages/${json.id}/cancel`);
    expect(canceled.status).toBe(200);
    expect(canceled.json.status).toBe("canceled");
    expect((await svc.api(key, "POST", `/v1/messages/${json.id}/cancel`)).json.code).toBe(
      "message_not_cancelable",
    );
  });

  test("a second process on the same data ends with a sentence", async () => {
    const second = await startAppliance({ dataDir: svc.dataDir }).then(
      () => "started",
      (error: Error) => error.message,
    );
    expect(second).not.toBe("started");
    expect(second).toMatch(/another|in use|already/i);
  });

  test("has synchronous=FULL, and takes less than 180 MB after a start", async () => {
    const fresh = await startAppliance({ config: {} });
    const status = (await fresh.admin("GET", "/v1/status")).json;
    await fresh.stop();
    expect(status.store).toMatchObject({ journal_mode: "wal", synchronous: 2 });
    expect(status.memory_bytes).toBeLessThan(180e6);
  });
});

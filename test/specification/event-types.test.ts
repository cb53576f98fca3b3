// The specification of the API, "Event types" and what stands in their data: each of the nine by the test button of a
// webhook, and those that mail causes as they really come about, over SMTP in both directions.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { arfMail, dsnMail } from "../support/reports.ts";
import { connectSmtp } from "../support/smtp-client.ts";
import { startReceiver, type Receiver } from "../support/smtp-receiver.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { startCustomer, type Customer } from "./customer.ts";

let customer: Customer;
let mx: Receiver;
let hook: WebhookReceiver;
let webhookId: string;
const options = { secret: "", now: () => customer.clock.now(), certificate: { names: ["hook.test"] } };
beforeAll(async () => {
  mx = await startReceiver({ address: "127.0.0.42" });
  hook = await startWebhookReceiver(options);
  customer = await startCustomer({
    config: {
      outbound: { port: mx.port, allow_networks: ["127.0.0.0/8"] },
      inbound: { listen: ["127.0.0.1:0"] },
      webhooks: { allow_networks: ["127.0.0.0/8"], ca_file: hook.caFile },
    },
  });
  const { dns } = customer.program;
  dns.set("far.test", "MX", ["10 mx.far.test"]);
  dns.set("mx.far.test", "A", [mx.address]);
  dns.set("hook.test", "A", ["127.0.0.1"]);
  const body = { url: `https://hook.test:${hook.port}/` };
  const made = await customer.ask("POST", "/v1/webhooks", { body });
  ({ id: webhookId } = made.json);
  options.secret = made.json.secret;
  expect(made.json.events).toHaveLength(9);
});
afterAll(async () => {
  await customer?.stop();
  await Promise.all([mx?.stop(), hook?.stop()]);
});

interface Envelope {
  event: string;
  event_id: string;
  occurred_at: string;
  received_at: string;
  data: Record<string, unknown>;
}

const string = expect.stringMatching(/\S/);
const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const address = expect.stringMatching(/^[\w.+-]+@[\w.-]+$/);
const messageId = expect.stringMatching(/^msg_[0-9a-z]{26}$/);
const ip = expect.stringMatching(/^[0-9a-f.:]+$/);
const hostName = expect.stringMatching(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/);
const code = expect.stringMatching(/^[245]\d\d$/);
const status = expect.stringMatching(/^[245]\.\d{1,3}\.\d{1,3}$/);
const whole = expect.any(Number);
const flag = expect.any(Boolean);
const strings = expect.any(Array);

const message = {
  message_id: messageId,
  to: address,
  from: address,
  subject: string,
  tags: strings,
  metadata: {},
};
const attempt = {
  smtp_code: code,
  smtp_status: status,
  smtp_response: string,
  receiving_mta: hostName,
  sending_ip: ip,
  attempt: whole,
};
const delivery = { delivery_time_ms: whole, tls: expect.objectContaining({ version: "TLSv1.3" }) };
const visit = { ip_address: ip, user_agent: string, first: flag, machine: flag };
const listing = { ip_address: ip, blacklist_name: string, blacklist_zone: hostName, affected_pools: strings };

/** By type: the table's fields where it has one, and what was decided beyond it. */
const tables: Record<string, Record<string, unknown>> = {
  "message.delivered": { ...message, ...attempt, ...delivery },
  "message.deferred": {
    ...message,
    ...attempt,
    ...delivery,
    next_attempt_at: timestamp,
    bounce_type: "soft",
    bounce_classification: string,
    bounce_category: string,
  },
  "message.bounced": {
    message_id: messageId,
    to: address,
    from: address,
    subject: string,
    bounce_type: "hard",
    bounce_classification: "invalid_recipient",
    smtp_code: expect.stringMatching(/^\d{3}$/),
    smtp_status: expect.stringMatching(/^\d\.\d{1,3}\.\d{1,3}$/),
    smtp_response: string,
    receiving_mta: hostName,
    sending_ip: ip,
    tags: strings,
    bounce_category: "recipient",
    attempt: whole,
    source: expect.stringMatching(/^(smtp|dsn|local)$/),
    suppressed: flag,
    metadata: {},
  },
  "message.opened": { ...message, ...visit },
  "message.clicked": { ...message, ...visit, url: string },
  "message.complained": {
    message_id: messageId,
    to: address,
    complaint_source: string,
    complaint_type: "abuse",
    feedback_type: "abuse",
    reported_at: timestamp,
    sending_ip: ip,
    tags: strings,
    from: address,
    subject: string,
    metadata: {},
  },
  "message.unsubscribed": { ...message, method: expect.stringMatching(/^(one_click|link|mailto)$/) },
  "ip.blacklisted": {
    ip_address: ip,
    blacklist_name: string,
    blacklist_zone: hostName,
    listing_reason: string,
    detected_at: timestamp,
    affected_pools: strings,
    return_code: ip,
    removal_url: expect.stringMatching(/^https:/),
  },
  "ip.delisted": { ...listing, listed_at: timestamp, delisted_at: timestamp, duration_seconds: whole },
};

const expectEnvelope = (envelope: Envelope, type: string): void => {
  expect(Object.keys(envelope)).toEqual(["event", "event_id", "occurred_at", "received_at", "data"]);
  expect(envelope).toMatchObject({
    event: type,
    event_id: expect.stringMatching(/^evt_[0-9a-z]{26}$/),
    occurred_at: timestamp,
    received_at: timestamp,
  });
  expect(envelope.received_at >= envelope.occurred_at).toBe(true);
};
/** Strings, and nothing but strings, where the table says so. */
const expectStrings = (value: unknown): void => {
  for (const one of value as unknown[]) expect(one).toEqual(expect.any(String));
};

test.each(Object.entries(tables))(
  "the test button sends %s, in its envelope, with every field",
  async (type, fields) => {
    const path = `/v1/webhooks/${webhookId}/test`;
    const { status: answered, json } = await customer.ask("POST", path, { body: { event: type } });
    expect([answered, json.delivered, json.status]).toEqual([200, true, 200]);
    const request = hook.requests.find(({ eventId }) => eventId === json.event_id);
    expect(request).toMatchObject({ problem: null, event: type, attempt: 1 });
    const envelope: Envelope = JSON.parse(String(request?.body));
    expectEnvelope(envelope, type);
    expect(envelope.data).toEqual({ ...fields, test: true });
    expectStrings(envelope.data["tags"] ?? envelope.data["affected_pools"]);
  },
);

describe("as mail causes it", () => {
  const send = async (to: string): Promise<string> => {
    const body = {
      from: "Shop <shop@ok.test>",
      to,
      subject: "Your order",
      text: "Hi",
      tags: ["order", "eu"],
      metadata: { n: "7" },
    };
    const sent = await customer.ask("POST", "/v1/messages", { body });
    expect(sent.status).toBe(202);
    return sent.json.id;
  };
  /** The message's event of a type, once the webhook has got it: its very bytes. */
  const got = async (id: string, type: string): Promise<Envelope> => {
    const body = await customer.eventually(async () =>
      hook.requests
        .map((request) => String(request.body))
        .find((b) => b.includes(id) && b.includes(`"${type}"`)),
    );
    const envelope: Envelope = JSON.parse(body);
    expectEnvelope(envelope, type);
    const { text } = await customer.ask("GET", `/v1/events?event_id=${envelope.event_id}`);
    expect(text).toContain(body.slice(0, -1));
    return envelope;
  };
  const ours = { from: "shop@ok.test", subject: "Your order", tags: ["order", "eu"], metadata: { n: "7" } };
  const seen = { receiving_mta: "mx.far.test", sending_ip: "127.0.0.1", attempt: 1 };
  const report = async (to: string, text: string): Promise<void> => {
    const client = await connectSmtp({ port: customer.program.mailPorts("inbound")[0] ?? 0 });
    await client.answer();
    await client.command("EHLO mx.far.test");
    const answer = await client.submit("", [to], `${text.replace(/^\./gm, "..")}\r\n.\r\n`);
    client.end();
    expect(answer.code, answer.text).toBe(250);
  };
  const returnPathOf = (to: string): string =>
    mx.mails.find(({ rcptTo }) => rcptTo.includes(to))?.mailFrom ?? "";

  test("message.delivered: the receiving server took it", async () => {
    const id = await send("ann@far.test");
    const { data } = await got(id, "message.delivered");
    expect(data).toEqual({
      ...tables["message.delivered"],
      ...ours,
      ...seen,
      message_id: id,
      to: "ann@far.test",
      smtp_code: "250",
      tls: null,
    });
  });

  test("message.deferred: a 4xx of the receiving server", async () => {
    const id = await send("tempfail@far.test");
    const { data } = await got(id, "message.deferred");
    expect(data).toEqual({
      ...tables["message.deferred"],
      ...ours,
      ...seen,
      message_id: id,
      to: "tempfail@far.test",
      smtp_code: "451",
      smtp_status: "4.3.0",
      smtp_response: expect.stringContaining("try again later"),
      bounce_classification: "receiver_error",
      tls: null,
    });
  });

  test("message.bounced: a 5xx of the receiving server", async () => {
    const id = await send("unknown@far.test");
    const { data } = await got(id, "message.bounced");
    expect(data).toEqual({
      ...tables["message.bounced"],
      ...ours,
      ...seen,
      message_id: id,
      to: "unknown@far.test",
      smtp_code: "550",
      smtp_status: "5.1.1",
      smtp_response: expect.stringContaining("no such user"),
      source: "smtp",
      suppressed: true,
    });
  });

  test("message.bounced: a report of a bounce that came later", async () => {
    const to = "late@far.test";
    const id = await send(to);
    const delivered = await got(id, "message.delivered");
    await report(returnPathOf(to), dsnMail({ to: returnPathOf(to), recipient: to }));
    const { data, occurred_at: at } = await got(id, "message.bounced");
    expect(data).toMatchObject({
      ...ours,
      message_id: id,
      to,
      bounce_type: "hard",
      source: "dsn",
      suppressed: true,
    });
    expect(data).toMatchObject({
      smtp_code: "550",
      smtp_status: "5.1.1",
      bounce_classification: "invalid_recipient",
    });
    expect(at >= delivered.occurred_at).toBe(true);
  });

  test("message.complained: a report of a feedback loop", async () => {
    const to = "bob@far.test";
    const id = await send(to);
    await got(id, "message.delivered");
    const lines = [
      "Arrival-Date: Fri, 27 Nov 2026 08:00:00 +0000",
      "Source-IP: 127.0.0.1",
      `Original-Mail-From: <${returnPathOf(to)}>`,
    ];
    const loop = "fbl+yahoo@mail.svc.test";
    await report(loop, arfMail({ to: loop, report: lines }));
    const { data } = await got(id, "message.complained");
    expect(data).toEqual({
      ...tables["message.complained"],
      ...ours,
      message_id: id,
      to,
      complaint_source: "yahoo",
    });
    const entry = await customer.ask("GET", `/v1/suppressions/${to}`);
    expect(entry.json).toMatchObject({ reason: "complaint", message_id: id });
  });
});

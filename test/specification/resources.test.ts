// The resources of the specification of the API and their fields: of each what it is made of, and what of a secret is shown
// and when. What a send takes is in send-fields.test.ts.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { delivered, eventually, scopes, sound, startAsking, type Answer, type Asking } from "./asking.ts";

let api: Asking;
let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver({ secret: "", now: () => Date.now() });
  api = await startAsking({
    config: { webhooks: { allow_networks: ["127.0.0.0/8"], ca_file: receiver.caFile } },
  });
  api.program.dns.set("localhost", "A", ["127.0.0.1"]);
});
afterAll(async () => {
  await api?.stop();
  await receiver?.stop();
});

const idOf = (prefix: string) => expect.stringMatching(new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`));
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const words = expect.any(String);
const number = expect.any(Number);
const send = (more: Record<string, unknown>): Promise<Answer> =>
  api.ask("POST", "/v1/messages", { body: sound(more) });
const eventsOf = (id: string, event: string) =>
  eventually(async () => {
    const { data } = (await api.ask("GET", `/v1/events?message_id=${id}&event=${event}`)).json;
    return data[0];
  });

describe("a message", () => {
  test("that is accepted is told by these fields", async () => {
    const { json, headers } = await send({ to: ["r@one.test"], cc: "c@one.test" });
    expect(json).toEqual({
      id: idOf("msg"),
      status: "queued",
      created_at: time,
      send_at: null,
      recipients: [
        { email: "r@one.test", type: "to" },
        { email: "c@one.test", type: "cc" },
      ],
      message_id_header: expect.stringMatching(/^<[^<>@]+@[^<>@]+>$/),
    });
    expect(headers["location"]).toMatch(new RegExp(`/v1/messages/${json.id}$`));
  });

  test("is read with these fields, alone and in the list", async () => {
    const { json } = await send({ tags: ["a"], metadata: { order: "1" }, from: "Shop <a@ok.test>" });
    const record = await delivered(api, json.id);
    expect(record).toMatchObject({
      id: json.id,
      status: "delivered",
      from: "a@ok.test",
      subject: "Hello",
      message_id_header: json.message_id_header,
      tags: ["a"],
      metadata: { order: "1" },
      ip_pool: "default",
      source: "api",
      size_bytes: number,
      created_at: json.created_at,
      send_at: null,
      updated_at: time,
    });
    const one = {
      email: "delivered@simulator.svc",
      type: "to",
      status: "delivered",
      attempts: 1,
      last_attempt_at: time,
      next_attempt_at: null,
      smtp_code: "250",
      smtp_status: "2.0.0",
      smtp_response: words,
      opened_at: null,
      open_count: 0,
      clicked_at: null,
      click_count: 0,
      complained_at: null,
      unsubscribed_at: null,
    };
    expect(record.recipients).toEqual([expect.objectContaining(one)]);
    for (const name of ["receiving_mta", "sending_ip", "tls"])
      expect(record.recipients[0]).toHaveProperty(name);
    const { data } = (await api.ask("GET", "/v1/messages?tag=a")).json;
    expect(data).toEqual([record]);
  });
});

describe("a suppression entry", () => {
  test.each([
    ["manual", {}],
    ["hard_bounce", { reason: "hard_bounce" }],
    ["complaint", { reason: "complaint", description: "by phone" }],
    ["unsubscribe", { reason: "unsubscribe", expires_at: "2031-01-01T00:00:00.000Z" }],
  ])("of reason %s has these fields, and is addressed by the address in its path", async (reason, more) => {
    const email = `Ann.${reason}@One.test`;
    const made = await api.ask("POST", "/v1/suppressions", { body: { emails: [email], ...more } });
    const entry = {
      email,
      reason,
      source: "api",
      message_id: null,
      event_id: null,
      smtp_code: null,
      smtp_status: null,
      description: null,
      created_at: time,
      updated_at: time,
      expires_at: null,
      ...more,
    };
    expect([made.status, made.json]).toEqual([
      201,
      { added: 1, updated: 0, already_suppressed: 0, invalid: [], data: [entry] },
    ]);
    const read = await api.ask("GET", `/v1/suppressions/${encodeURIComponent(email.toLowerCase())}`);
    expect([read.status, read.json]).toEqual([200, entry]);
    expect((await api.ask("DELETE", `/v1/suppressions/${encodeURIComponent(email)}`)).status).toBe(204);
    expect((await api.ask("GET", `/v1/suppressions/${encodeURIComponent(email)}`)).status).toBe(404);
  });

  test.each([
    ["none", [], 422],
    ["one", 1, 201],
    ["1000", 1000, 201],
    ["1001", 1001, 422],
  ])("of %s at a time", async (name, count, status) => {
    const emails = Array.isArray(count)
      ? count
      : Array.from({ length: count }, (_, i) => `bulk-${name}-${i}@one.test`);
    const answer = await api.ask("POST", "/v1/suppressions", { body: { emails } });
    expect([answer.status, answer.json.added ?? answer.json.field]).toEqual([
      status,
      status === 201 ? count : "emails",
    ]);
  });

  test("all or none are added, unless what is wrong is to be skipped", async () => {
    const emails = ["right@one.test", "wrong"];
    const refused = await api.ask("POST", "/v1/suppressions", { body: { emails } });
    expect([refused.status, refused.json.code, refused.json.field]).toEqual([
      422,
      "invalid_email_address",
      "emails[1]",
    ]);
    expect((await api.ask("GET", "/v1/suppressions/right%40one.test")).status).toBe(404);
    const skipped = await api.ask("POST", "/v1/suppressions", { body: { emails, on_invalid: "skip" } });
    expect([skipped.status, skipped.json.added, skipped.json.invalid.length]).toEqual([201, 1, 1]);
  });
});

describe("an API key", () => {
  test.each([...scopes])("of scope %s", async (scope) => {
    for (const isTest of [true, false]) {
      const made = await api.program.admin("POST", "/v1/keys", {
        name: "k",
        scope,
        test: isTest,
        allow_ips: ["10.0.0.0/8"],
      });
      expect(made).toMatchObject({
        id: idOf("key"),
        name: "k",
        scope,
        test: isTest,
        status: "active",
        allow_ips: ["10.0.0.0/8"],
        created_at: time,
        expires_at: null,
        key: expect.stringMatching(isTest ? /^svc_test_/ : /^svc_live_/),
      });
      const { key, ...shown } = made;
      expect(await api.program.admin("GET", `/v1/keys/${made.id}`)).toEqual(shown);
      expect(key).toBeTruthy();
    }
  });
});

test("an SMTP credential: a user name of the account's, and a password that is shown once", async () => {
  const { id } = await api.program.admin("GET", "/v1/accounts/default");
  const { password, ...shown } = await api.program.admin("POST", "/v1/smtp_credentials", { name: "site" });
  expect(shown).toMatchObject({
    id: idOf("cred"),
    name: "site",
    username: `smtp_${id.slice(5)}`,
    status: "active",
  });
  expect(password.length).toBeGreaterThanOrEqual(43);
  const { data } = await api.program.admin("GET", "/v1/smtp_credentials");
  expect(data.find((one: { id: string }) => one.id === shown.id)).toEqual(shown);
});

const types = [
  "message.delivered",
  "message.deferred",
  "message.bounced",
  "message.opened",
  "message.clicked",
  "message.complained",
  "message.unsubscribed",
  "ip.blacklisted",
  "ip.delisted",
];

describe("a webhook endpoint", () => {
  const create = (body: object) => api.ask("POST", "/v1/webhooks", { body });

  test("has these fields; its secret of 64 characters is shown at creation and rotation only", async () => {
    const made = await create({ url: "https://hooks.test/a", description: "orders" });
    const { secret, ...shown } = made.json;
    expect(made.status).toBe(201);
    expect(secret).toMatch(/^[\x21-\x7e]{64}$/);
    expect(shown).toMatchObject({
      id: idOf("whk"),
      url: "https://hooks.test/a",
      events: types,
      description: "orders",
      active: true,
      secret_hint: words,
      created_at: time,
      updated_at: time,
      last_success_at: null,
      last_failure_at: null,
      consecutive_failures: 0,
      failing_since: null,
    });
    expect((await api.ask("GET", `/v1/webhooks/${shown.id}`)).json).toEqual(shown);
    const { data } = (await api.ask("GET", "/v1/webhooks?limit=200")).json;
    expect(data).toContainEqual(shown);
    const rotated = (await api.ask("POST", `/v1/webhooks/${shown.id}/rotate_secret`)).json;
    expect(rotated.secret).toMatch(/^[\x21-\x7e]{64}$/);
    expect(rotated.secret).not.toBe(secret);
    const paused = (await api.ask("PATCH", `/v1/webhooks/${shown.id}`, { body: { active: false } })).json;
    expect([paused.active, paused.secret_hint]).toEqual([false, rotated.secret_hint]);
  });

  test.each([
    ["plain HTTP", "http://hooks.test/a"],
    ["another scheme", "ftp://hooks.test/a"],
    ["no URL", "hooks.test/a"],
    ["userinfo", "https://user:pw@hooks.test/a"],
    ["a fragment", "https://hooks.test/a#b"],
    ["a private address", "https://10.0.0.1/"],
    ["a link-local address", "https://169.254.169.254/latest"],
    ["a loopback address of IPv6", "https://[::1]/"],
    ["an IPv4-mapped address", "https://[::ffff:10.0.0.1]/"],
    ["a private address in another spelling", "https://0x0a000001/"],
    ["a unique local address", "https://[fd00::1]/"],
    ["nothing", undefined],
  ])("is not made of %s", async (_name, url) => {
    const { status, json } = await create({ url });
    expect([status, json.code, json.field]).toEqual([422, "validation_failed", "url"]);
  });

  test.each(types)("subscribes to %s alone", async (type) => {
    const { status, json } = await create({ url: "https://hooks.test/a", events: [type] });
    expect([status, json.events]).toEqual([201, [type]]);
  });

  test.each([
    ["none", [], 422, "events"],
    ["an unknown type", ["message.lost"], 422, "events[0]"],
  ])("subscribes not to %s", async (_name, events, status, field) => {
    const answer = await create({ url: "https://hooks.test/a", events });
    expect([answer.status, answer.json.field]).toEqual([status, field]);
  });

  test("several have lists of their own, and each is sent what is on its own", async () => {
    const bounces = (await create({ url: "https://hooks.test/b", events: ["message.bounced"] })).json.id;
    const arrivals = (await create({ url: "https://hooks.test/d", events: ["message.delivered"] })).json.id;
    const { id } = (await send({ to: ["bounce@simulator.svc", "delivered@simulator.svc"] })).json;
    const to = async (event: string) =>
      (await eventsOf(id, event)).deliveries.map((one: { webhook_id: string }) => one.webhook_id);
    const [bounced, arrived] = [await to("message.bounced"), await to("message.delivered")];
    expect([bounced.includes(bounces), bounced.includes(arrivals)]).toEqual([true, false]);
    expect([arrived.includes(bounces), arrived.includes(arrivals)]).toEqual([false, true]);
  });
});

describe("an event", () => {
  const common = {
    message_id: idOf("msg"),
    from: "a@ok.test",
    subject: "Hello",
    tags: ["e"],
    metadata: { k: "v" },
    test: true,
  };
  const reply = { smtp_code: words, smtp_status: words, smtp_response: words };
  test.each([
    ["message.delivered", "delivered", { ...reply, attempt: 1, delivery_time_ms: number }],
    [
      "message.deferred",
      "defer",
      { ...reply, attempt: 1, next_attempt_at: time, bounce_type: "soft", bounce_classification: words },
    ],
    [
      "message.bounced",
      "bounce",
      {
        bounce_type: "hard",
        bounce_classification: "invalid_recipient",
        smtp_code: "550",
        smtp_status: "5.1.1",
        source: "smtp",
      },
    ],
  ])(
    "%s is an envelope with data of its own, the same for a webhook and in the list",
    async (event, name, data) => {
      const hook = await api.ask("POST", "/v1/webhooks", { body: { url: receiver.url, events: [event] } });
      const { id } = (await send({ to: `${name}@simulator.svc`, tags: ["e"], metadata: { k: "v" } })).json;
      const { deliveries, ...envelope } = await eventsOf(id, event);
      expect(envelope).toEqual({
        event,
        event_id: idOf("evt"),
        occurred_at: time,
        received_at: time,
        data: expect.objectContaining({ ...common, message_id: id, to: `${name}@simulator.svc`, ...data }),
      });
      for (const field of ["receiving_mta", "sending_ip"]) expect(envelope.data).toHaveProperty(field);
      const delivery = deliveries.find((one: { webhook_id: string }) => one.webhook_id === hook.json.id);
      expect(Object.keys(delivery).toSorted()).toEqual([
        "attempts",
        "last_attempt_at",
        "last_status",
        "status",
        "webhook_id",
      ]);
      const sent = await eventually(async () =>
        receiver.requests.find((one) => one.eventId === envelope.event_id),
      );
      expect(sent.body.toString()).toBe(JSON.stringify(envelope));
      expect(sent.headers["x-svc-event-id"]).toBe(envelope.event_id);
      await api.ask("DELETE", `/v1/webhooks/${hook.json.id}`);
    },
  );
});

describe("an IP pool", () => {
  test("is identified by its name and shows its addresses", async () => {
    const made = await api.ask("POST", "/v1/ip_pools", { body: { name: "receipts", description: "d" } });
    expect([made.status, made.json]).toMatchObject([
      201,
      { name: "receipts", description: "d", is_default: false, ips: [] },
    ]);
    api.program.dns.set("m.ok.test", "A", ["127.0.0.44"]);
    const ip = await api.ask("POST", "/v1/ip_pools/receipts/ips", {
      body: { ip_address: "127.0.0.44", hostname: "m.ok.test" },
    });
    const address = {
      ip_address: "127.0.0.44",
      hostname: "m.ok.test",
      weight: number,
      status: expect.stringMatching(/^(active|warming|paused|listed|unbindable)$/),
      blacklists: [],
    };
    expect([ip.status, ip.json]).toMatchObject([201, address]);
    for (const field of ["warmup", "ptr", "ptr_ok"]) expect(ip.json).toHaveProperty(field);
    expect((await api.ask("GET", "/v1/ip-pools/receipts")).json).toMatchObject({
      name: "receipts",
      ips: [address],
    });
    expect((await api.ask("GET", "/v1/ips")).json.data).toMatchObject([address]);
    expect((await api.ask("DELETE", "/v1/ip_pools/receipts")).status).toBe(409);
    expect((await api.ask("DELETE", "/v1/ip_pools/default")).status).toBe(409);
  });

  test.each([
    ["a", 201],
    ["0-9_z", 201],
    ["a".repeat(64), 201],
    ["a".repeat(65), 422],
    ["", 422],
    ["-a", 422],
    ["_a", 422],
    ["A", 422],
    ["a.b", 422],
    ["a b", 422],
  ])("name %j: %i", async (name, status) => {
    const answer = await api.ask("POST", "/v1/ip_pools", { body: { name } });
    expect([answer.status, status === 422 ? answer.json.field : "name"]).toEqual([status, "name"]);
  });

  test("an address that this machine does not have is taken, and said to be unbindable", async () => {
    await api.ask("POST", "/v1/ip_pools", { body: { name: "far" } });
    for (const ip_address of ["192.0.2.1", "2001:db8::1"]) {
      const { status, json } = await api.ask("POST", "/v1/ip_pools/far/ips", { body: { ip_address } });
      expect([status, json.status]).toEqual([201, "unbindable"]);
    }
  });
});

describe("an error object", () => {
  const problem = (status: number, code: string, path: string) => ({
    type: `https://mail.svc.test/errors/${code}`,
    title: words,
    status,
    detail: words,
    instance: path,
    code,
    request_id: idOf("req"),
  });
  test("is a problem (RFC 9457) with these fields, whose type is a page that is served", async () => {
    const { json, headers } = await api.ask("GET", "/v1/messages/nothing");
    expect(headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect([json, json.request_id]).toEqual([
      problem(404, "resource_not_found", "/v1/messages/nothing"),
      headers["x-request-id"],
    ]);
    const page = await api.ask("GET", new URL(json.type).pathname, { key: null });
    expect([page.status, page.text.includes("resource_not_found")]).toEqual([200, true]);
  });
  test("lists every fault of a request at once, the first of them above", async () => {
    const { json } = await send({ from: "x", to: "y", subject: "a\nb", tags: [1] });
    expect(json).toMatchObject({ ...problem(422, "invalid_email_address", "/v1/messages"), field: "from" });
    expect(json.errors.map((one: { field: string }) => one.field)).toEqual([
      "from",
      "to",
      "subject",
      "tags[0]",
    ]);
  });
  test("is an envelope for what a key may not", async () => {
    const { json, headers } = await api.ask("GET", "/v1/webhooks", { key: api.keys.send });
    expect(headers["content-type"]).toMatch(/^application\/json/);
    expect(json).toEqual({
      error: {
        code: "scope_insufficient",
        message: words,
        request_id: headers["x-request-id"],
        required_scope: "admin",
      },
    });
  });
});

describe("a list", () => {
  test.each([
    ["/v1/messages", 200],
    ["/v1/suppressions", 200],
    ["/v1/events", 1000],
    ["/v1/webhooks", 200],
    ["/v1/ip_pools", 200],
    ["/v1/ips", 200],
    ["/v1/domains", 200],
  ])("%s has pages of at most %i, and refuses what it does not know", async (path, most) => {
    const { status, json } = await api.ask("GET", `${path}?limit=${most}&nonsense=1`);
    expect([status, Object.keys(json).toSorted()]).toEqual([200, ["data", "has_more", "next_cursor"]]);
    for (const [field, value] of [
      ["limit", "0"],
      ["limit", `${most + 1}`],
      ["limit", "x"],
      ["cursor", "no%20cursor!"],
    ]) {
      const refused = await api.ask("GET", `${path}?${field}=${value}`);
      expect([refused.status, refused.json.code, refused.json.field]).toEqual([
        400,
        "invalid_request",
        field,
      ]);
    }
  });

  test("is walked to its end by its cursor, each thing once", async () => {
    await api.ask("POST", "/v1/suppressions", {
      body: { emails: Array.from({ length: 23 }, (_, i) => `w${i}@walk.test`) },
    });
    const seen: string[] = [];
    let query = "domain=walk.test&limit=5";
    for (let pages = 0; pages < 10; pages++) {
      const { data, has_more, next_cursor } = (await api.ask("GET", `/v1/suppressions?${query}`)).json;
      seen.push(...data.map((one: { email: string }) => one.email));
      expect(has_more).toBe(next_cursor !== null);
      if (!has_more) break;
      query = `domain=walk.test&limit=5&cursor=${encodeURIComponent(next_cursor)}`;
    }
    expect([seen.length, new Set(seen).size]).toEqual([23, 23]);
  });
});

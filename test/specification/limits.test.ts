// The specification of the API, "Other limits and constants", and the counts of a message that were decided beyond it:
// the last value that is taken and the first that is not. The ten seconds and ten attempts of webhooks are in
// webhooks.test.ts; the tolerance of timestamps and the retry cap are the clients' own.
import { once } from "node:events";
import { connect as connectTls, type SecureVersion } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRetention } from "../../src/retention/retention.ts";
import { loadConfig } from "../../src/config.ts";
import { silentLog } from "../../src/log.ts";
import type { Store } from "../../src/store/store.ts";
import { list, startHttp, text, type Harness } from "../http/harness.ts";
import { newDirectory, newEndpoint, newEvent, openSqlite, owner, took } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { day, hour, mail, minute, second, startCustomer, type Customer } from "./customer.ts";

let customer: Customer;
beforeAll(async () => {
  customer = await startCustomer();
});
afterAll(() => customer.stop());

const send = (over: Record<string, unknown>, headers = {}) =>
  customer.ask("POST", "/v1/messages", { key: "test", body: { ...mail, ...over }, headers });

test("a message has 26,214,400 bytes at most, and one more is 413", async () => {
  const line = `${"x".repeat(76)}\r\n`;
  const textOf = (bytes: number): string => {
    const rest = bytes % line.length;
    return rest === 0
      ? `${line.repeat(bytes / line.length - 1)}${"x".repeat(78)}`
      : line.repeat(Math.floor(bytes / line.length)) + "x".repeat(rest);
  };
  const sendAt = customer.at(hour);
  const sizeOf = async (id: string): Promise<number> =>
    (await customer.ask("GET", `/v1/messages/${id}`)).json.size_bytes;
  const small = await send({ text: textOf(10_010), send_at: sendAt });
  const around = (await sizeOf(small.json.id)) - 10_010;
  const limit = 26_214_400;
  const largest = await send({ text: textOf(limit - around), send_at: sendAt });
  expect([largest.status, await sizeOf(largest.json.id)]).toEqual([202, limit]);
  const larger = await send({ text: textOf(limit - around + 1), send_at: sendAt });
  expect([larger.status, larger.json.code]).toEqual([413, "message_too_large"]);
});

test("send_at is 72 hours ahead at most", async () => {
  const latest = await send({ send_at: customer.at(72 * hour) });
  expect([latest.status, latest.json.send_at]).toEqual([202, customer.at(72 * hour)]);
  const later = await send({ send_at: customer.at(72 * hour + 1) });
  expect([later.status, later.json.code, later.json.field]).toEqual([
    422,
    "scheduling_window_exceeded",
    "send_at",
  ]);
});

test("a bulk add takes 1,000 addresses, and of 1,001 none", async () => {
  const add = (count: number, at: string) =>
    customer.ask("POST", "/v1/suppressions", {
      body: { emails: Array.from({ length: count }, (_, n) => `a${n}@${at}`) },
    });
  const most = await add(1000, "bulk.test");
  expect([most.status, most.json.added]).toEqual([201, 1000]);
  const more = await add(1001, "over.test");
  expect([more.status, more.json.code, more.json.field]).toEqual([422, "validation_failed", "emails"]);
  expect((await customer.ask("GET", "/v1/suppressions?domain=over.test")).json.data).toEqual([]);
});

test.each([
  [
    "50 recipients over to, cc and bcc",
    "to",
    (more: number) => ({
      to: Array.from({ length: 48 + more }, (_, n) => `a${n}@far.test`),
      cc: "b@far.test",
      bcc: "c@far.test",
    }),
  ],
  ["998 characters of subject", "subject", (more: number) => ({ subject: "s".repeat(998 + more) })],
  [
    "50 attachments",
    "attachments",
    (more: number) => ({ attachments: Array(50 + more).fill({ filename: "a.txt", content: "aGk=" }) }),
  ],
  ["10 tags", "tags", (more: number) => ({ tags: Array.from({ length: 10 + more }, (_, n) => `t${n}`) })],
  ["128 characters of a tag", "tags[0]", (more: number) => ({ tags: ["t".repeat(128 + more)] })],
  [
    "20 pairs of metadata",
    "metadata",
    (more: number) => ({
      metadata: Object.fromEntries(Array.from({ length: 20 + more }, (_, n) => [`k${n}`, "v"])),
    }),
  ],
  [
    "50 headers",
    "headers",
    (more: number) => ({
      headers: Object.fromEntries(Array.from({ length: 50 + more }, (_, n) => [`X-H${n}`, "v"])),
    }),
  ],
] as const)("a message has %s at most", async (_what, field, over) => {
  const sendAt = { send_at: customer.at(hour) };
  expect((await send({ ...over(0), ...sendAt })).status).toBe(202);
  const { status, json } = await send({ ...over(1), ...sendAt });
  expect([status, json.code, json.field]).toEqual([422, "validation_failed", field]);
});

test("a batch has 100 messages at most", async () => {
  const batch = (count: number) =>
    customer.ask("POST", "/v1/messages/batch", { key: "test", body: { messages: Array(count).fill(mail) } });
  const most = await batch(100);
  expect([most.status, most.json.data.length]).toEqual([200, 100]);
  const more = await batch(101);
  expect([more.status, more.json.code, more.json.field]).toEqual([422, "validation_failed", "messages"]);
});

test("an Idempotency-Key is the same request for 24 hours", async () => {
  const ask = () => send({}, { "idempotency-key": "a-day" });
  const first = await ask();
  await customer.clock.advance(day);
  const again = await ask();
  expect([again.status, again.text, again.headers["idempotency-replayed"]]).toEqual([
    202,
    first.text,
    "true",
  ]);
  await customer.clock.advance(1);
  const later = await ask();
  expect([later.status, later.headers["idempotency-replayed"]]).toEqual([202, undefined]);
  expect(later.json.id).not.toBe(first.json.id);
});

test("50 failures in a row lock their source out for five minutes, and no other", async () => {
  const ask = (ip: string, key: string) => customer.ask("GET", "/v1/messages", { ip, key });
  const [bad, other] = ["203.0.113.50", "203.0.113.51"];
  for (let n = 0; n < 49; n++) expect((await ask(bad, "wrong")).status).toBe(401);
  expect((await ask(bad, "admin")).status, "49 are none too many, and a success begins later").toBe(200);
  for (let n = 0; n < 50; n++) expect((await ask(bad, "wrong")).status).toBe(401);
  const locked = await ask(bad, "admin");
  expect([locked.status, locked.json.error]).toMatchObject([
    403,
    { code: "source_ip_locked", retry_after_seconds: 300 },
  ]);
  expect((await ask(other, "admin")).status).toBe(200);
  await customer.clock.advance(5 * minute - 1);
  expect((await ask(bad, "admin")).status).toBe(403);
  await customer.clock.advance(1);
  expect((await ask(bad, "admin")).status).toBe(200);
});

describe("kept by default", () => {
  const clock = new ManualClock();
  let store: Store;
  let http: Harness;
  beforeAll(async () => {
    store = await openSqlite(newDirectory(), clock);
    http = await startHttp({ opened: { store, clock } });
  });
  afterAll(() => http.stop());

  const prune = async (): Promise<void> => {
    const loaded = loadConfig({
      flags: { config: "/svc.yaml" },
      env: {},
      home: "/home/svc",
      uid: 1000,
      readFile: (path) => (path === "/svc.yaml" ? '{"hostname":"mail.svc.test"}' : null),
      listDir: () => [],
    });
    if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
    const { retention } = loaded.config;
    const over = createRetention({ store, retention, clock, log: silentLog })
      .run()
      .then(() => true);
    while (!(await Promise.race([over, clock.advance(0).then(() => false)]))) continue;
  };
  const ids = async (ask: { path: string; admin?: boolean }, field: string): Promise<string[]> => {
    const { status, json } = await http.ask(ask);
    expect(status).toBe(200);
    return list(json["data"]).map((row) => text(row[field]));
  };

  test("a dead-lettered event is retrievable for 30 days after its last attempt", async () => {
    const account = http.account.key;
    const hook = await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 2 }));
    const event = newEvent({ accountKey: account, receivedAt: clock.now(), typeBit: 2 });
    await store.recordEvent(event);
    await clock.advance(23 * hour + 42 * minute);
    const now = clock.now();
    const claim = {
      owner,
      accountKey: hook.accountKey,
      endpointKey: hook.key,
      limit: 1,
      now,
    };
    const { deliveries } = await store.claimDeliveries(claim);
    await store.settleDeliveries(
      deliveries.map((one) => ({ ...one, ...took, at: now, status: 500, result: { kind: "dead_lettered" } })),
    );
    await clock.advance(30 * day - second);
    await prune();
    expect(await ids({ path: "/v1/events?delivery_status=dead_lettered" }, "event_id")).toEqual([event.id]);
    await clock.advance(2 * second);
    await prune();
    expect(await ids({ path: "/v1/events" }, "event_id")).toEqual([]);
  });

  test("the audit log is kept for 90 days", async () => {
    const body = { name: "audited", scope: "send" };
    const made = await http.ask({ admin: true, method: "POST", path: "/v1/keys", body });
    expect(made.status).toBe(201);
    const targets = () => ids({ admin: true, path: "/v1/audit?action=keys.create" }, "target");
    await clock.advance(90 * day - second);
    await prune();
    expect(await targets()).toEqual([made.json["id"]]);
    await clock.advance(2 * second);
    await prune();
    expect(await targets()).toEqual([]);
  });
});

describe("TLS", () => {
  let secure: Customer;
  beforeAll(async () => {
    secure = await startCustomer({ tls: true });
  });
  afterAll(() => secure.stop());

  const shake = async (port: number, version: SecureVersion): Promise<string> => {
    const socket = connectTls({
      port,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      minVersion: version,
      maxVersion: version,
      ciphers: "DEFAULT:@SECLEVEL=0",
    });
    try {
      await once(socket, "secureConnect");
      return String(socket.getProtocol());
    } catch (error) {
      return error instanceof Error && "code" in error ? String(error.code) : String(error);
    } finally {
      socket.destroy();
    }
  };

  test.each([
    ["TLSv1", "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION"],
    ["TLSv1.1", "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION"],
    ["TLSv1.2", "TLSv1.2"],
    ["TLSv1.3", "TLSv1.3"],
  ] as const)("a handshake of %s ends in %s, for the API and for SMTP", async (version, outcome) => {
    for (const port of [secure.program.port, secure.program.mailPorts("smtps")[0] ?? 0])
      expect(await shake(port, version)).toBe(outcome);
  });

  test("plain HTTP is answered nothing that the API would", async () => {
    const answer = await secure.program.raw([
      "GET /v1/messages HTTP/1.1\r\nHost: mail.svc.test\r\nConnection: close\r\n\r\n",
    ]);
    expect(answer).not.toMatch(/^HTTP\/1\.1 [23]/);
    expect(answer).not.toContain("{");
  });
});

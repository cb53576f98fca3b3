import { createServer } from "node:net";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import { ManualClock, settle } from "../support/clock.ts";
import type { ReceiverOptions } from "../support/webhook-receiver.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";
import type { Names } from "./rig.ts";
import { rig, scheduleMs, secret } from "./rig.ts";

/** The room, started, with one endpoint at a receiver of its own. */
async function wired(
  options: {
    url?: (port: number) => string;
    names?: Names;
    allowNetworks?: string[];
    trust?: boolean;
  } & Partial<ReceiverOptions> = {},
) {
  const clock = new ManualClock();
  const receiver = await startWebhookReceiver({ secret, now: () => clock.now(), ...options });
  const config = {
    caFile: options.trust === false ? null : receiver.caFile,
    ...(options.allowNetworks && { allowNetworks: options.allowNetworks }),
  };
  const all = rig(config, options.names, clock);
  const url = options.url?.(receiver.port) ?? receiver.url;
  const endpoint = all.store.addEndpoint({ key: 1, url, secret });
  await all.webhooks.start();
  onTestFinished(async () => {
    const stopped = all.webhooks.stop();
    await clock.advance(3000);
    await stopped;
    await receiver.stop();
  });
  return { ...all, receiver, endpoint };
}

test("an event arrives once, signed over its raw bytes, with the headers of the reference", async () => {
  const { store, webhooks, receiver } = await wired();
  store.record(1, 1);
  webhooks.kick();
  await store.settled(1);
  expect(receiver.requests).toHaveLength(1);
  expect(receiver.requests[0]).toMatchObject({
    problem: null,
    path: "/hook",
    event: "message.delivered",
    eventId: "evt_1",
    attempt: 1,
  });
  expect(receiver.requests[0]?.body.toString()).toBe(store.rows[0]?.body);
  expect(receiver.requests[0]?.headers["user-agent"]).toMatch(/^svc\/\S+$/);
  expect(receiver.requests[0]?.headers).not.toHaveProperty("x-svc-signature-previous");
  expect(store.results).toMatchObject([{ status: 200, result: { kind: "delivered" } }]);
});

test("ten attempts over 23 h 42 min, each with a timestamp and signature of its own and the same bytes, then a dead letter", async () => {
  const { clock, store, webhooks, receiver, letters } = await wired();
  receiver.answer(() => ({ status: 500 }));
  store.record(1, 1);
  webhooks.kick();
  for (const [index, delay] of [...scheduleMs, 0].entries()) {
    await store.settled(index + 1);
    expect(letters).toHaveLength(index === 9 ? 1 : 0);
    await clock.advance(delay);
  }
  const seconds = receiver.requests.map(({ headers }) => Number(headers["x-svc-timestamp"]));
  expect(seconds.map((at) => at - (seconds[0] ?? 0))).toEqual([
    0, 30, 150, 750, 2550, 6150, 13350, 27750, 56550, 85350,
  ]);
  expect(receiver.requests.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(receiver.requests.map(({ problem }) => problem)).toEqual(Array(10).fill(null));
  expect(new Set(receiver.requests.map(({ body }) => body.toString("hex"))).size).toBe(1);
  expect(new Set(receiver.requests.map(({ headers }) => headers["x-svc-signature"])).size).toBe(10);
  expect(letters).toMatchObject([
    { endpoint: { id: "whk_1" }, eventId: "evt_1", attempts: 10, lastStatus: 500 },
  ]);
  await clock.advance(48 * 3_600_000);
  expect(receiver.requests).toHaveLength(10);
});

test("an endpoint that hangs delays only itself, and its attempts fail after ten seconds", async () => {
  const { clock, store, webhooks, receiver } = await wired();
  receiver.answer(() => "hang");
  const healthy = await startWebhookReceiver({
    secret,
    now: () => clock.now(),
    certificate: receiver.identity,
  });
  onTestFinished(() => healthy.stop());
  store.addEndpoint({ key: 2, url: healthy.url, secret });
  store.record(1, 100);
  store.record(2, 100);
  webhooks.kick();
  await store.settled(100);
  expect(new Set(store.results.map(({ endpointKey, status }) => `${endpointKey} ${status}`))).toEqual(
    new Set(["2 200"]),
  );
  await receiver.received(2);
  await clock.advance(9_999);
  expect(store.results).toHaveLength(100);
  await clock.advance(1);
  await store.settled(102);
  expect(store.results.slice(100, 102)).toEqual(
    Array(2).fill(
      expect.objectContaining({
        endpointKey: 1,
        status: null,
        result: { kind: "retry", dueAt: clock.now() + 30_000 },
      }),
    ),
  );
});

test("a 2xx whose body never ends is a failure when the ten seconds are over", async () => {
  const { clock, store, webhooks, receiver } = await wired();
  receiver.answer(() => ({ status: 200, drip: true }));
  store.record(1, 1);
  webhooks.kick();
  await receiver.received(1);
  await clock.advance(10_000);
  await store.settled(1);
  expect(store.results).toMatchObject([{ status: null, result: { kind: "retry" } }]);
});

test("a long answer is not read to its end, and its status counts", async () => {
  const { store, webhooks, receiver } = await wired();
  receiver.answer(() => ({ status: 200, body: "x".repeat(5_000_000) }));
  store.record(1, 1);
  webhooks.kick();
  await store.settled(1);
  expect(store.results).toMatchObject([{ status: 200, result: { kind: "delivered" } }]);
});

test("a connection that is dropped is a failure, tried again on the schedule", async () => {
  const { clock, store, webhooks, receiver } = await wired();
  receiver.answer(() => "drop");
  store.record(1, 1);
  webhooks.kick();
  await store.settled(1);
  receiver.answer(() => ({ status: 204 }));
  await clock.advance(30_000);
  await store.settled(2);
  expect(store.rows[0]?.status).toBe("delivered");
});

test.each([301, 302, 303, 307, 308])("a %d is a failure and is not followed", async (status) => {
  const { store, webhooks, receiver } = await wired();
  receiver.answer(() => ({ status, headers: { location: `https://127.0.0.1:${receiver.port}/elsewhere` } }));
  store.record(1, 1);
  webhooks.kick();
  await store.settled(1);
  expect(store.results).toMatchObject([{ status, result: { kind: "retry" } }]);
  expect(receiver.requests.map(({ path }) => path)).toEqual(["/hook"]);
});

test("many events share a few kept connections", async () => {
  const { store, webhooks, receiver } = await wired();
  store.record(1, 500);
  webhooks.kick();
  await store.settled(500);
  expect(receiver.connections()).toBeLessThanOrEqual(32);
  expect(new Set(receiver.requests.map(({ eventId }) => eventId)).size).toBe(500);
  expect(receiver.requests.every(({ problem, duplicate }) => problem === null && !duplicate)).toBe(true);
});

test("during a rotation a receiver that still has the old secret verifies by the previous signature", async () => {
  const { clock, store, webhooks, receiver } = await wired();
  store.addEndpoint({
    key: 1,
    url: receiver.url,
    secret: "n".repeat(64),
    previousSecret: secret,
    previousSecretUntil: clock.now() + 60_000,
  });
  store.record(1, 1);
  webhooks.kick();
  await store.settled(1);
  expect(receiver.requests).toMatchObject([{ problem: null, byPreviousSecret: true }]);
  await clock.advance(60_000);
  store.record(1, 1);
  webhooks.kick();
  await store.settled(2);
  expect(store.results[1]).toMatchObject({ status: 401 });
});

test.each([
  ["self-signed and not trusted", /self.signed certificate/, { trust: false }],
  ["expired", /expired/, { certificate: { notAfter: new Date(Date.now() - 3_600_000) } }],
  ["for another host", /altnames/, { certificate: { names: ["other.test"] } }],
  ["TLS 1.1 at most", /protocol version/, { maxVersion: "TLSv1.1" as const }],
])("a receiver that is %s gets nothing", async (_what, why, options) => {
  const { store, webhooks, receiver, failures } = await wired(options);
  store.record(1, 1);
  webhooks.kick();
  await store.settled(1);
  expect(store.results).toMatchObject([{ status: null, result: { kind: "retry" } }]);
  expect(failures).toEqual([expect.stringMatching(why)]);
  expect(receiver.requests).toEqual([]);
});

test.each<[string, (port: number) => string, Names]>([
  ["a literal address", (port) => `https://127.0.0.1:${port}/`, {}],
  ["a short one", (port) => `https://127.1:${port}/`, {}],
  ["a number", (port) => `https://2130706433:${port}/`, {}],
  ["a mapped one", (port) => `https://[::ffff:127.0.0.1]:${port}/`, {}],
  ["a NAT64 one", (port) => `https://[64:ff9b::7f00:1]:${port}/`, {}],
  ["ideographic dots", (port) => `https://127。0。0。1:${port}/`, {}],
  ["localhost", (port) => `https://localhost:${port}/`, {}],
  ["a name", (port) => `https://rebound.test:${port}/`, { "rebound.test": { a: ["127.0.0.1"] } }],
  ["a name with a dot", (port) => `https://rebound.test.:${port}/`, { "rebound.test": { a: ["127.0.0.1"] } }],
  [
    "a mapped AAAA",
    (port) => `https://rebound.test:${port}/`,
    { "rebound.test": { aaaa: ["::ffff:127.0.0.1"] } },
  ],
  [
    "a mixed set",
    (port) => `https://mixed.test:${port}/`,
    { "mixed.test": { a: ["93.184.215.14", "127.0.0.1"] } },
  ],
])("nothing connects to loopback by %s", async (_what, url, names) => {
  const { store, webhooks, receiver, endpoint, failures } = await wired({ url, names, allowNetworks: [] });
  store.record(1, 1);
  webhooks.kick();
  await store.settled(1);
  expect(store.results).toMatchObject([{ status: null, result: { kind: "retry" } }]);
  expect(failures).toEqual([expect.stringContaining("not a public address")]);
  expect(await webhooks.test(endpoint)).toMatchObject({ delivered: false, status: null });
  await settle();
  expect(receiver.connections()).toBe(0);
});

test("a name that was public when it was configured is refused when it leads to loopback at the connection", async () => {
  const names: Names = { "rebinding.test": { a: ["93.184.215.14"] } };
  const { store, webhooks, receiver, endpoint } = await wired({
    url: (port) => `https://rebinding.test:${port}/`,
    names,
    allowNetworks: [],
  });
  await webhooks.checkUrl(endpoint.url);
  names["rebinding.test"] = { a: ["127.0.0.1"] };
  store.record(1, 1);
  webhooks.kick();
  await store.settled(1);
  expect(receiver.connections()).toBe(0);
});

test("the address that was judged is the one dialled: a name is looked up once a connection", async () => {
  let asked = 0;
  const names: Names = {
    get "hook.test"() {
      // The A and the AAAA question of one look-up see loopback, which is allowed here; a second look-up would not.
      return asked++ < 2 ? { a: ["127.0.0.1"] } : { a: ["10.0.0.1"] };
    },
  };
  const { store, webhooks, receiver } = await wired({
    url: (port) => `https://hook.test:${port}/hook`,
    names,
    certificate: { names: ["hook.test"] },
  });
  store.record(1, 1);
  webhooks.kick();
  await store.settled(1);
  expect(receiver.requests).toMatchObject([{ problem: null }]);
  expect(asked).toBe(2);
});

test("a test sends one synthetic event, marked as such, and reports what the receiver answered", async () => {
  const { store, webhooks, receiver, endpoint } = await wired();
  receiver.answer(() => ({ status: 503 }));
  const result = await webhooks.test(endpoint, "message.complained");
  expect(result).toEqual({
    delivered: false,
    status: 503,
    durationMs: expect.any(Number),
    failure: null,
    eventId: receiver.requests[0]?.eventId,
  });
  expect(receiver.requests[0]).toMatchObject({ problem: null, event: "message.complained", attempt: 1 });
  expect(JSON.parse(receiver.requests[0]?.body.toString() ?? "")).toMatchObject({
    data: { test: true, feedback_type: "abuse" },
  });
  expect(store.results).toEqual([]);
});

test.each([
  ["whose name does not exist", "https://gone.test/", /^gone\.test does not resolve$/],
  ["that nobody listens at", "https://127.0.0.1:2/", /^connect ECONNREFUSED 127\.0\.0\.1:2$/],
  ["of two addresses that nobody listens at", "https://two.test:2/", /^connect ECONNREFUSED 127\.0\.0\.2:2/],
])("a test of an endpoint %s says why there was no answer", async (_what, url, failure) => {
  const { store, webhooks } = rig({}, { "two.test": { a: ["127.0.0.2", "127.0.0.3"] } });
  const endpoint = store.addEndpoint({ key: 1, url, secret });
  expect(await webhooks.test(endpoint)).toMatchObject({
    delivered: false,
    status: null,
    failure: expect.stringMatching(failure) as string,
  });
});

test("a test of an event type that does not exist is refused", async () => {
  const { webhooks, endpoint } = await wired();
  await expect(webhooks.test(endpoint, "message.exploded")).rejects.toThrow(Refusal);
  await expect(webhooks.test(endpoint, "toString")).rejects.toThrow(Refusal);
});

test("a listener that is not a web server is a failure", async () => {
  const { store, webhooks } = await wired();
  const noise = createServer((socket) => socket.end("SSH-2.0-OpenSSH\r\n")).listen(0, "127.0.0.1");
  onTestFinished(() => void noise.close());
  await once(noise, "listening");
  const address = noise.address();
  store.addEndpoint({
    key: 1,
    url: `https://127.0.0.1:${typeof address === "object" ? address?.port : 0}/`,
    secret,
  });
  store.record(1, 1);
  webhooks.kick();
  await store.settled(1);
  expect(store.results).toMatchObject([{ status: null, result: { kind: "retry" } }]);
});

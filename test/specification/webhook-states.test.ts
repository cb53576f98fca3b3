// The states of a webhook's delivery of one event, of the specification of the API: attempt n, delivered, dead-lettered.
// The program is the whole one, the receiver a customer's, and the hours between are skipped.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startReceiver, type Receiver } from "../support/smtp-receiver.ts";
import { TravelClock } from "../support/travel-clock.ts";
import { startWebhookReceiver, type Reaction, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { eventually, sound, startAsking, type Asking } from "./asking.ts";

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const delays = [
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  hour,
  2 * hour,
  4 * hour,
  8 * hour,
  8 * hour,
];

interface Attempt {
  attempt: number;
  status: string;
  response_status: number | null;
  error: string | null;
  duration_ms: number;
  attempted_at: string;
  next_attempt_at: string | null;
}

const clock = new TravelClock();
let api: Asking;
let operations: Receiver;
/** Its certificate is one that the program trusts. */
let trusted: WebhookReceiver;
const receivers: WebhookReceiver[] = [];

beforeAll(async () => {
  operations = await startReceiver({ address: "127.0.0.31" });
  trusted = await startWebhookReceiver({ secret: "", now: () => clock.now() });
  api = await startAsking({
    clock,
    config: {
      webhooks: { allow_networks: ["127.0.0.0/8", "::1/128"], ca_file: trusted.caFile },
      operations: { email: "ops@ops.test" },
      outbound: { port: operations.port, allow_networks: ["127.0.0.0/8"] },
    },
  });
  api.program.dns.set("ops.test", "MX", ["10 mx.ops.test"]);
  api.program.dns.set("mx.ops.test", "A", ["127.0.0.31"]);
  for (const name of ["localhost", "other.test"]) api.program.dns.set(name, "A", ["127.0.0.1"]);
});
afterAll(async () => {
  await api?.stop();
  await Promise.all([operations, trusted, ...receivers].map((one) => one?.stop()));
});

interface Hook {
  id: string;
  receiver: WebhookReceiver;
}

/** An endpoint with a receiver of its own, which reacts so. */
async function hooked(
  react: (n: number) => Reaction,
  {
    url = (port) => `https://localhost:${port}/hook`,
    trust = true,
    maxVersion = "TLSv1.3",
  }: { url?: (port: number) => string; trust?: boolean; maxVersion?: "TLSv1.1" | "TLSv1.3" } = {},
): Promise<Hook> {
  const options = { maxVersion, now: () => clock.now(), ...(trust ? { certificate: trusted.identity } : {}) };
  // The secret is known only once the endpoint is made, whose address has the receiver's port.
  const first = await startWebhookReceiver({ ...options, secret: "" });
  const { id, secret } = (
    await api.ask("POST", "/v1/webhooks", { body: { url: url(first.port), events: ["message.delivered"] } })
  ).json;
  await first.stop();
  const receiver = await startWebhookReceiver({ ...options, secret, port: first.port });
  receivers.push(receiver);
  let n = 0;
  receiver.answer(() => react(++n));
  return { id, receiver };
}
/** A message is delivered, which is one event. */
async function raise(): Promise<string> {
  const { id } = (await api.ask("POST", "/v1/messages", { body: sound() })).json;
  return eventually(
    async () =>
      (await api.ask("GET", `/v1/events?message_id=${id}`)).json.data[0]?.event_id as string | undefined,
  );
}
const attemptsOf = async (hook: string, eventId: string): Promise<Attempt[]> => {
  const { data } = (await api.ask("GET", `/v1/webhooks/${hook}/deliveries?limit=200`)).json;
  const own = data.filter((one: { event_id: string }) => one.event_id === eventId) as Attempt[];
  return own.toSorted((a, b) => a.attempt - b.attempt);
};
const attempt = (hook: string, eventId: string, n: number): Promise<Attempt> =>
  eventually(async () => (await attemptsOf(hook, eventId))[n - 1]);
const deliveryOf = async (eventId: string, hook: string): Promise<Record<string, unknown> | undefined> => {
  const [event] = (await api.ask("GET", `/v1/events?event_id=${eventId}`)).json.data;
  return event?.deliveries.find((one: { webhook_id: string }) => one.webhook_id === hook);
};
const remove = (hook: string) => api.ask("DELETE", `/v1/webhooks/${hook}`);

describe("a failed attempt is followed by the next, after its delay", () => {
  const answers: [string, Reaction][] = [
    ...[300, 301, 302, 307, 400, 401, 404, 410, 429, 500, 502, 503, 599].map((status): [string, Reaction] => [
      `${status}`,
      { status, ...(status < 400 ? { headers: { location: "https://localhost:1/" } } : {}) },
    ]),
    ["the connection is closed", "drop"],
    ["no answer within 10 seconds", "hang"],
    ["an answer that begins and does not end", { status: 200, drip: true }],
  ];
  test.each(answers)("%s", async (_name, reaction) => {
    const hook = await hooked((n) => (n === 1 ? reaction : { status: 204 }));
    const eventId = await raise();
    await hook.receiver.received(1);
    if (reaction === "hang" || (typeof reaction === "object" && reaction.drip)) {
      clock.skip(5_000);
      expect(await attemptsOf(hook.id, eventId)).toEqual([]);
      clock.skip(5_000);
    }
    const failed = await attempt(hook.id, eventId, 1);
    expect(failed).toMatchObject({ attempt: 1, status: "failed" });
    expect(failed.response_status).toBe(
      typeof reaction === "object" && !reaction.drip ? reaction.status : failed.response_status,
    );
    if (typeof reaction === "string")
      expect([failed.response_status, failed.error]).toEqual([null, expect.any(String)]);
    const ended = Date.parse(failed.attempted_at) + failed.duration_ms;
    expect(Math.abs(Date.parse(failed.next_attempt_at ?? "") - ended - 30 * second)).toBeLessThan(10_000);
    clock.skip(29 * second);
    expect(hook.receiver.requests.length).toBe(1);
    clock.skip(second);
    const [, second_] = await hook.receiver.received(2);
    expect([second_?.attempt, second_?.eventId, second_?.problem]).toEqual([2, eventId, null]);
    expect(await attempt(hook.id, eventId, 2)).toMatchObject({ status: "delivered", response_status: 204 });
    await remove(hook.id);
  });

  test.each([
    ["a certificate that nobody vouches for", { trust: false }],
    ["a certificate for another name", { url: (port: number) => `https://other.test:${port}/hook` }],
    ["a server that knows no TLS 1.2", { maxVersion: "TLSv1.1" as const }],
  ])("the TLS handshake fails: %s", async (_name, how) => {
    const hook = await hooked(() => ({ status: 200 }), how);
    const eventId = await raise();
    const failed = await attempt(hook.id, eventId, 1);
    expect(failed).toMatchObject({ status: "failed", response_status: null, error: expect.any(String) });
    expect(hook.receiver.connections()).toBeGreaterThan(0);
    expect([hook.receiver.requests.length, await deliveryOf(eventId, hook.id)]).toMatchObject([
      0,
      { status: "pending", attempts: 1 },
    ]);
    await remove(hook.id);
  });
});

describe("any attempt that is answered 2xx is the last", () => {
  test.each([200, 201, 202, 204, 299])("%i at the first", async (status) => {
    const hook = await hooked(() => ({ status }));
    const eventId = await raise();
    expect(await attempt(hook.id, eventId, 1)).toMatchObject({ status: "delivered", next_attempt_at: null });
    clock.skip(24 * hour);
    await raise();
    await hook.receiver.received(2);
    expect(hook.receiver.requests.filter((one) => one.eventId === eventId).length).toBe(1);
    expect(await deliveryOf(eventId, hook.id)).toMatchObject({
      status: "delivered",
      attempts: 1,
      last_status: status,
    });
    await remove(hook.id);
  });

  test("200 at the tenth", async () => {
    const hook = await hooked((n) => ({ status: n < 10 ? 500 : 200 }));
    const eventId = await raise();
    for (const [n, delay] of delays.entries()) {
      await attempt(hook.id, eventId, n + 1);
      clock.skip(delay);
    }
    expect(await attempt(hook.id, eventId, 10)).toMatchObject({ status: "delivered", next_attempt_at: null });
    expect(await deliveryOf(eventId, hook.id)).toMatchObject({ status: "delivered", attempts: 10 });
    await remove(hook.id);
  });
});

test("the tenth failure is dead-lettered: operations is notified, and the event stays for 30 days", async () => {
  const hook = await hooked(() => ({ status: 500 }));
  const eventId = await raise();
  const mails = operations.mails.length;
  for (const [n, delay] of delays.entries()) {
    const failed = await attempt(hook.id, eventId, n + 1);
    const ended = Date.parse(failed.attempted_at) + failed.duration_ms;
    expect([n + 1, failed.status]).toEqual([n + 1, "failed"]);
    expect(Math.abs(Date.parse(failed.next_attempt_at ?? "") - ended - delay)).toBeLessThan(10_000);
    expect(await deliveryOf(eventId, hook.id)).toMatchObject({ status: "pending", attempts: n + 1 });
    clock.skip(delay);
  }
  expect(await attempt(hook.id, eventId, 10)).toMatchObject({
    status: "dead_lettered",
    next_attempt_at: null,
  });
  expect(hook.receiver.requests.map((one) => [one.attempt, one.eventId, one.problem])).toEqual(
    Array.from({ length: 10 }, (_, n) => [n + 1, eventId, null]),
  );
  expect(new Set(hook.receiver.requests.map(({ body }) => body.toString())).size).toBe(1);
  const mail = (await operations.waitForMails(mails + 1)).at(-1);
  expect([mail?.rcptTo, mail?.data.toString()]).toEqual([["ops@ops.test"], expect.stringContaining(eventId)]);
  expect(await deliveryOf(eventId, hook.id)).toMatchObject({
    status: "dead_lettered",
    attempts: 10,
    last_status: 500,
  });

  clock.skip(29 * 24 * hour);
  const listed = await api.ask("GET", `/v1/events?delivery_status=dead_lettered&webhook_id=${hook.id}`);
  expect(listed.json.data.map((one: { event_id: string }) => one.event_id)).toEqual([eventId]);
  expect(hook.receiver.requests.length).toBe(10);
  await remove(hook.id);
});

test("paused, an endpoint is sent nothing and keeps its secret; resumed, what waited comes oldest first", async () => {
  const hook = await hooked(() => ({ status: 200 }));
  await api.ask("PATCH", `/v1/webhooks/${hook.id}`, { body: { active: false } });
  const raised = [await raise(), await raise(), await raise()];
  clock.skip(hour);
  await raise().then((eventId) => raised.push(eventId));
  expect(hook.receiver.requests.length).toBe(0);
  for (const eventId of raised)
    expect(await deliveryOf(eventId, hook.id)).toMatchObject({ status: "pending", attempts: 0 });
  await api.ask("PATCH", `/v1/webhooks/${hook.id}`, { body: { active: true } });
  const came = await hook.receiver.received(4);
  expect(came.map((one) => [one.eventId, one.attempt, one.problem])).toEqual(
    raised.map((id) => [id, 1, null]),
  );
  await remove(hook.id);
});

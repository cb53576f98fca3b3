// The specification of the API, "Delivery of webhooks", "Signature" and "Retry schedule": what a receiver of a customer
// sees, over HTTPS, and when, to the millisecond of a clock that only the test moves.
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startWebhookReceiver, type Received, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { day, hour, mail, minute, second, startCustomer, type Customer } from "./customer.ts";

let customer: Customer;
let receiver: WebhookReceiver;
const options = { secret: "", now: () => customer.clock.now(), certificate: { names: ["hook.test"] } };
beforeAll(async () => {
  receiver = await startWebhookReceiver(options);
  const webhooks = { allow_networks: ["127.0.0.0/8"], ca_file: receiver.caFile };
  customer = await startCustomer({ config: { webhooks } });
  for (const name of ["hook.test", "other.test"]) customer.program.dns.set(name, "A", ["127.0.0.1"]);
});
afterAll(async () => {
  await customer?.stop();
  await receiver?.stop();
});

interface Attempt {
  event_id: string;
  attempt: number;
  status: string;
  response_status: number | null;
  attempted_at: string;
  next_attempt_at: string | null;
}
interface Hook {
  id: string;
  /** What came to its path. */
  came(): Received[];
  /** Its attempts, the first one first, once there are so many. */
  attempts(count: number): Promise<Attempt[]>;
}

/** An endpoint at a path of its own, for the length of a test. */
async function withHook(use: (hook: Hook) => Promise<void>, host = "hook.test"): Promise<void> {
  const path = `/${receiver.requests.length}-${customer.clock.now()}`;
  const url = `https://${host}:${receiver.port}${path}`;
  const body = { url, events: ["message.delivered"] };
  const { status, json } = await customer.ask("POST", "/v1/webhooks", { body });
  expect(status).toBe(201);
  options.secret = json.secret;
  receiver.answer(() => ({ status: 200 }));
  await use({
    id: json.id,
    came: () => receiver.requests.filter((request) => request.path === path),
    attempts: (count) =>
      customer.eventually(async () => {
        const { json: page } = await customer.ask("GET", `/v1/webhooks/${json.id}/deliveries?limit=200`);
        const all = page.data as Attempt[];
        return all.length >= count && all.sort((a, b) => a.attempt - b.attempt);
      }),
  });
  await customer.ask("DELETE", `/v1/webhooks/${json.id}`);
}
const emit = async (subject = "Hello"): Promise<string> => {
  const sent = await customer.ask("POST", "/v1/messages", { key: "test", body: { ...mail, subject } });
  expect(sent.status).toBe(202);
  return sent.json.id;
};
const bodyOf = (request: Received | undefined): string => String(request?.body);
const header = (request: Received | undefined, name: string): string => String(request?.headers[name]);

describe("a request", () => {
  test("is a POST of the event envelope as JSON with the four headers, and its bytes are those of the event stream", () =>
    withHook(async ({ came, attempts }) => {
      const id = await emit("Grüße, ✓ \u{1f4ee}");
      await attempts(1);
      const [request] = came();
      expect(request?.problem).toBeNull();
      expect(header(request, "content-type")).toBe("application/json");
      const raw = bodyOf(request);
      const envelope = JSON.parse(raw);
      expect(envelope).toMatchObject({ event: "message.delivered", data: { message_id: id } });
      const rows: [name: string, value: unknown][] = [
        ["x-svc-signature", expect.stringMatching(/^sha256=[0-9a-f]{64}$/)],
        ["x-svc-timestamp", String(Math.floor(customer.clock.now() / 1000))],
        ["x-svc-event-id", envelope.event_id],
        ["x-svc-delivery-attempt", "1"],
      ];
      for (const [name, value] of rows) expect(header(request, name), name).toEqual(value);
      const pulled = await customer.ask("GET", `/v1/events?event_id=${envelope.event_id}`);
      expect(pulled.text).toContain(raw.slice(0, -1));
    }));

  test("events come in the order in which they occurred", () =>
    withHook(async ({ came, attempts }) => {
      const ids: string[] = [];
      for (let n = 0; n < 12; n++) {
        ids.push(await emit());
        await attempts(n + 1);
      }
      const seen = came().map(({ body }) => JSON.parse(String(body)).data.message_id);
      expect(seen).toEqual(ids);
      expect(new Set(came().map(({ eventId }) => eventId)).size).toBe(12);
    }));
});

describe("signature", () => {
  const signed = (secret: Buffer | string, text: string): string =>
    `sha256=${createHmac("sha256", secret).update(text).digest("hex")}`;

  test("is the HMAC-SHA256 of the timestamp, a period and the raw body under the 64 bytes of the secret", () =>
    withHook(async ({ came, attempts }) => {
      await emit();
      await attempts(1);
      const [request] = came();
      const { secret } = options;
      expect(Buffer.from(secret, "ascii")).toHaveLength(64);
      expect(secret).toMatch(/^[\x21-\x7e]{64}$/);
      const timestamp = header(request, "x-svc-timestamp");
      expect(header(request, "x-svc-signature")).toBe(signed(secret, `${timestamp}.${bodyOf(request)}`));
      const wrong = [
        signed(secret, `${timestamp}${bodyOf(request)}`),
        signed(secret, bodyOf(request)),
        signed(Buffer.from(secret, "base64"), `${timestamp}.${bodyOf(request)}`),
      ];
      expect(wrong).not.toContain(header(request, "x-svc-signature"));
      expect(request?.headers["x-svc-signature-previous"]).toBeUndefined();
    }));

  test("while a secret is rotated both sign, the new one in X-Svc-Signature", () =>
    withHook(async ({ id, came, attempts }) => {
      const old = options.secret;
      const body = { overlap_seconds: 60 };
      const rotated = await customer.ask("POST", `/v1/webhooks/${id}/rotate_secret`, { body });
      expect(rotated.status).toBe(200);
      options.secret = rotated.json.secret;
      await emit();
      await attempts(1);
      await customer.clock.advance(61 * second);
      await emit();
      await attempts(2);
      const [during, after] = came();
      const text = `${header(during, "x-svc-timestamp")}.${bodyOf(during)}`;
      expect(header(during, "x-svc-signature")).toBe(signed(rotated.json.secret, text));
      expect(header(during, "x-svc-signature-previous")).toBe(signed(old, text));
      expect(after?.problem).toBeNull();
      expect(after?.headers["x-svc-signature-previous"]).toBeUndefined();
    }));
});

describe("an answer", () => {
  test.each([200, 201, 202, 203, 204, 206, 299])(
    "%i is a success, and there is no further attempt",
    (status) =>
      withHook(async ({ came, attempts }) => {
        receiver.answer(() => ({ status }));
        await emit();
        expect(await attempts(1)).toMatchObject([
          { status: "delivered", response_status: status, next_attempt_at: null },
        ]);
        await customer.clock.advance(hour);
        expect(came()).toHaveLength(1);
      }),
  );

  test.each([300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 410, 413, 429, 500, 501, 502, 503, 504])(
    "%i is a failure, and is tried again after 30 seconds",
    (status) =>
      withHook(async ({ came, attempts }) => {
        receiver.answer(() => ({ status, headers: { location: `https://hook.test:${receiver.port}/else` } }));
        await emit();
        const [failed] = await attempts(1);
        expect(failed).toMatchObject({ status: "failed", response_status: status });
        expect(failed?.next_attempt_at).toBe(customer.at(30 * second));
        receiver.answer(() => ({ status: 202 }));
        await customer.clock.advance(30 * second);
        expect((await attempts(2))[1]).toMatchObject({ attempt: 2, status: "delivered" });
        expect(came().map(({ attempt }) => attempt)).toEqual([1, 2]);
      }),
  );

  test("a connection that is dropped is a failure", () =>
    withHook(async ({ attempts }) => {
      receiver.answer(() => "drop");
      await emit();
      expect(await attempts(1)).toMatchObject([
        { status: "failed", response_status: null, next_attempt_at: customer.at(30 * second) },
      ]);
    }));

  test("a TLS handshake that fails is a failure", () =>
    withHook(async ({ came, attempts }) => {
      await emit();
      expect(await attempts(1)).toMatchObject([
        { status: "failed", response_status: null, next_attempt_at: customer.at(30 * second) },
      ]);
      expect(came()).toEqual([]);
    }, "other.test"));

  test("one within 10 seconds is in time", () =>
    withHook(async ({ came, attempts }) => {
      const answering = Promise.withResolvers<void>();
      receiver.answer(async () => {
        await answering.promise;
        return { status: 200 };
      });
      await emit();
      await customer.eventually(async () => came().length === 1);
      await customer.clock.advance(10 * second - 1);
      answering.resolve();
      expect(await attempts(1)).toMatchObject([{ status: "delivered" }]);
    }));

  test("none within 10 seconds is a failure, and the delay counts from its end", () =>
    withHook(async ({ came, attempts }) => {
      receiver.answer(() => "hang");
      await emit();
      const began = customer.at();
      await customer.eventually(async () => came().length === 1);
      await customer.clock.advance(10 * second);
      expect(await attempts(1)).toMatchObject([
        {
          status: "failed",
          response_status: null,
          attempted_at: began,
          next_attempt_at: customer.at(30 * second),
        },
      ]);
    }));
});

describe("retry schedule", () => {
  const rows: { attempt: number; delayMs: number; cumulative: string }[] = [
    { attempt: 1, delayMs: 0, cumulative: "0s" },
    { attempt: 2, delayMs: 30 * second, cumulative: "30s" },
    { attempt: 3, delayMs: 2 * minute, cumulative: "2m 30s" },
    { attempt: 4, delayMs: 10 * minute, cumulative: "12m 30s" },
    { attempt: 5, delayMs: 30 * minute, cumulative: "42m 30s" },
    { attempt: 6, delayMs: hour, cumulative: "1h 42m" },
    { attempt: 7, delayMs: 2 * hour, cumulative: "3h 42m" },
    { attempt: 8, delayMs: 4 * hour, cumulative: "7h 42m" },
    { attempt: 9, delayMs: 8 * hour, cumulative: "15h 42m" },
    { attempt: 10, delayMs: 8 * hour, cumulative: "23h 42m" },
  ];
  /** As the table writes it: half a minute is left out from an hour on. */
  const spelt = (ms: number): string => {
    const [h, m, s] = [Math.floor(ms / hour), Math.floor((ms % hour) / minute), (ms % minute) / second];
    if (h > 0) return `${h}h ${m}m`;
    return m > 0 ? `${m}m ${s}s` : `${s}s`;
  };

  test("is the table's ten rows, to the millisecond; then the event is dead-lettered and still pulled", () =>
    withHook(async ({ id, came, attempts }) => {
      receiver.answer(() => ({ status: 500, body: "no" }));
      const began = customer.clock.now();
      await emit();
      for (const { attempt, delayMs, cumulative } of rows) {
        if (delayMs > 0) {
          await customer.clock.advance(delayMs - 1);
          expect(came(), `before attempt ${attempt}`).toHaveLength(attempt - 1);
          await customer.clock.advance(1);
        }
        const made = (await attempts(attempt))[attempt - 1];
        const next = rows[attempt]?.delayMs;
        expect(made).toMatchObject({
          attempt,
          status: next === undefined ? "dead_lettered" : "failed",
          attempted_at: customer.at(),
          next_attempt_at: next === undefined ? null : customer.at(next),
        });
        expect(spelt(customer.clock.now() - began)).toBe(cumulative);
      }
      await customer.clock.advance(2 * day);
      const requests = came();
      expect(requests.map(({ attempt }) => attempt)).toEqual(rows.map(({ attempt }) => attempt));
      // Signed again each time, or the receiver's five minutes would have refused it.
      expect(requests.map(({ problem }) => problem)).toEqual(rows.map(() => null));
      expect(new Set(requests.map(({ body }) => String(body))).size).toBe(1);
      const query = `webhook_id=${id}&delivery_status=dead_lettered`;
      const { json } = await customer.ask("GET", `/v1/events?${query}`);
      expect(json.data).toMatchObject([
        {
          event_id: requests[0]?.eventId,
          deliveries: [{ webhook_id: id, status: "dead_lettered", attempts: 10 }],
        },
      ]);
    }));

  test("a success at any attempt ends it", () =>
    withHook(async ({ came, attempts }) => {
      receiver.answer(({ attempt }) => ({ status: attempt < 4 ? 503 : 200 }));
      await emit();
      for (const { attempt, delayMs } of rows.slice(0, 4)) {
        await customer.clock.advance(delayMs);
        await attempts(attempt);
      }
      await customer.clock.advance(day);
      expect(came()).toHaveLength(4);
      expect((await attempts(4)).map(({ status }) => status)).toEqual([
        "failed",
        "failed",
        "failed",
        "delivered",
      ]);
    }));
});

// The specification of the API, "REST rate limiting" and "Rate-limit headers", over the wire, on a clock that only the
// test moves: what a bucket holds and how fast it fills is then exact.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hour, mail, minute, ownRates, startCustomer, type Answer, type Customer } from "./customer.ts";
import { produceAll, type Produced } from "./refusals.ts";

let customer: Customer;
beforeAll(async () => {
  customer = await startCustomer({ config: ownRates });
});
afterAll(() => customer.stop());

/** How many of `most` requests in a row are taken before the first 429, which is told too. */
async function spend(
  ask: () => Promise<Answer>,
  most: number,
): Promise<{ taken: number; refused: Answer | null }> {
  for (let taken = 0; taken < most; taken++) {
    const answer = await ask();
    if (answer.status === 429) return { taken, refused: answer };
  }
  return { taken: most, refused: null };
}

const rows: {
  endpoint: string;
  burst: number;
  perSecond: number;
  bucket: string;
  requests: [method: string, path: string, body?: unknown][];
}[] = [
  {
    endpoint: "POST /v1/messages",
    burst: 200,
    perSecond: 200,
    bucket: "messages-write",
    requests: [
      ["POST", "/v1/messages", {}],
      ["POST", "/v1/messages/validate", {}],
    ],
  },
  {
    endpoint: "GET /v1/messages and GET /v1/messages/{id}",
    burst: 100,
    perSecond: 50,
    bucket: "messages-read",
    requests: [
      ["GET", "/v1/messages?limit=1"],
      ["GET", "/v1/messages/msg_none"],
    ],
  },
  {
    endpoint: "POST /v1/suppressions",
    burst: 30,
    perSecond: 10,
    bucket: "suppressions-write",
    requests: [["POST", "/v1/suppressions", { emails: ["a@far.test"] }]],
  },
  {
    endpoint: "GET /v1/suppressions",
    burst: 60,
    perSecond: 30,
    bucket: "suppressions-list",
    requests: [["GET", "/v1/suppressions"]],
  },
  {
    endpoint: "GET /v1/suppressions/{email}",
    burst: 200,
    perSecond: 100,
    bucket: "suppressions-read",
    requests: [
      ["GET", "/v1/suppressions/a@far.test"],
      ["GET", "/v1/suppressions/none@far.test"],
    ],
  },
  {
    endpoint: "DELETE /v1/suppressions/{email}",
    burst: 30,
    perSecond: 10,
    bucket: "suppressions-delete",
    requests: [["DELETE", "/v1/suppressions/none@far.test"]],
  },
  {
    endpoint: "GET /v1/events",
    burst: 30,
    perSecond: 10,
    bucket: "events-read",
    requests: [["GET", "/v1/events"]],
  },
  {
    endpoint: "GET /v1/stats/*",
    burst: 20,
    perSecond: 5,
    bucket: "stats-read",
    requests: [
      ["GET", "/v1/stats"],
      ["GET", "/v1/stats/timeseries"],
      ["GET", "/v1/stats/bounces"],
    ],
  },
  {
    endpoint: "POST /v1/webhooks",
    burst: 10,
    perSecond: 1,
    bucket: "webhooks-write",
    requests: [["POST", "/v1/webhooks", {}]],
  },
  {
    endpoint: "All other endpoints",
    burst: 100,
    perSecond: 30,
    bucket: "default",
    requests: [
      ["GET", "/v1/webhooks"],
      ["PATCH", "/v1/webhooks/whk_none", {}],
      ["GET", "/v1/domains"],
      ["GET", "/v1/ip_pools"],
      ["GET", "/v1/ips"],
      ["DELETE", "/v1/ip_pools/none"],
    ],
  },
];

describe.each(rows)("$endpoint", ({ burst, perSecond, bucket, requests }) => {
  const sender = async () => {
    const { value: key } = await customer.key({ scope: "admin" });
    let turn = 0;
    return async (): Promise<Answer> => {
      const [method, path, body] = requests[turn++ % requests.length] ?? ["GET", "/"];
      return customer.ask(method, path, { key, ...(body !== undefined && { body }) });
    };
  };

  test(`takes exactly ${burst} at once, then 429 that says when to come again`, async () => {
    const ask = await sender();
    const first = await ask();
    expect(first.headers).toMatchObject({
      "x-ratelimit-limit": String(burst),
      "x-ratelimit-remaining": String(burst - 1),
      "x-ratelimit-bucket": bucket,
    });
    const { taken, refused } = await spend(ask, burst);
    expect(taken).toBe(burst - 1);
    const { headers, json } = refused ?? (await ask());
    const error = { code: "rate_limit_exceeded", bucket, retry_after_seconds: 1 };
    expect(json).toMatchObject({ error });
    expect(headers).toMatchObject({
      "retry-after": "1",
      "x-ratelimit-limit": String(burst),
      "x-ratelimit-remaining": "0",
      "x-ratelimit-bucket": bucket,
      "x-ratelimit-reset": String(Math.ceil(customer.clock.now() / 1000 + burst / perSecond)),
    });
  });

  test(`is refilled by ${perSecond} a second, continuously, and never beyond ${burst}`, async () => {
    const ask = await sender();
    expect((await spend(ask, burst + 1)).taken).toBe(burst);
    let elapsedMs = 0;
    let taken = burst;
    for (const ms of [100, 200, 700, 1000]) {
      await customer.clock.advance(ms);
      elapsedMs += ms;
      taken += (await spend(ask, burst + 1)).taken;
      expect(taken, `after ${elapsedMs} ms`).toBe(burst + Math.floor((perSecond * elapsedMs) / 1000));
    }
    await customer.clock.advance(hour);
    expect((await spend(ask, burst + 1)).taken).toBe(burst);
  });
});

test("a wait of Retry-After seconds is enough, and a second less is not", async () => {
  const { id, value: key } = await customer.key({ scope: "send", test: true });
  const rates = { "messages-write": { burst: 10, per_second: 1 } };
  await customer.program.admin("PATCH", `/v1/keys/${id}`, { rates });
  const ask = () =>
    customer.ask("POST", "/v1/messages/batch", { key, body: { messages: Array(10).fill(mail) } });
  expect((await ask()).status).toBe(200);
  await customer.clock.advance(1000);
  const { headers, json } = await ask();
  expect([headers["retry-after"], json.error.retry_after_seconds]).toEqual(["9", 9]);
  await customer.clock.advance(8000);
  expect((await ask()).headers["retry-after"]).toBe("1");
  await customer.clock.advance(1000);
  expect((await ask()).status).toBe(200);
});

test("buckets are a key's own, and one is not spent by requests of another", async () => {
  const keys = [await customer.key({ scope: "admin" }), await customer.key({ scope: "admin" })];
  const ask = (path: string, which: number) => customer.ask("GET", path, { key: keys[which]?.value ?? "" });
  expect((await spend(() => ask("/v1/stats", 0), 21)).taken).toBe(20);
  expect((await ask("/v1/events", 0)).status).toBe(200);
  expect((await ask("/v1/stats", 1)).headers["x-ratelimit-remaining"]).toBe("19");
});

test("a batch takes a token for each of its messages, and nothing where there are fewer", async () => {
  const { value: key } = await customer.key({ scope: "send", test: true });
  const batch = (count: number) =>
    customer.ask("POST", "/v1/messages/batch", { key, body: { messages: Array(count).fill(mail) } });
  const first = await batch(100);
  expect([first.status, first.headers["x-ratelimit-remaining"]]).toEqual([200, "100"]);
  expect((await batch(99)).headers["x-ratelimit-remaining"]).toBe("1");
  const refused = await batch(2);
  expect([refused.status, refused.json.error.code]).toEqual([429, "rate_limit_exceeded"]);
});

test("the account's keys together have 1,000 and 1,000 a second at an endpoint, in the bucket `account`", async () => {
  await customer.program.admin("POST", "/v1/accounts", { name: "busy" });
  const keys: string[] = [];
  for (let n = 0; n < 3; n++) {
    const { id, value } = await customer.key({ scope: "admin" }, "busy");
    const rates = { "suppressions-read": { burst: 2000, per_second: 2000 } };
    await customer.program.admin("PATCH", `/v1/keys/${id}`, { rates }, "busy");
    keys.push(value);
  }
  let turn = 0;
  const ask = () =>
    customer.ask("GET", "/v1/suppressions/none@far.test", { key: keys[turn++ % keys.length] ?? "" });
  const { taken, refused } = await spend(ask, 1001);
  expect(taken).toBe(1000);
  expect(refused?.json.error).toMatchObject({ bucket: "account", retry_after_seconds: 1 });
  expect(refused?.headers).toMatchObject({
    "x-ratelimit-bucket": "account",
    "x-ratelimit-limit": "1000",
    "x-ratelimit-remaining": "0",
    "retry-after": "1",
  });
  const other = await customer.ask("GET", "/v1/events", { key: keys[0] ?? "" });
  expect(other.status, "another endpoint").toBe(200);
  await customer.clock.advance(100);
  expect((await spend(ask, 200)).taken).toBe(100);
});

test.each(["key", "account"])("defaults can be raised for one %s", async (whose) => {
  const account = `raised-${whose}`;
  await customer.program.admin("POST", "/v1/accounts", { name: account });
  const { id, value: key } = await customer.key({ scope: "admin" }, account);
  const rates = { "stats-read": { burst: 40, per_second: 40 } };
  const path = whose === "key" ? `/v1/keys/${id}` : `/v1/accounts/${account}`;
  await customer.program.admin("PATCH", path, { rates }, account);
  expect((await spend(() => customer.ask("GET", "/v1/stats", { key }), 41)).taken).toBe(40);
  await customer.clock.advance(500);
  expect((await spend(() => customer.ask("GET", "/v1/stats", { key }), 41)).taken).toBe(20);
});

describe("headers", () => {
  const names = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
  const expectHeaders = ({ headers }: Answer, what: string, askedAt = customer.clock.now()): void => {
    for (const name of names) expect(headers[name], `${name} of ${what}`).toMatch(/^\d+$/);
    expect(headers["x-ratelimit-bucket"], what).toMatch(/^[a-z]+(-[a-z]+)*$/);
    expect(Number(headers["x-ratelimit-remaining"])).toBeLessThanOrEqual(
      Number(headers["x-ratelimit-limit"]),
    );
    // When the bucket is full: now where it is, and never long ago.
    expect(Number(headers["x-ratelimit-reset"]), what).toBeGreaterThanOrEqual(Math.floor(askedAt / 1000));
  };

  test("they stand on every success, on HEAD, and where no key is asked for", async () => {
    const { clock } = customer;
    await clock.advance(minute);
    const webhook = { url: "https://hook.example/", events: ["message.bounced"] };
    const kinds: [number, Answer][] = [
      [200, await customer.ask("GET", "/v1/messages")],
      [200, await customer.ask("HEAD", "/v1/messages")],
      [201, await customer.ask("POST", "/v1/webhooks", { body: webhook })],
      [202, await customer.ask("POST", "/v1/messages", { key: "test", body: mail })],
      [201, await customer.ask("POST", "/v1/suppressions", { body: { emails: ["h@far.test"] } })],
      [204, await customer.ask("DELETE", "/v1/suppressions/h@far.test")],
    ];
    for (const path of ["/healthz", "/readyz", "/openapi.json", "/docs", "/errors/invalid_request"])
      kinds.push([200, await customer.ask("GET", path, { key: null })]);
    for (const [n, [status, answer]] of kinds.entries()) {
      expect(answer.status).toBe(status);
      expectHeaders(answer, `${n}: ${status}`);
      expect(answer.headers["retry-after"]).toBeUndefined();
    }
  });

  test.each([
    ["no HTTP", "what is this?\r\n\r\n", 400],
    ["a header without a colon", "GET /v1/messages HTTP/1.1\r\nHost: a\r\nwrong\r\n\r\n", 400],
    ["a header of 40 KB", `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${"a".repeat(40_000)}\r\n\r\n`, 431],
  ])("they stand even on the answer to %s", async (_what, bytes, status) => {
    const answer = await customer.program.raw([bytes], (so) => so.includes("\r\n\r\n"));
    const [line = "", ...fields] = (answer.split("\r\n\r\n")[0] ?? "").split("\r\n");
    expect(line).toMatch(`HTTP/1.1 ${status} `);
    const headers = Object.fromEntries(
      fields.map((field) => [field.split(": ")[0]?.toLowerCase(), field.split(": ")[1]]),
    );
    expectHeaders({ status, headers, text: answer, json: null }, line);
    expect(headers["x-ratelimit-bucket"]).toBe("unauthenticated");
  });

  test("a 304 carries them and costs no token; every 200 costs one", async () => {
    await customer.clock.advance(minute);
    const since = { "if-modified-since": new Date(customer.clock.now()).toUTCString() };
    await customer.clock.advance(minute);
    const { value: key } = await customer.key({ scope: "admin" });
    const remaining = async (headers = {}) => {
      const answer = await customer.ask("GET", "/v1/events", { key, headers });
      expectHeaders(answer, "a read");
      return [answer.status, answer.headers["x-ratelimit-remaining"]];
    };
    expect(await remaining()).toEqual([200, "29"]);
    for (let n = 0; n < 40; n++) expect(await remaining(since)).toEqual([304, "29"]);
    expect(await remaining()).toEqual([200, "28"]);
  });

  test("without a valid key they are those of the source address", async () => {
    const ip = "203.0.113.77";
    for (const key of [null, "svc_live_wrong"]) {
      const answer = await customer.ask("GET", "/v1/messages", { key, ip });
      expect([answer.status, answer.headers["x-ratelimit-bucket"]]).toEqual([401, "unauthenticated"]);
      expect(answer.headers["x-ratelimit-limit"]).toBe("100");
    }
  });

  test("they stand on every refusal, and Retry-After, never zero, on 429 and 503 alone", async () => {
    const produced: Produced[] = await produceAll();
    for (const { code, when, answer, now } of produced) {
      expectHeaders(answer, `${code} (${when})`, now);
      const retryAfter = answer.headers["retry-after"];
      if (answer.status === 429 || answer.status === 503) expect(retryAfter, code).toMatch(/^[1-9]\d*$/);
      else expect(retryAfter, `${code} (${when})`).toBeUndefined();
    }
  });
});

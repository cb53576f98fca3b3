import { afterEach, expect, test } from "vitest";
import { acceptance, startHttp, type Ask, type Harness } from "./harness.ts";

let http: Harness | null = null;
afterEach(async () => {
  await http?.stop();
  http = null;
});

const emptyPage = () => Promise.resolve({ rows: [], next: null, hasMore: false });
const accepted = acceptance();
const store = {
  listMessages: emptyPage,
  listSuppressions: emptyPage,
  idempotent: () => Promise.resolve(null),
};
const submission = { send: () => Promise.resolve(accepted) };
const badKey = `svc_live_${"a".repeat(49)}`;

async function statuses(to: Harness, times: number, ask: Ask): Promise<Map<number, number>> {
  const counts = new Map<number, number>();
  for (const { status } of await Promise.all(Array.from({ length: times }, () => to.ask(ask)))) {
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return counts;
}

test("of a burst of 230 sends exactly 200 are taken, the others are 429", async () => {
  http = await startHttp({ store, submission });
  const send: Ask = { method: "POST", path: "/v1/messages", body: {} };
  expect(await statuses(http, 230, send)).toEqual(
    new Map([
      [202, 200],
      [429, 30],
    ]),
  );
  const { json, headers } = await http.ask(send);
  expect(headers["retry-after"]).toBe("1");
  expect(headers["x-ratelimit-remaining"]).toBe("0");
  expect(json["error"]).toMatchObject({
    code: "rate_limit_exceeded",
    bucket: "messages-write",
    retry_after_seconds: 1,
  });
  await http.clock.advance(50);
  expect(await statuses(http, 20, send)).toEqual(
    new Map([
      [202, 10],
      [429, 10],
    ]),
  );
});

test("a limit of the configuration applies, and reads are not touched by writes", async () => {
  http = await startHttp({
    store,
    submission,
    config: { rates: { "messages-write": { burst: 2, perSecond: 1 } } },
  });
  expect(await statuses(http, 5, { method: "POST", path: "/v1/messages", body: {} })).toEqual(
    new Map([
      [202, 2],
      [429, 3],
    ]),
  );
  expect((await http.ask({ path: "/v1/messages" })).status).toBe(200);
});

test("a body is not read before its request has a token", async () => {
  http = await startHttp({
    store,
    submission,
    config: { rates: { "messages-write": { burst: 1, perSecond: 0.001 } } },
  });
  await http.ask({ method: "POST", path: "/v1/messages", body: {} });
  expect((await http.ask({ method: "POST", path: "/v1/messages", raw: "{" })).status).toBe(429);
});

test("the operator's socket has no limit", async () => {
  http = await startHttp({ store, config: { rates: { "messages-read": { burst: 1, perSecond: 0.001 } } } });
  expect(await statuses(http, 20, { path: "/v1/messages", admin: true })).toEqual(new Map([[200, 20]]));
});

test("fifty bad keys lock the source out, even with a valid key, for five minutes", async () => {
  http = await startHttp({ store });
  const good: Ask = { path: "/v1/messages" };
  expect((await http.ask(good)).status).toBe(200);
  expect(await statuses(http, 50, { path: "/v1/messages", key: badKey })).toEqual(new Map([[401, 50]]));
  const locked = await http.ask(good);
  expect(locked.status).toBe(403);
  expect(locked.json["error"]).toMatchObject({ code: "source_ip_locked", retry_after_seconds: 300 });
  await http.clock.advance(299_000);
  expect((await http.ask(good)).status).toBe(403);
  await http.clock.advance(1_000);
  expect((await http.ask(good)).status).toBe(200);
});

test("a success between failures resets the count", async () => {
  http = await startHttp({ store });
  for (let round = 0; round < 2; round++) {
    await statuses(http, 49, { path: "/v1/messages", key: badKey });
    expect((await http.ask({ path: "/v1/messages" })).status).toBe(200);
    await http.clock.advance(2_000); // the source's own bucket
  }
});

test("an empty bucket of the source is 429 in place of 401", async () => {
  http = await startHttp({ store, config: { rates: { unauthenticated: { burst: 3, perSecond: 1 } } } });
  expect(await statuses(http, 5, { path: "/v1/messages", key: badKey })).toEqual(
    new Map([
      [401, 3],
      [429, 2],
    ]),
  );
  const { json } = await http.ask({ path: "/v1/messages", key: badKey });
  expect(json["error"]).toMatchObject({ code: "rate_limit_exceeded", bucket: "unauthenticated" });
  expect((await http.ask({ path: "/v1/messages" })).status).toBe(200);
});

const proxied = {
  http: { listen: [{ host: "127.0.0.1", port: 0 }], trustedProxies: ["127.0.0.1", "10.0.0.0/8"] },
};

test("X-Forwarded-For of a peer that is not a trusted proxy neither frees the peer nor locks out another", async () => {
  http = await startHttp({ store });
  for (let i = 0; i < 50; i++) {
    await http.ask({
      path: "/v1/messages",
      key: badKey,
      headers: { "x-forwarded-for": i % 2 ? `203.0.113.${i}` : "198.51.100.7" },
    });
  }
  expect((await http.ask({ path: "/v1/messages" })).status).toBe(403);
});

test("behind a trusted proxy the right-most hop that is none is the source", async () => {
  http = await startHttp({ store, config: proxied });
  const https = { "x-forwarded-proto": "https" };
  for (let i = 0; i < 50; i++) {
    const hops = `198.51.100.7, 203.0.113.9, 10.1.2.${i}`; // the first is the client's own invention
    await http.ask({ path: "/v1/messages", key: badKey, headers: { ...https, "x-forwarded-for": hops } });
  }
  const from = async (ip: string) =>
    (await http?.ask({ path: "/v1/messages", headers: { ...https, "x-forwarded-for": ip } }))?.status;
  expect(await from("203.0.113.9")).toBe(403);
  expect(await from("198.51.100.7")).toBe(200);
  expect(await from("203.0.113.9:4711")).toBe(403);
});

test("a key's allowlist judges the address behind the proxy", async () => {
  http = await startHttp({ store, config: proxied });
  const { value } = await http.key("admin", { allowIps: ["192.0.2.0/24", "2001:db8::/32"] });
  const from = (ip: string) =>
    http?.ask({
      path: "/v1/messages",
      key: value,
      headers: { "x-forwarded-proto": "https", "x-forwarded-for": ip },
    });
  expect((await from("192.0.2.77"))?.status).toBe(200);
  expect((await from("[2001:db8::5]:443"))?.status).toBe(200);
  expect((await from("192.0.3.1"))?.json["error"]).toMatchObject({ code: "ip_not_allowed" });
  expect((await from("192.0.2.77, 192.0.3.1"))?.status).toBe(403);
});

test("without TLS a trusted proxy must say that its client came over HTTPS", async () => {
  http = await startHttp({ store, config: proxied });
  const said = async (value: string) =>
    (await http?.ask({ path: "/v1/messages", headers: { "x-forwarded-proto": value } }))?.status;
  expect(await said("https")).toBe(200);
  expect(await said("http")).toBe(400);
  expect(await said("https, http")).toBe(400);
  expect((await http.ask({ path: "/v1/messages" })).status).toBe(400);
});

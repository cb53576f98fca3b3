import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Scope } from "../../src/model/api-key.ts";
import { StoreUnavailable, type Store } from "../../src/store/store.ts";
import { acceptance, list, startHttp, type Ask, type Harness } from "./harness.ts";

const accepted = acceptance();
const emptyPage = () => Promise.resolve({ rows: [], next: null, hasMore: false });
const store: Partial<Store> = {
  idempotent: () => Promise.resolve(null),
  listMessages: emptyPage,
  listEvents: emptyPage,
  listSuppressions: emptyPage,
  listInbox: emptyPage,
  message: () => Promise.resolve(null),
  attempts: () => Promise.resolve([]),
  cancelMessage: () => Promise.resolve(null),
  suppression: () => Promise.resolve(null),
  removeSuppression: () => Promise.resolve(false),
  addSuppressions: (entries, at) =>
    Promise.resolve({
      added: entries.length,
      updated: 0,
      unchanged: 0,
      rows: entries.map((entry) => ({ ...entry, createdAt: at, updatedAt: at })),
    }),
  listEndpoints: () => Promise.resolve([]),
  endpoint: () => Promise.resolve(null),
  updateEndpoint: () => Promise.resolve(null),
  deleteEndpoint: () => Promise.resolve(false),
  createEndpoint: (endpoint) => Promise.resolve({ ...endpoint, key: 1 }),
  listDomains: () => Promise.resolve([]),
  domainByName: () => Promise.resolve(null),
};

let http: Harness;
beforeAll(async () => {
  const high = { burst: 1_000_000, perSecond: 1_000_000 };
  http = await startHttp({
    store,
    submission: { send: () => Promise.resolve(accepted) },
    webhooks: { checkUrl: () => Promise.resolve() },
    config: {
      rates: { "webhooks-write": high, default: high, unauthenticated: high, "suppressions-delete": high },
    },
  });
});
afterAll(() => http.stop());

describe("refusals come in one order", () => {
  const bad = { "content-type": "text/plain", "x-api-version": "1999-01" };
  const table: [string, Ask, number, string][] = [
    ["no key, before an unknown path", { key: null, path: "/v1/nowhere" }, 401, "invalid_api_key"],
    [
      "no key, before a wrong method",
      { key: null, method: "PUT", path: "/v1/messages" },
      401,
      "invalid_api_key",
    ],
    ["no key, before a malformed path", { key: null, path: "/v1/suppressions/%zz" }, 401, "invalid_api_key"],
    [
      "outside of the API no key is asked for",
      { key: null, path: "/favicon.ico" },
      404,
      "resource_not_found",
    ],
    [
      "an unknown path, before bad headers",
      { path: "/v1/nowhere", method: "POST", headers: bad, raw: "{" },
      404,
      "resource_not_found",
    ],
    ["keys are not managed by keys", { path: "/v1/keys" }, 404, "resource_not_found"],
    ["nor is the operator's status shown to them", { path: "/v1/status" }, 404, "resource_not_found"],
    [
      "a wrong method, before bad headers",
      { path: "/v1/messages", method: "PUT", headers: bad, raw: "{" },
      405,
      "method_not_allowed",
    ],
    ["OPTIONS is a wrong method", { path: "/v1/messages", method: "OPTIONS" }, 405, "method_not_allowed"],
    ["a malformed path", { path: "/v1/suppressions/%zz" }, 400, "invalid_request"],
    [
      "a bad version, before a bad content type",
      { path: "/v1/messages", method: "POST", headers: bad, raw: "{" },
      400,
      "invalid_request",
    ],
    [
      "a wrong content type, before bad JSON",
      { path: "/v1/messages", method: "POST", headers: { "content-type": "text/plain" }, raw: "{" },
      415,
      "unsupported_media_type",
    ],
    [
      "a missing content type",
      { path: "/v1/messages", method: "POST", headers: { "content-type": "-" }, raw: "{}" },
      400,
      "invalid_request",
    ],
    [
      "a bad idempotency key, before bad JSON",
      { path: "/v1/messages", method: "POST", headers: { "idempotency-key": "x".repeat(256) }, raw: "{" },
      400,
      "invalid_request",
    ],
    ["bad JSON", { path: "/v1/messages", method: "POST", raw: "{" }, 400, "invalid_request"],
    ["JSON that is no object", { path: "/v1/messages", method: "POST", raw: "[]" }, 422, "validation_failed"],
  ];
  test.each(table)("%s", async (_name, ask, status, code) => {
    const answer = await http.ask(ask);
    expect([answer.status, (answer.json["error"] ?? answer.json)["code"]]).toEqual([status, code]);
  });

  test("405 lists what the path supports, HEAD with GET", async () => {
    expect((await http.ask({ method: "PUT", path: "/v1/messages" })).headers["allow"]).toBe(
      "POST, GET, HEAD",
    );
    expect((await http.ask({ method: "POST", path: "/v1/messages/msg_1" })).headers["allow"]).toBe(
      "GET, HEAD",
    );
  });
});

describe("every answer", () => {
  const asks: [string, Ask][] = [
    ["200", { path: "/v1/messages" }],
    ["HEAD", { path: "/v1/messages", method: "HEAD" }],
    ["202", { path: "/v1/messages", method: "POST", body: {} }],
    ["400", { path: "/v1/messages?limit=0" }],
    ["401", { path: "/v1/messages", key: null }],
    ["404", { path: "/v1/nowhere" }],
    ["405", { path: "/v1/messages", method: "PATCH", body: {} }],
    ["415", { path: "/v1/messages", method: "POST", raw: "{}", headers: { "content-type": "text/html" } }],
    ["422", { path: "/v1/webhooks", method: "POST", body: {} }],
    ["health", { path: "/healthz", key: null }],
  ];
  test.each(asks)("carries its request id, the version and the limit's state: %s", async (_name, ask) => {
    const { headers, status } = await http.ask(ask);
    expect(status).toBeGreaterThan(0);
    expect(headers["x-request-id"]).toMatch(/^req_[0-9a-hjkmnp-tv-z]{26}$/);
    expect(headers["x-api-version-used"]).toBe("2026-11");
    expect(Number(headers["x-ratelimit-limit"])).toBeGreaterThan(0);
    expect(Number(headers["x-ratelimit-remaining"])).toBeGreaterThan(0);
    expect(Number(headers["x-ratelimit-reset"])).toBeGreaterThanOrEqual(Math.floor(http.clock.now() / 1000));
    expect(headers["x-ratelimit-bucket"]).toMatch(/^[a-z-]+$/);
    expect(headers["content-length"] ?? headers["transfer-encoding"]).toBeDefined();
  });

  test("names the bucket of its route", async () => {
    const bucketOf = async (ask: Ask) => (await http.ask(ask)).headers["x-ratelimit-bucket"];
    expect(await bucketOf({ path: "/v1/messages", method: "POST", body: {} })).toBe("messages-write");
    expect(await bucketOf({ path: "/v1/messages/msg_1/cancel", method: "POST" })).toBe("messages-write");
    expect(await bucketOf({ path: "/v1/messages/msg_1/attempts" })).toBe("messages-read");
    expect(await bucketOf({ path: "/v1/suppressions" })).toBe("suppressions-list");
    expect(await bucketOf({ path: "/v1/suppressions/a@x.example" })).toBe("suppressions-read");
    expect(await bucketOf({ path: "/v1/suppressions/a@x.example", method: "DELETE" })).toBe(
      "suppressions-delete",
    );
    expect(await bucketOf({ path: "/v1/suppressions", method: "POST", body: {} })).toBe("suppressions-write");
    expect(await bucketOf({ path: "/v1/events" })).toBe("events-read");
    expect(await bucketOf({ path: "/v1/webhooks", method: "POST", body: {} })).toBe("webhooks-write");
    expect(await bucketOf({ path: "/v1/webhooks" })).toBe("default");
    expect(await bucketOf({ path: "/v1/domains" })).toBe("default");
    expect(await bucketOf({ path: "/v1/messages", key: null })).toBe("unauthenticated");
  });
});

describe("the two shapes of an error", () => {
  test("401, 403 and 429 come in the envelope, with the realm on a 401", async () => {
    const { json, headers } = await http.ask({ path: "/v1/messages", key: null });
    expect(headers["content-type"]).toBe("application/json");
    expect(headers["www-authenticate"]).toBe('Bearer realm="mail.acme.example"');
    expect(json).toEqual({
      error: { code: "invalid_api_key", message: expect.any(String), request_id: headers["x-request-id"] },
    });
  });

  test("a client that names problem details in Accept gets them there too", async () => {
    const { value } = await http.key("reporting");
    const accept = { accept: "text/html, application/problem+json;q=0.9" };
    const { json, headers } = await http.ask({
      path: "/v1/messages",
      method: "POST",
      body: {},
      key: value,
      headers: accept,
    });
    expect(headers["content-type"]).toBe("application/problem+json");
    expect(json).toMatchObject({ status: 403, code: "scope_insufficient", required_scope: "send" });
  });

  test("everything else is problem details", async () => {
    const { json, headers } = await http.ask({ path: "/v1/messages/msg_1" });
    expect(headers["content-type"]).toBe("application/problem+json");
    expect(json).toEqual({
      type: "https://mail.acme.example/errors/resource_not_found",
      title: "Not found",
      status: 404,
      detail: "There is no such message.",
      instance: "/v1/messages/msg_1",
      code: "resource_not_found",
      request_id: headers["x-request-id"],
    });
  });

  test("a 422 lists every problem at once", async () => {
    const body = { url: 7, events: ["message.bounced", "message.lost"], secert: "x", active: "yes" };
    const { json, status } = await http.ask({ path: "/v1/webhooks", method: "POST", body });
    expect(status).toBe(422);
    expect(
      list(json["errors"])
        .map((row) => JSON.stringify(row["field"]).slice(1, -1))
        .toSorted((a, b) => (a < b ? -1 : 1)),
    ).toEqual(["active", "events[1]", "secert", "url"]);
    expect(json["field"]).toBe(list(json["errors"])[0]?.["field"]);
  });
});

describe("scopes", () => {
  const routes: [string, string, Scope[]][] = [
    ["POST", "/v1/messages", ["send"]],
    ["GET", "/v1/messages", ["send", "reporting"]],
    ["GET", "/v1/messages/msg_1", ["send", "reporting"]],
    ["GET", "/v1/messages/msg_1/attempts", ["send", "reporting"]],
    ["GET", "/v1/messages/msg_1/content", ["send"]],
    ["POST", "/v1/messages/msg_1/cancel", ["send"]],
    ["GET", "/v1/events", ["reporting"]],
    ["GET", "/v1/suppressions", ["suppressions"]],
    ["POST", "/v1/suppressions", ["suppressions"]],
    ["GET", "/v1/suppressions/a@x.example", ["suppressions"]],
    ["DELETE", "/v1/suppressions/a@x.example", ["suppressions"]],
    ["GET", "/v1/webhooks", []],
    ["POST", "/v1/webhooks", []],
    ["GET", "/v1/webhooks/whk_1", []],
    ["PATCH", "/v1/webhooks/whk_1", []],
    ["DELETE", "/v1/webhooks/whk_1", []],
    ["POST", "/v1/webhooks/whk_1/test", []],
    ["GET", "/v1/domains", []],
    ["POST", "/v1/domains", []],
    ["GET", "/v1/domains/x.example", []],
    ["DELETE", "/v1/domains/x.example", []],
    ["POST", "/v1/domains/x.example/verify", []],
  ];
  test.each(routes)("%s %s is open to admin and %j", async (method, path, open) => {
    const withBody = method === "POST" || method === "PATCH" ? { body: {} } : {};
    for (const scope of ["send", "suppressions", "reporting", "admin"] as const) {
      const { value } = await http.key(scope);
      const { status, json } = await http.ask({ method, path, key: value, ...withBody });
      const allowed = scope === "admin" || open.includes(scope);
      expect(`${scope} ${status === 403 ? "refused" : "let in"}`).toBe(
        `${scope} ${allowed ? "let in" : "refused"}`,
      );
      if (!allowed)
        expect(json["error"]).toMatchObject({
          code: "scope_insufficient",
          required_scope: open[0] ?? "admin",
        });
    }
  });

  test("a mismatch is written to the log as a security event", async () => {
    await http.clock.advance(120_000); // those of before are summed up
    const { value, key } = await http.key("reporting");
    await http.ask({ method: "POST", path: "/v1/messages", key: value, body: {} });
    expect(http.logged.at(-1)?.fields).toMatchObject({
      audit: "scope_mismatch",
      actor: key.id,
      required: "send",
    });
  });
});

describe("the Authorization header", () => {
  test.each([
    ["bearer", 200],
    ["BEARER", 200],
    ["Basic", 401],
    ["Token", 401],
    ["", 401],
  ])("scheme %j gives %i", async (scheme, status) => {
    const { value } = await http.key("admin");
    const answer = await http.ask({
      path: "/v1/messages",
      headers: { authorization: `${scheme} ${value}`.trim() },
    });
    expect(answer.status).toBe(status);
  });

  test("two headers are none, and a key in the query is none", async () => {
    const { value } = await http.key("admin");
    const twice = [`Bearer ${value}`, `Bearer ${value}`];
    expect((await http.ask({ path: "/v1/messages", headers: { authorization: twice } })).status).toBe(401);
    expect((await http.ask({ path: `/v1/messages?authorization=Bearer%20${value}`, key: null })).status).toBe(
      401,
    );
  });
});

describe("a body", () => {
  const post = (raw: string | Buffer, headers: Record<string, string> = {}) =>
    http.ask({ path: "/v1/messages", method: "POST", raw, headers });

  test.each([
    ["application/json", 202],
    ["application/json; charset=utf-8", 202],
    ['Application/JSON;charset="UTF-8"', 202],
    ["application/json; charset=utf-16", 415],
    ["application/json; charset=latin1", 415],
    ["text/plain", 415],
    ["multipart/form-data; boundary=x", 415],
    ["application/jsonp", 415],
    ["application/problem+json", 415],
    ["json", 415],
  ])("of type %s gives %i", async (type, status) =>
    expect((await post("{}", { "content-type": type })).status).toBe(status),
  );

  test("with a Content-Encoding is 415", async () => {
    expect((await post("{}", { "content-encoding": "gzip" })).status).toBe(415);
    expect((await post("{}", { "content-encoding": "identity" })).status).toBe(202);
  });

  test.each<[string, string | Buffer, number]>([
    ["nothing", "", 400],
    ["a BOM and an object", "\ufeff{}", 202],
    ["half an object", '{"a":', 400],
    ["two objects", "{}{}", 400],
    ["a string", '"a"', 422],
    ["null", "null", 422],
    ["a number", "1e400", 422],
    ["invalid UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400],
    ["a NUL after it", "{}\0", 400],
    ["100,000 open brackets", "[".repeat(100_000), 422],
    ["100,000 nested arrays", "[".repeat(100_000) + "]".repeat(100_000), 422],
  ])("that is %s gives its 4xx", async (_name, raw, status) => expect((await post(raw)).status).toBe(status));

  test("that is larger than a message can be is refused by its announced length", async () => {
    const { status, json } = await post("{}", { "content-length": String(40 * 1024 * 1024) });
    expect([status, json["code"]]).toEqual([413, "message_too_large"]);
  });

  test("without an announced length is cut at the cap", async () => {
    const { status } = await post(Buffer.alloc(37 * 1024 * 1024, " "), {
      "content-length": "-",
      "transfer-encoding": "chunked",
    });
    expect(status).toBe(413);
  });

  test("pollutes no prototype", async () => {
    const raw = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    expect((await http.ask({ path: "/v1/webhooks", method: "POST", raw })).status).toBe(422);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

describe("the query", () => {
  test.each([
    ["/v1/messages?limit=0", "limit"],
    ["/v1/messages?limit=201", "limit"],
    ["/v1/messages?limit=ten", "limit"],
    ["/v1/messages?limit=1&limit=2", "limit"],
    ["/v1/messages?limit=", "limit"],
    ["/v1/webhooks?cursor=abc", "cursor"],
    ["/v1/domains?cursor=", "cursor"],
    ["/v1/messages?status=lost", "status"],
    ["/v1/messages?to=nobody", "to"],
    ["/v1/messages?created_after=yesterday", "created_after"],
    ["/v1/messages?created_after=2026-13-01T00:00:00Z", "created_after"],
    ["/v1/events?limit=1001", "limit"],
    ["/v1/events?event=message.bounced,message.lost", "event"],
    ["/v1/events?order=up", "order"],
    ["/v1/suppressions?reason=spite", "reason"],
  ])("%s is 400 and names the field", async (path, field) => {
    const { status, json } = await http.ask({ path });
    expect([status, json["code"], json["field"]]).toEqual([400, "invalid_request", field]);
  });

  test("ignores a parameter that it does not know, but not on the operator's socket", async () => {
    expect((await http.ask({ path: "/v1/messages?colour=red" })).status).toBe(200);
    const admin = await http.ask({ path: "/v1/messages?colour=red", admin: true });
    expect([admin.status, admin.json["field"]]).toEqual([400, "colour"]);
  });

  test("takes times with any zone and dates", async () => {
    const path =
      "/v1/messages?created_after=2026-11-27T09:15:22.123%2B02:00&created_before=2026-12-01&limit=200";
    expect((await http.ask({ path })).status).toBe(200);
  });
});

test("an unknown X-API-Version lists those that exist", async () => {
  const { json } = await http.ask({ path: "/v1/messages", headers: { "x-api-version": "2020-01" } });
  expect(json).toMatchObject({
    code: "invalid_request",
    field: "X-API-Version",
    supported_versions: ["2026-11"],
  });
  expect((await http.ask({ path: "/v1/messages", headers: { "x-api-version": "2026-11" } })).status).toBe(
    200,
  );
});

test("an unexpected error tells nothing of itself, and the log has it under the request id", async () => {
  const failing = await startHttp({
    store: { ...store, listMessages: () => Promise.reject(new Error("secret in /var/lib/svc")) },
  });
  const { status, text, headers } = await failing.ask({ path: "/v1/messages" });
  expect(status).toBe(500);
  expect(text).not.toContain("secret");
  expect(failing.logged.at(-1)).toMatchObject({
    level: "error",
    fields: { request_id: headers["x-request-id"] },
  });
  await failing.stop();
});

test("a store that cannot write is 503 with Retry-After", async () => {
  const full = await startHttp({
    store,
    submission: { send: () => Promise.reject(new StoreUnavailable("full", "no room")) },
  });
  const { status, json, headers } = await full.ask({ path: "/v1/messages", method: "POST", body: {} });
  expect([status, json["code"]]).toEqual([503, "service_overloaded"]);
  expect(Number(headers["retry-after"])).toBeGreaterThanOrEqual(1);
  await full.stop();
});

test("a handler that hangs is answered 504", async () => {
  const hung = await startHttp({ store: { ...store, listMessages: () => new Promise(() => undefined) } });
  const asked = hung.ask({ path: "/v1/messages" });
  const over = asked.then(() => true);
  while (!(await Promise.race([over, hung.clock.advance(1000).then(() => false)])));
  expect(await asked).toMatchObject({ status: 504, json: { code: "upstream_timeout" } });
  await hung.stop();
});

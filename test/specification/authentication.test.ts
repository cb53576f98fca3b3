// The authentication of the specification of the API, rule by rule. What each scope grants is scopes.test.ts's.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TravelClock } from "../support/travel-clock.ts";
import { bearer, eventually, sound, startAsking, type Asking } from "./asking.ts";

const clock = new TravelClock();
let api: Asking;
beforeAll(async () => void (api = await startAsking({ clock })));
afterAll(() => api.stop());

const minute = 60_000;
let lastIp = 0;
/** A source that no other test has. */
const newIp = (): string => `192.0.2.${++lastIp}`;
const from = (ip: string, more: Record<string, string> = {}) => ({ "x-forwarded-for": ip, ...more });
const revoked = async (): Promise<string> => {
  const { id, key } = await api.newKey();
  await api.program.admin("POST", `/v1/keys/${id}/revoke`);
  return key;
};
const disabled = async (more: object = {}): Promise<string> => {
  const { id, key } = await api.newKey({ ...more });
  await api.program.admin("POST", `/v1/keys/${id}/disable`);
  return key;
};

describe("rule 1: Authorization: Bearer", () => {
  test("a key is taken from the header, and from nowhere else", async () => {
    expect((await api.ask("GET", "/v1/messages")).status).toBe(200);
    const { admin } = api.keys;
    for (const path of [`/v1/messages?api_key=${admin}`, `/v1/messages?key=${admin}&access_token=${admin}`])
      expect((await api.ask("GET", path, { key: null })).status).toBe(401);
    const basic = Buffer.from(`${admin}:`).toString("base64");
    for (const headers of [
      { "x-api-key": admin },
      { cookie: `key=${admin}` },
      { authorization: `Basic ${basic}` },
    ])
      expect((await api.ask("GET", "/v1/messages", { key: null, headers: { ...headers } })).status).toBe(401);
  });
});

describe("rule 2: the prefix of a key", () => {
  test.each([
    ["svc_live_", false],
    ["svc_test_", true],
  ])("%s where test is %s", async (prefix, isTest) => {
    const { key } = await api.newKey({ test: isTest });
    expect(key).toMatch(new RegExp(`^${prefix}[0-9A-Za-z]{43,}$`));
    const { status, json } = await api.ask("POST", "/v1/messages", { key, body: sound() });
    // simulator.svc is there for test keys only
    expect([status, json.code]).toEqual(isTest ? [202, undefined] : [422, "invalid_email_address"]);
  });

  test("the one does not pass for the other", async () => {
    const swapped = (key: string): string =>
      key.startsWith("svc_test_")
        ? key.replace("svc_test_", "svc_live_")
        : key.replace("svc_live_", "svc_test_");
    for (const isTest of [true, false]) {
      const { key } = await api.newKey({ test: isTest });
      expect((await api.ask("GET", "/v1/messages", { key: swapped(key) })).status).toBe(401);
    }
  });
});

describe("rule 3: 401 invalid_api_key", () => {
  const of = (value: string) => async () => ({ authorization: value });
  const rows: [string, () => Promise<Record<string, string>>][] = [
    ["no header", async () => ({})],
    ["an empty header", of("")],
    ["a scheme alone", of("Bearer")],
    ["another scheme", of("Basic YTpi")],
    ["a token that is no key", of("Bearer hello")],
    ["a prefix alone", of("Bearer svc_live_")],
    ["another's prefix", of(`Bearer sk_live_${"a".repeat(50)}`)],
    ["a key that is cut short", async () => bearer(api.keys.admin.slice(0, -1))],
    ["a key with one letter more", async () => bearer(`${api.keys.admin}a`)],
    [
      "a key with one letter changed",
      async () => bearer(api.keys.admin.replace(/.$/, (c) => (c === "a" ? "b" : "a"))),
    ],
    ["two keys", async () => bearer(`${api.keys.admin} ${api.keys.send}`)],
    ["a very long token", of(`Bearer svc_live_${"a".repeat(4000)}`)],
    ["a revoked key", async () => bearer(await revoked())],
    [
      "an expired key",
      async () => {
        const expires_at = new Date(clock.now() + minute).toISOString();
        const { key } = await api.newKey({ expires_at });
        expect((await api.ask("GET", "/v1/messages", { key })).status).toBe(200);
        clock.skip(minute);
        return bearer(key);
      },
    ],
    [
      "a well-made key that nobody has",
      async () => {
        await api.program.admin("POST", "/v1/accounts", { name: "gone" });
        const { key } = await api.program.admin("POST", "/v1/keys", { name: "k", scope: "admin" }, "gone");
        await api.program.admin("POST", "/v1/accounts/gone/suspend");
        await api.program.admin("DELETE", "/v1/accounts/gone");
        return bearer(key);
      },
    ],
  ];
  test.each(rows)("%s", async (_name, headers) => {
    const {
      status,
      headers: told,
      json,
    } = await api.ask("GET", "/v1/messages", {
      key: null,
      headers: from(newIp(), await headers()),
    });
    expect([status, json.error.code]).toEqual([401, "invalid_api_key"]);
    expect(told["www-authenticate"]).toMatch(/^Bearer realm="?mail\.svc\.test"?$/);
    expect(json).toEqual({
      error: { code: "invalid_api_key", message: expect.any(String), request_id: told["x-request-id"] },
    });
  });

  test("a client that asks for problem+json gets the same as a problem", async () => {
    const headers = { accept: "application/problem+json" };
    const { status, headers: told, json } = await api.ask("GET", "/v1/messages", { key: null, headers });
    expect([status, told["content-type"]]).toEqual([
      401,
      expect.stringMatching(/^application\/problem\+json/),
    ]);
    expect(json).toMatchObject({ code: "invalid_api_key", status: 401, instance: "/v1/messages" });
    expect(told["www-authenticate"]).toMatch(/^Bearer realm=/);
  });
});

test("rule 4: a scope mismatch is 403 with required_scope, and a security event of the audit log", async () => {
  const { id, key } = await api.newKey({ scope: "reporting" });
  const { status, json } = await api.ask("POST", "/v1/messages", { key, body: sound() });
  expect([status, json.error.code, json.error.required_scope]).toEqual([403, "scope_insufficient", "send"]);
  const entry = await eventually(async () => {
    const { data } = await api.program.admin("GET", "/v1/audit?limit=200");
    return data.find(
      (one: { actor: { name: string }; action: string }) => one.actor.name === id && /scope/.test(one.action),
    );
  });
  expect(entry).toMatchObject({
    actor: { kind: "key", name: id },
    account: "default",
    source_ip: "127.0.0.1",
  });
});

describe("rule 5: 403 key_disabled", () => {
  test("of a key that the operator has disabled, until it is enabled", async () => {
    const { id, key } = await api.newKey();
    await api.program.admin("POST", `/v1/keys/${id}/disable`);
    const { status, json } = await api.ask("GET", "/v1/messages", { key });
    expect([status, json.error.code]).toEqual([403, "key_disabled"]);
    await api.program.admin("POST", `/v1/keys/${id}/enable`);
    expect((await api.ask("GET", "/v1/messages", { key })).status).toBe(200);
  });

  test("of every key of a suspended account, until it is resumed", async () => {
    await api.program.admin("POST", "/v1/accounts", { name: "other" });
    const { key } = await api.program.admin("POST", "/v1/keys", { name: "k", scope: "admin" }, "other");
    await api.program.admin("POST", "/v1/accounts/other/suspend");
    const { status, json } = await api.ask("GET", "/v1/messages", { key });
    expect([status, json.error.code]).toEqual([403, "key_disabled"]);
    expect((await api.ask("GET", "/v1/messages")).status).toBe(200);
    await api.program.admin("POST", "/v1/accounts/other/resume");
    expect((await api.ask("GET", "/v1/messages", { key })).status).toBe(200);
  });
});

describe("rule 6: the lock-out of a source address", () => {
  const fail = async (ip: string, times: number): Promise<number[]> => {
    const answers = [];
    for (let n = 0; n < times; n++)
      answers.push(await api.ask("GET", "/v1/messages", { key: "wrong", headers: from(ip) }));
    return answers.map(({ status }) => status);
  };
  const right = (ip: string) => api.ask("GET", "/v1/messages", { headers: from(ip) });

  test("50 failures in a row lock it for five minutes, with a right key too", async () => {
    const ip = newIp();
    expect(await fail(ip, 50)).toEqual(Array(50).fill(401));
    const locked = await right(ip);
    expect([locked.status, locked.json.error.code]).toEqual([403, "source_ip_locked"]);
    expect(locked.json.error.retry_after_seconds).toBeGreaterThan(240);
    expect(locked.json.error.retry_after_seconds).toBeLessThanOrEqual(300);
    expect((await right(newIp())).status).toBe(200);
    expect((await api.ask("GET", "/v1/messages", { key: null, headers: from(ip) })).status).toBe(403);
    clock.skip(4 * minute);
    expect((await right(ip)).status).toBe(403);
    clock.skip(minute);
    expect((await right(ip)).status).toBe(200);
    expect(await fail(ip, 1)).toEqual([401]);
  });

  test("49 do not, a success resets the count, and so do ten minutes", async () => {
    const ip = newIp();
    await fail(ip, 49);
    expect((await right(ip)).status).toBe(200);
    await fail(ip, 49);
    expect((await right(ip)).status).toBe(200);
    await fail(ip, 49);
    clock.skip(10 * minute + 1_000);
    await fail(ip, 49);
    expect((await right(ip)).status).toBe(200);
  });

  test("an IPv6 source is its /64", async () => {
    for (let n = 0; n < 50; n++) await fail(`2001:db8:1:1::${n.toString(16)}`, 1);
    expect((await right("2001:db8:1:1:ffff::1")).status).toBe(403);
    expect((await right("2001:db8:1:2::1")).status).toBe(200);
  });
});

describe("rule 7: the allowlist of a key", () => {
  test.each([
    [["192.0.2.0/24"], "192.0.2.255", true],
    [["192.0.2.0/24"], "192.0.3.0", false],
    [["198.51.100.7"], "198.51.100.7", true],
    [["198.51.100.7"], "198.51.100.8", false],
    [["2001:db8:a::/48"], "2001:db8:a:1::2", true],
    [["2001:db8:a::/48"], "2001:db8:b::1", false],
    [["192.0.2.0/24"], "2001:db8:a::1", false],
    [["192.0.2.0/24"], "::ffff:192.0.2.9", true],
    [["10.0.0.0/8", "203.0.113.9"], "203.0.113.9", true],
    [[], "203.0.113.77", true],
  ])("%j, used from %s: %s", async (allow_ips, ip, may) => {
    const { key } = await api.newKey({ allow_ips });
    const { status, json } = await api.ask("GET", "/v1/messages", { key, headers: from(ip) });
    expect([status, json.error?.code]).toEqual(may ? [200, undefined] : [403, "ip_not_allowed"]);
  });
});

describe("of several that apply, the first is reported", () => {
  const elsewhere = { allow_ips: ["10.9.9.9"] };
  const rows: [string, () => Promise<{ key: string }>, string, string, [number, string]][] = [
    ["401 before 404", async () => ({ key: "wrong" }), "GET", "/v1/nothing", [401, "invalid_api_key"]],
    ["401 before 405", async () => ({ key: "wrong" }), "PATCH", "/v1/messages", [401, "invalid_api_key"]],
    [
      "disabled before the allowlist",
      async () => ({ key: await disabled(elsewhere) }),
      "GET",
      "/v1/messages",
      [403, "key_disabled"],
    ],
    [
      "disabled before 404",
      async () => ({ key: await disabled() }),
      "GET",
      "/v1/nothing",
      [403, "key_disabled"],
    ],
    ["the allowlist before 404", () => api.newKey(elsewhere), "GET", "/v1/nothing", [403, "ip_not_allowed"]],
    [
      "the allowlist before the scope",
      () => api.newKey({ ...elsewhere, scope: "send" }),
      "GET",
      "/v1/webhooks",
      [403, "ip_not_allowed"],
    ],
    [
      "404 before the scope",
      async () => ({ key: api.keys.send }),
      "GET",
      "/v1/nothing",
      [404, "resource_not_found"],
    ],
    [
      "405 before the scope",
      async () => ({ key: api.keys.send }),
      "PUT",
      "/v1/webhooks",
      [405, "method_not_allowed"],
    ],
    [
      "the scope before a bad version",
      async () => ({ key: api.keys.send }),
      "GET",
      "/v1/webhooks?limit=0",
      [403, "scope_insufficient"],
    ],
  ];
  test.each(rows)("%s", async (_name, key, method, path, wanted) => {
    const answer = await api.ask(method, path, { ...(await key()), headers: from(newIp()) });
    expect([answer.status, answer.json.error?.code ?? answer.json.code]).toEqual(wanted);
  });
});

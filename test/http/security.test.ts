// What the audit log is told of keys and logins that are used where they may not be, as it shows in GET /v1/audit.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { ManualClock, settle } from "../support/clock.ts";
import { list, startHttp, text, type Answer, type Harness, type Json } from "./harness.ts";

let http: Harness;
let store: Store;
let clock: ManualClock;
let dataDir: string;
const open = async (): Promise<void> => {
  store = await openSqlite(dataDir, clock);
  http = await startHttp({
    opened: { store, clock },
    config: { http: { listen: [{ host: "127.0.0.1", port: 0 }], trustedProxies: ["127.0.0.1"] } },
  });
};
beforeEach(async () => {
  clock = new ManualClock();
  dataDir = newDirectory();
  await open();
});
afterEach(() => http.stop());

const from = (ip: string | string[], key: string | null, path = "/v1/messages"): Promise<Answer> =>
  http.ask({ path, key, headers: { "x-forwarded-for": ip, "x-forwarded-proto": "https" } });
const operator = (method: string, path: string, body?: unknown): Promise<Answer> =>
  http.ask({ admin: true, method, path, ...(body === undefined ? {} : { body }) });
const audit = async (action: string): Promise<Json[]> => {
  await store.recordAudit([]); // behind what was being written
  return list((await operator("GET", `/v1/audit?action=${action}`)).json["data"]);
};
const badKey = `svc_live_${"a".repeat(49)}`;

test("a key that is revoked, expired, disabled, elsewhere or beyond its scope is recorded, with the key and from where", async () => {
  const revoked = await http.key("send");
  const disabled = await http.key("send");
  const expiring = await http.key("send", { expiresAt: clock.now() + 1000 });
  const bound = await http.key("send", { allowIps: ["198.51.100.0/24"] });
  const wide = await http.key("send");
  await operator("POST", `/v1/keys/${revoked.key.id}/revoke`);
  await operator("POST", `/v1/keys/${disabled.key.id}/disable`);
  await clock.advance(1000);
  const uses = [revoked, disabled, expiring, bound].map(({ value }) => from("192.0.2.9", value));
  expect((await Promise.all(uses)).map(({ status }) => status)).toEqual([401, 403, 401, 403]);
  const beyond = await from("192.0.2.9", wide.value, "/v1/events");
  expect(beyond.status).toBe(403);
  const told = (await audit("security.*")).map((row) => [row["action"], row["target"]]);
  expect(new Set(told.map(String))).toEqual(
    new Set([
      `security.revoked_key,${revoked.key.id}`,
      `security.disabled_key,${disabled.key.id}`,
      `security.expired_key,${expiring.key.id}`,
      `security.ip_not_allowed,${bound.key.id}`,
      `security.scope_mismatch,${wide.key.id}`,
    ]),
  );
  expect(await audit("security.scope_mismatch")).toMatchObject([
    {
      account: "default",
      actor: { kind: "key", name: wide.key.id },
      source_ip: "192.0.2.9",
      request_id: beyond.headers["x-request-id"],
      detail: { scope: "send", required: "reporting", method: "GET", path: "/v1/events" },
    },
  ]);
});

test("a lock-out is recorded once, whatever knocks meanwhile, REST and SMTP counted together over an IPv6 /64", async () => {
  for (let i = 0; i < 25; i++) await from(`2001:db8:0:7::${i + 1}`, badKey);
  for (let i = 0; i < 25; i++)
    await expect(http.access.authenticateSmtp("smtp_x", "y", `2001:db8:0:7:${i}::1`)).rejects.toMatchObject({
      code: "invalid_api_key",
    });
  const locked = await from("2001:db8:0:7:ffff::1", (await http.key("admin")).value);
  expect([locked.status, locked.json["error"]?.["code"]]).toEqual([403, "source_ip_locked"]);
  expect((await from("2001:db8:0:8::1", (await http.key("admin")).value)).status).toBe(200);
  await expect(http.access.authenticateSmtp("smtp_x", "y", "2001:db8:0:7::1")).rejects.toMatchObject({
    code: "source_ip_locked",
  });
  expect(await audit("security.source_locked")).toMatchObject([
    { actor: { kind: "none", name: null }, source_ip: "2001:db8:0:7::/64", account: null, times: 1 },
  ]);
});

test("a key's use is recorded once an address and day, over a restart too", async () => {
  const { value, key } = await http.key("admin");
  for (const ip of ["192.0.2.1", "192.0.2.1", "192.0.2.2", "::ffff:192.0.2.1"]) await from(ip, value);
  await settle();
  const told = async () => (await audit("keys.used")).map((row) => [row["target"], row["source_ip"]]);
  expect(await told()).toEqual([
    [key.id, "192.0.2.2"],
    [key.id, "192.0.2.1"],
  ]);
  await http.stop();
  await open();
  await from("192.0.2.1", value);
  expect(await told()).toHaveLength(2);
  await clock.advance(86_400_000);
  await from("192.0.2.1", value);
  expect(await told()).toHaveLength(3);
});

test("an SMTP login's use, and that of a revoked one, are recorded", async () => {
  const { json } = await operator("POST", "/v1/smtp_credentials", { name: "till" });
  const login = () =>
    http.access.authenticateSmtp(text(json["username"]), text(json["password"]), "192.0.2.4");
  await login();
  await operator("POST", `/v1/smtp_credentials/${text(json["id"])}/revoke`);
  await expect(login()).rejects.toMatchObject({ code: "invalid_api_key" });
  const actor = { kind: "smtp_credential", name: json["id"] };
  expect(await audit("smtp_credentials.used")).toMatchObject([{ actor, source_ip: "192.0.2.4" }]);
  expect(await audit("security.revoked_credential")).toMatchObject([{ actor, source_ip: "192.0.2.4" }]);
});

test("an allowlist takes CIDR of both families, and an IPv4-mapped peer is its IPv4 address", async () => {
  const { value } = await http.key("admin", {
    allowIps: ["192.0.2.128/25", "2001:db8:5::/48", "203.0.113.7"],
  });
  const cases: [string, number][] = [
    ["192.0.2.127", 403],
    ["192.0.2.128", 200],
    ["::ffff:192.0.2.200", 200],
    ["[::ffff:c000:2c8]:443", 200],
    ["2001:db8:5:ffff::1", 200],
    ["2001:db8:6::1", 403],
    ["203.0.113.7", 200],
    ["203.0.113.8", 403],
  ];
  for (const [ip, status] of cases) expect([ip, (await from(ip, value)).status]).toEqual([ip, status]);
});

test("the source is the right-most hop that is not a proxy, over several headers, and garbage ends the walk", async () => {
  const { value } = await http.key("admin", { allowIps: ["192.0.2.1"] });
  const cases: [string | string[], number][] = [
    [["198.51.100.1", "192.0.2.1"], 200],
    [["192.0.2.1", "198.51.100.1"], 403],
    ["192.0.2.1, 127.0.0.1", 200],
    ["192.0.2.1, unknown", 403],
    ["unknown, 192.0.2.1", 200],
    ["192.0.2.1,", 403],
    [" 192.0.2.1 ", 200],
    ["192.0.2.1:8080", 200],
    ["192.0.2.1, , 127.0.0.1", 403],
    ['"192.0.2.1"', 403],
    ["0300.0.2.1", 403],
    ["999.0.2.1", 403],
  ];
  for (const [hops, status] of cases)
    expect([hops, (await from(hops, value)).status]).toEqual([hops, status]);
});

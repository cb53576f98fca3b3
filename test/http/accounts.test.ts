// Several accounts on one server, as the operator makes, suspends and deletes them over the socket, and as their keys
// meet it on the public listener. Over a real store.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { accept, newDirectory, newMessage, newSuppression, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { list, startHttp, text, type Answer, type Harness, type Json } from "./harness.ts";

let http: Harness;
let store: Store;
let clock: ManualClock;
beforeEach(async () => {
  clock = new ManualClock();
  store = await openSqlite(newDirectory(), clock);
  http = await startHttp({ opened: { store, clock } });
});
afterEach(() => http.stop());

const operator = (method: string, path: string, body?: unknown, account?: string): Promise<Answer> =>
  http.ask({
    admin: true,
    method,
    path,
    ...(body === undefined ? {} : { body }),
    headers: account === undefined ? {} : { "x-svc-account": account },
  });
const create = async (name: string): Promise<Json> => (await operator("POST", "/v1/accounts", { name })).json;
const keyOf = async (account: string, scope = "admin"): Promise<string> =>
  text((await operator("POST", "/v1/keys", { name: "k", scope }, account)).json["key"]);
const names = async (): Promise<string[]> =>
  list((await operator("GET", "/v1/accounts")).json["data"]).map((row) => text(row["name"]));
const accountKey = async (name: string): Promise<number> => (await store.accountByName(name))?.key ?? 0;

test("an account is made, listed in pages, shown by name and id, and its name is taken then", async () => {
  const made = await operator("POST", "/v1/accounts", { name: "shop" });
  expect([made.status, made.headers["location"]]).toEqual([201, "/v1/accounts/shop"]);
  expect(made.json).toEqual({
    id: expect.stringMatching(/^acct_/),
    name: "shop",
    status: "active",
    paused_at: null,
    pause_reason: null,
    rates: {},
    daily_quota: null,
    limits: {
      webhooks: 50,
      domains: 1000,
      suppressions: 5_000_000,
      ip_pools: 100,
      ip_addresses: 256,
      queue: null,
      queue_mb: null,
    },
    created_at: "2026-11-27T09:00:00.000Z",
  });
  expect((await operator("GET", "/v1/accounts/shop")).json).toEqual(made.json);
  expect((await operator("GET", `/v1/accounts/${text(made.json["id"])}`)).json).toEqual(made.json);
  const again = await operator("POST", "/v1/accounts", { name: "shop" });
  expect([again.status, again.json["code"]]).toEqual([409, "conflict"]);
  expect(await names()).toEqual(["default", "operations", "shop"]);
  const first = await operator("GET", "/v1/accounts?limit=2");
  const second = await operator("GET", `/v1/accounts?limit=2&cursor=${text(first.json["next_cursor"])}`);
  expect(list(second.json["data"]).map((row) => row["name"])).toEqual(["shop"]);
  expect(second.json["has_more"]).toBe(false);
});

test("a name is short, lower case and no id", async () => {
  for (const name of ["", "Shop", "a b", "-a", "acct_x", "a".repeat(65), 5, null])
    expect((await operator("POST", "/v1/accounts", { name })).json["code"]).toBe("validation_failed");
  expect((await operator("POST", "/v1/accounts", { name: "a".repeat(64) })).status).toBe(201);
  expect((await operator("GET", "/v1/accounts/nobody")).status).toBe(404);
  expect((await operator("GET", "/v1/keys", undefined, "nobody")).status).toBe(404);
});

test("accounts are the operator's: no API key finds the path", async () => {
  for (const path of ["/v1/accounts", "/v1/accounts/default"])
    expect((await http.ask({ path })).status).toBe(404);
  expect((await http.ask({ method: "POST", path: "/v1/accounts", body: { name: "x" } })).status).toBe(404);
});

test("what belongs to one account is 404 to another's key, and not in its lists", async () => {
  await create("shop");
  const theirs = await keyOf("shop");
  const hook = await store.createEndpoint({
    id: "whk_01kb2v8x4m5n6p7q8r9s0t1v2w",
    accountKey: await accountKey("default"),
    url: "https://a.example/",
    eventMask: 1,
    description: null,
    active: true,
    secret: "s".repeat(64),
    previousSecret: null,
    previousSecretUntil: null,
    createdAt: 1,
    updatedAt: 1,
    lastSuccessAt: null,
    lastFailureAt: null,
    consecutiveFailures: 0,
    failingSince: null,
    format: "svc",
  });
  const message = newMessage({ accountKey: await accountKey("default"), at: clock.now() });
  await accept(store, message);
  await store.addSuppressions([newSuppression(await accountKey("default"), "no@s.test")], clock.now());
  for (const path of [
    `/v1/webhooks/${hook.id}`,
    `/v1/messages/${message.message.id}`,
    "/v1/suppressions/no@s.test",
  ]) {
    expect((await http.ask({ path })).status).toBe(200);
    expect((await http.ask({ path, key: theirs })).status).toBe(404);
  }
  for (const path of ["/v1/webhooks", "/v1/messages", "/v1/suppressions"])
    expect((await http.ask({ path, key: theirs })).json["data"]).toEqual([]);
  expect(list((await operator("GET", "/v1/keys", undefined, "shop")).json["data"])).toHaveLength(1);
});

test("a suspended account's keys are 403 from the next request on, and work again when it is resumed", async () => {
  await create("shop");
  const key = await keyOf("shop");
  const use = async () => await http.ask({ path: "/v1/messages", key });
  expect((await use()).status).toBe(200);
  const suspended = await operator("POST", "/v1/accounts/shop/suspend");
  expect([suspended.status, suspended.json["status"]]).toEqual([200, "suspended"]);
  const refused = await use();
  expect([refused.status, refused.json["error"]?.["code"]]).toEqual([403, "key_disabled"]);
  expect((await http.ask({ path: "/v1/messages" })).status).toBe(200);
  expect((await operator("POST", "/v1/accounts/shop/suspend")).status).toBe(200);
  expect((await operator("POST", "/v1/accounts/shop/resume")).json["status"]).toBe("active");
  expect((await use()).status).toBe(200);
});

test("what a suspended account has queued goes on", async () => {
  await create("shop");
  const message = newMessage({ accountKey: await accountKey("shop"), at: clock.now() });
  await accept(store, message);
  await operator("POST", "/v1/accounts/shop/suspend");
  const claim = { owner: "o", limit: 5, now: clock.now() };
  const { jobs } = await store.claimDue({ ...claim, queueName: message.recipients[0]?.queueName ?? "" });
  expect(jobs.map(({ message: { id } }) => id)).toEqual([message.message.id]);
});

test("only a suspended account with nothing unsent is deleted, and it is gone with its keys", async () => {
  await create("shop");
  const key = await keyOf("shop");
  const owner = await accountKey("shop");
  const message = newMessage({ accountKey: owner, at: clock.now(), sendAt: clock.now() + 3_600_000 });
  await accept(store, message);
  await store.addSuppressions([newSuppression(owner, "no@s.test")], clock.now());
  const remove = async (): Promise<number> => (await operator("DELETE", "/v1/accounts/shop")).status;
  expect(await remove()).toBe(409);
  await operator("POST", "/v1/accounts/shop/suspend");
  expect(await remove()).toBe(409);
  await store.cancelMessage(owner, message.message.id, clock.now());
  expect(await remove()).toBe(204);
  expect(await remove()).toBe(404);
  expect((await operator("POST", "/v1/accounts/shop/resume")).status).toBe(404);
  expect((await operator("GET", "/v1/keys", undefined, "shop")).status).toBe(404);
  expect((await http.ask({ path: "/v1/messages", key })).status).toBe(401);
  expect(await store.suppression(owner, "no@s.test", clock.now())).toBeNull();
  expect(await names()).toEqual(["default", "operations"]);
});

test("a new account of a deleted one's name is another account", async () => {
  const old = await create("shop");
  const oldKey = await accountKey("shop");
  await accept(store, newMessage({ accountKey: oldKey, at: clock.now() }));
  const id = list((await operator("GET", "/v1/messages", undefined, "shop")).json["data"])[0]?.["id"];
  await store.cancelMessage(oldKey, text(id), clock.now());
  await operator("POST", "/v1/accounts/shop/suspend");
  expect((await operator("DELETE", "/v1/accounts/shop")).status).toBe(204);
  const fresh = await create("shop");
  expect(fresh["id"]).not.toBe(old["id"]);
  expect(await accountKey("shop")).not.toBe(oldKey);
  expect((await operator("GET", "/v1/messages", undefined, "shop")).json["data"]).toEqual([]);
});

test("the accounts that the appliance stands on stay", async () => {
  await operator("POST", "/v1/accounts/default/suspend");
  expect((await operator("DELETE", "/v1/accounts/default")).status).toBe(409);
  expect((await operator("POST", "/v1/accounts/operations/suspend")).status).toBe(409);
  expect((await operator("DELETE", "/v1/accounts/operations")).status).toBe(409);
});

test("a key is shown, renamed and bound to networks, and a revoked one is never enabled", async () => {
  const made = await operator("POST", "/v1/keys", { name: "shop", scope: "admin" });
  const path = `/v1/keys/${text(made.json["id"])}`;
  const { key, ...shown } = made.json;
  expect((await operator("GET", path)).json).toEqual(shown);
  const changed = await operator("PATCH", path, { name: "till", allow_ips: ["192.0.2.0/24"] });
  expect(changed.json).toEqual({ ...shown, name: "till", allow_ips: ["192.0.2.0/24"] });
  const use = async () => (await http.ask({ path: "/v1/messages", key: text(key) })).status;
  expect(await use()).toBe(403);
  await operator("PATCH", path, { allow_ips: ["127.0.0.1"] });
  expect(await use()).toBe(200);
  for (const body of [{ allow_ips: ["x"] }, { name: "" }, { scope: "send" }, { rates: { nonsense: null } }])
    expect((await operator("PATCH", path, body)).status).toBe(422);
  expect((await operator("GET", path, undefined, "operations")).status).toBe(404);
  expect((await operator("PATCH", path, { name: "x" }, "operations")).status).toBe(404);
  await operator("POST", `${path}/revoke`);
  expect((await operator("POST", `${path}/enable`)).status).toBe(409);
  expect((await operator("POST", `${path}/rotate`)).status).toBe(409);
});

test("a rotated login has a new password under its name, and the old one ends with it", async () => {
  const made = await operator("POST", "/v1/smtp_credentials", { name: "till" });
  const path = `/v1/smtp_credentials/${text(made.json["id"])}`;
  const fresh = await operator("POST", `${path}/rotate`);
  expect([fresh.status, fresh.json["name"], fresh.json["username"]]).toEqual([
    201,
    "till",
    made.json["username"],
  ]);
  const login = (answer: Answer) =>
    http.access.authenticateSmtp(text(answer.json["username"]), text(answer.json["password"]), "192.0.2.1");
  await expect(login(made)).rejects.toMatchObject({ code: "invalid_api_key" });
  expect((await login(fresh)).account.name).toBe("default");
  expect((await operator("POST", `${path}/rotate`)).status).toBe(409);
  expect((await operator("POST", "/v1/smtp_credentials/cred_none/rotate")).status).toBe(404);
  expect((await operator("POST", "/v1/smtp_credentials/cred_none/revoke")).status).toBe(404);
});

// What the audit log holds of admin acts: every success that changes something, with who, from where and in which
// request, in one transaction with its effect. Over a real store.
import { afterEach, beforeEach, expect, test } from "vitest";
import { databaseName, openReading } from "../../src/store/sqlite/engine/open.ts";
import type { Store } from "../../src/store/store.ts";
import { newDirectory, newSuppression, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import {
  acceptance,
  list,
  startHttp,
  text,
  type Answer,
  type Ask,
  type Harness,
  type Json,
} from "./harness.ts";
import { join } from "node:path";

let http: Harness;
let store: Store;
let clock: ManualClock;
let dataDir: string;
beforeEach(async () => {
  clock = new ManualClock();
  dataDir = newDirectory();
  store = await openSqlite(dataDir, clock);
  const sent = acceptance();
  http = await startHttp({
    opened: { store, clock },
    webhooks: { checkUrl: () => Promise.resolve(), retryNow: () => undefined },
    submission: { send: () => Promise.resolve(sent), check: () => Promise.resolve() },
  });
});
afterEach(() => http.stop());

const operator = (method: string, path: string, body?: unknown, more: Ask["headers"] = {}): Promise<Answer> =>
  http.ask({
    admin: true,
    method,
    path,
    ...(body === undefined ? {} : { body }),
    headers: { "x-svc-operator": "ann", ...more },
  });
const audit = async (query = ""): Promise<Json[]> => {
  const { status, json } = await operator("GET", `/v1/audit${query}`);
  expect(status).toBe(200);
  return list(json["data"]);
};
const actions = async (query = ""): Promise<unknown[]> => (await audit(query)).map((row) => row["action"]);

test("an operator's act is recorded with who, which request, what and to what", async () => {
  const made = await operator("POST", "/v1/keys", { name: "shop", scope: "send", allow_ips: ["192.0.2.1"] });
  expect(await audit()).toEqual([
    {
      at: "2026-11-27T09:00:00.000Z",
      account: "default",
      actor: { kind: "operator", name: "ann" },
      source_ip: null,
      request_id: made.headers["x-request-id"],
      action: "keys.create",
      target: made.json["id"],
      times: 1,
      detail: {
        fields: ["name", "scope", "allow_ips"],
        name: "shop",
        scope: "send",
        allow_ips: ["192.0.2.1"],
      },
    },
  ]);
  expect(JSON.stringify(await audit())).not.toContain(text(made.json["key"]).slice(9, 40));
});

test("every change of keys, logins and accounts has its row", async () => {
  const key = text((await operator("POST", "/v1/keys", { name: "k", scope: "send" })).json["id"]);
  for (const verb of ["disable", "enable", "rotate", "revoke"])
    await operator("POST", `/v1/keys/${key}/${verb}`);
  await operator("PATCH", `/v1/keys/${key}`, { daily_quota: 5 });
  const login = text((await operator("POST", "/v1/smtp_credentials", { name: "c" })).json["id"]);
  await operator("POST", `/v1/smtp_credentials/${login}/revoke`);
  await operator("POST", "/v1/accounts", { name: "shop" });
  await operator("PATCH", "/v1/accounts/shop", { rates: { account: { burst: 5, per_second: 5 } } });
  await operator("POST", "/v1/accounts/shop/suspend");
  await operator("DELETE", "/v1/accounts/shop");
  await operator("DELETE", "/v1/inbox");
  expect((await actions()).toReversed()).toEqual([
    "keys.create",
    "keys.disable",
    "keys.enable",
    "keys.rotate",
    "keys.revoke",
    "keys.update",
    "smtp_credentials.create",
    "smtp_credentials.revoke",
    "accounts.create",
    "accounts.update",
    "accounts.suspend",
    "accounts.delete",
    "inbox.delete",
  ]);
  const [revoked] = await audit("?action=keys.revoke");
  expect(revoked).toMatchObject({ target: key, actor: { name: "ann" } });
  const [raised] = await audit("?action=accounts.update");
  expect(raised).toMatchObject({ account: null, target: "shop" });
  expect(raised?.["detail"]).toMatchObject({ rates: { account: { burst: 5, per_second: 5 } } });
});

test("an admin key's act is recorded with the key and its address, and its secrets and addresses are not", async () => {
  const { key, value } = await http.key("admin");
  const url = "https://user-data.example/hook?token=s3cret";
  const made = await http.ask({
    method: "POST",
    path: "/v1/webhooks",
    key: value,
    body: { url, active: false },
  });
  expect(made.status).toBe(201);
  const [row] = await audit("?action=webhooks.*");
  expect(row).toMatchObject({
    actor: { kind: "key", name: key.id },
    source_ip: "127.0.0.1",
    request_id: made.headers["x-request-id"],
    target: made.json["id"],
    detail: { fields: ["url", "active"], active: false },
  });
  expect(JSON.stringify(await audit())).not.toContain("s3cret");
});

test("a pool and its addresses are recorded alike under both spellings of their path", async () => {
  for (const path of ["/v1/ip_pools", "/v1/ip-pools"]) {
    const name = path.replaceAll(/\W/g, "");
    expect((await operator("POST", path, { name, description: "x" })).status).toBe(201);
    expect((await operator("DELETE", `${path}/${name}`)).status).toBe(204);
  }
  expect(await actions("?action=ip_pools.*")).toEqual([
    "ip_pools.delete",
    "ip_pools.create",
    "ip_pools.delete",
    "ip_pools.create",
  ]);
  expect((await audit("?action=ip_pools.create"))[0]).toMatchObject({
    target: "v1ippools",
    detail: { description: "x" },
  });
});

test("neither a read, a refusal, a validation nor what is everyday has a row", async () => {
  await operator("GET", "/v1/keys");
  await operator("POST", "/v1/keys", { name: "" });
  await operator("POST", "/v1/keys/key_none/revoke");
  await operator("DELETE", "/v1/suppressions/nobody@x.test");
  await operator("POST", "/v1/messages/validate", {});
  await http.ask({ method: "POST", path: "/v1/messages", body: {} });
  await http.ask({ method: "POST", path: "/v1/suppressions", body: { emails: ["a@x.test"] } });
  await http.ask({ method: "DELETE", path: "/v1/webhooks/whk_none" });
  expect(await actions()).toEqual(["keys.used"]);
});

test("what an operator sends or takes off the list is recorded, though its route serves everybody", async () => {
  await operator("POST", "/v1/messages", {});
  await store.addSuppressions([newSuppression(http.account.key, "gone@x.test")], clock.now());
  await operator("DELETE", "/v1/suppressions/gone@x.test");
  expect(await audit()).toMatchObject([
    { action: "suppressions.delete", target: "gone@x.test" },
    { action: "messages.create", target: acceptance().id },
  ]);
});

test("a repeated request is recorded once", async () => {
  const once = { "idempotency-key": "a" };
  const body = { url: "https://a.example/" };
  await Promise.all(Array.from({ length: 10 }, () => operator("POST", "/v1/webhooks", body, once)));
  expect(await actions()).toEqual(["webhooks.create"]);
});

test("a row and its effect are in one transaction, or neither is there", async () => {
  const seen: number[][] = [];
  const path = join(dataDir, databaseName);
  store.onCommit(() => {
    const db = openReading(path, 100);
    const count = (table: string) =>
      db.prepare<[], { n: number }>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;
    seen.push([count("accounts") - 2, count("audit")]);
    db.close();
  });
  for (const name of ["a", "b", "c"]) await operator("POST", "/v1/accounts", { name });
  expect(seen.at(-1)).toEqual([3, 3]);
  expect(seen.every(([effects, rows]) => effects === rows)).toBe(true);
});

test("filters find an account, an actor, a target, a time and a family of acts, and pages lose nothing", async () => {
  await operator("POST", "/v1/accounts", { name: "shop" });
  await operator("POST", "/v1/keys", { name: "k", scope: "send" }, { "x-svc-account": "shop" });
  await clock.advance(60_000);
  await operator("POST", "/v1/keys", { name: "k", scope: "send" }, { "x-svc-operator": "bob" });
  expect(await actions("?account=shop")).toEqual(["keys.create"]);
  expect(await actions("?actor=bob")).toEqual(["keys.create"]);
  expect(await actions("?target=shop")).toEqual(["accounts.create"]);
  expect(await actions("?action=keys.*")).toHaveLength(2);
  expect(await actions("?since=2026-11-27T09:01:00Z")).toHaveLength(1);
  expect(await actions("?until=2026-11-27T09:01:00Z")).toHaveLength(2);
  expect((await operator("GET", "/v1/audit?account=none")).status).toBe(400);
  expect((await operator("GET", "/v1/audit?cursor=x")).status).toBe(400);
  const first = (await operator("GET", "/v1/audit?limit=1&action=keys.*")).json;
  await operator("POST", "/v1/accounts", { name: "later" });
  const second = (
    await operator("GET", `/v1/audit?limit=1&action=keys.*&cursor=${text(first["next_cursor"])}`)
  ).json;
  expect([first["has_more"], second["has_more"]]).toEqual([true, false]);
  expect([...list(first["data"]), ...list(second["data"])].map((row) => row["actor"]?.["name"])).toEqual([
    "bob",
    "ann",
  ]);
});

test("the whole log comes as CSV, in which nothing is run by a spreadsheet", async () => {
  await operator("POST", "/v1/accounts", { name: "shop" }, { "x-svc-operator": "=cmd()" });
  const { status, text: csv } = await operator("GET", "/v1/audit", undefined, { accept: "text/csv" });
  const [head, row] = csv.split("\r\n");
  expect([status, head]).toEqual([
    200,
    "at,account,actor_kind,actor,source_ip,request_id,action,target,times,detail",
  ]);
  expect(row).toMatch(/^2026-11-27T09:00:00\.000Z,,operator,'=cmd\(\),,req_\w+,accounts\.create,shop,1,/);
});

test("the log is the operator's", async () => {
  expect((await http.ask({ path: "/v1/audit" })).status).toBe(404);
});

test("rows go when they are older than their retention, in pieces", async () => {
  for (let i = 0; i < 30; i++) await operator("POST", "/v1/accounts", { name: `a${i}` });
  await clock.advance(1000);
  await operator("POST", "/v1/accounts", { name: "young" });
  const purge = () =>
    store.purge({
      now: clock.now(),
      contentBefore: 0,
      messagesBefore: 0,
      eventsBefore: 0,
      auditBefore: clock.now(),
      limit: 80,
    });
  expect(await purge()).toMatchObject({ audit: 20, more: true });
  expect(await purge()).toMatchObject({ audit: 10, more: false });
  expect(await audit()).toMatchObject([{ target: "young" }]);
});

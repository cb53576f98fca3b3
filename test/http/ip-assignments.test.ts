// Which account an address belongs to: what the operator gives and takes, and what an account's key can do and learn.
// Over a real store and the real pools module; the machine's addresses and the DNS are fakes.
import { afterEach, beforeEach, expect, test } from "vitest";
import { subjectOf } from "../../src/pools/problems.ts";
import type { DnsAnswer } from "../../src/dns/resolver.ts";
import { silentLog } from "../../src/log.ts";
import { createPools, type Pools } from "../../src/pools/pools.ts";
import type { Store } from "../../src/store/store.ts";
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { list, startHttp, text, type Answer, type Harness } from "./harness.ts";

let http: Harness;
let store: Store;
let pools: Pools;
let asked: string[];
const names = new Map<string, string[]>();
const machine = new Set(["192.0.2.1", "192.0.2.2"]);
const told: string[] = [];

beforeEach(async () => {
  const clock = new ManualClock();
  asked = [];
  names.clear();
  told.length = 0;
  store = await openSqlite(newDirectory(), clock);
  const answer = (name: string): Promise<DnsAnswer<string>> => {
    asked.push(name);
    if (name === "broken.test") return Promise.resolve({ kind: "failed", why: "timeout" });
    const records = names.get(name);
    return Promise.resolve(
      records ? { kind: "found", records, ttlSeconds: 0, authenticated: false } : { kind: "nxdomain" },
    );
  };
  pools = createPools({
    store,
    resolver: { ptr: () => Promise.resolve({ kind: "nxdomain" }), a: answer, aaaa: answer },
    hostname: "mail.acme.example",
    clock,
    log: silentLog,
    canBind: (address) => Promise.resolve(machine.has(address)),
  });
  pools.onProblem((problem) => void told.push(subjectOf(problem)));
  await pools.start();
  http = await startHttp({ opened: { store, clock }, pools });
});
afterEach(() => http.stop());

const operator = (method: string, path: string, account: string, body?: unknown): Promise<Answer> =>
  http.ask({
    admin: true,
    method,
    path,
    headers: { "x-svc-account": account },
    ...(body === undefined ? {} : { body }),
  });
const as = (value: string, method: string, path: string, body?: unknown): Promise<Answer> =>
  http.ask({ key: value, method, path, ...(body === undefined ? {} : { body }) });
const add = (value: string, address: string, hostname?: string): Promise<Answer> =>
  as(value, "POST", "/v1/ip_pools/default/ips", { ip_address: address, ...(hostname ? { hostname } : {}) });
const keyOf = async (account: string): Promise<string> =>
  text((await operator("POST", "/v1/keys", account, { name: "k", scope: "admin" })).json["key"]);
const another = async (name: string): Promise<string> => {
  await operator("POST", "/v1/accounts", "default", { name });
  return keyOf(name);
};
const without = (answer: Answer): Record<string, unknown> => ({
  ...answer.json,
  request_id: null,
  instance: null,
});

test("one account alone puts any address into its pools, and keeps it when a second account comes", async () => {
  const a = await keyOf("default");
  expect((await add(a, "192.0.2.1")).status).toBe(201);
  expect(list((await operator("GET", "/v1/ip_assignments", "default")).json["data"])).toEqual([]);
  const b = await another("b");
  expect(list((await operator("GET", "/v1/ip_assignments", "b")).json["data"])).toMatchObject([
    { ip_address: "192.0.2.1", account: "default", ip_pool: "default" },
  ]);
  expect((await add(b, "192.0.2.1")).status).toBe(422);
  expect((await as(a, "DELETE", "/v1/ip_pools/default/ips/192.0.2.1")).status).toBe(204);
  expect((await add(a, "192.0.2.1")).status, "still its own").toBe(201);
});

test("an account learns nothing of an address that is not its own", async () => {
  const a = await keyOf("default");
  await add(a, "192.0.2.1");
  const b = await another("b");
  const [othersOwn, ofMachine, nowhere] = [
    await add(b, "192.0.2.1", "mail.google.test"),
    await add(b, "192.0.2.2", "mail.google.test"),
    await add(b, "203.0.113.77", "mail.google.test"),
  ];
  expect(othersOwn).toMatchObject({ status: 422, json: { code: "validation_failed" } });
  expect(text(othersOwn.json["detail"])).toContain("svc ips assign ADDRESS --account b");
  expect([without(ofMachine), without(nowhere)]).toEqual([without(othersOwn), without(othersOwn)]);
  expect(asked, "the DNS was not asked for them").toEqual([]);
  expect(list((await as(b, "GET", "/v1/ips")).json["data"])).toEqual([]);
  expect((await as(b, "DELETE", "/v1/ip_pools/default/ips/192.0.2.1")).status).toBe(404);
  expect((await as(b, "PATCH", "/v1/ip_pools/default/ips/192.0.2.1", { hostname: "x.test" })).status).toBe(
    404,
  );
  expect((await as(b, "GET", "/v1/ip_assignments")).status).toBe(404);
});

test("what the operator assigns can be used, by that account alone", async () => {
  const a = await keyOf("default");
  const b = await another("b");
  const given = await operator("POST", "/v1/ip_assignments", "b", { ip_address: "192.0.2.2" });
  expect([given.status, given.json]).toMatchObject([201, { account: "b", ip_pool: null }]);
  expect((await operator("POST", "/v1/ip_assignments", "b", { ip_address: "192.0.2.2" })).status).toBe(201);
  const second = await operator("POST", "/v1/ip_assignments", "default", { ip_address: "192.0.2.2" });
  expect([second.status, text(second.json["detail"])]).toEqual([
    409,
    expect.stringContaining("svc ips unassign 192.0.2.2"),
  ]);
  expect((await add(a, "192.0.2.2")).status).toBe(422);
  expect((await add(b, "192.0.2.2")).json).toMatchObject({ status: "active" });
  expect(pools.addressesOf((await store.accountByName("b"))?.key ?? 0)).toEqual(["192.0.2.2"]);
});

test("taken away, an address leaves its pool: mail of the pool waits and the operator is notified", async () => {
  const b = await another("b");
  await operator("POST", "/v1/ip_assignments", "b", { ip_address: "192.0.2.2" });
  await as(b, "POST", "/v1/ip_pools", { name: "news" });
  expect((await as(b, "POST", "/v1/ip_pools/news/ips", { ip_address: "192.0.2.2" })).status).toBe(201);
  await pools.look();
  const taken = await operator("DELETE", "/v1/ip_assignments/192.0.2.2", "default");
  expect([taken.status, taken.json]).toMatchObject([200, { account: "b", ip_pool: "news" }]);
  await pools.look();
  const key = (await store.accountByName("b"))?.key ?? 0;
  expect(pools.sourcesOf(key, "news").usable(4)).toEqual([]);
  pools.noteWaiting(key, "news"); // as the queue does when it comes upon mail of the pool
  expect(told).toContain("the pool news has no address");
  expect((await as(b, "POST", "/v1/ip_pools/news/ips", { ip_address: "192.0.2.2" })).status).toBe(422);
  expect((await operator("DELETE", "/v1/ip_assignments/192.0.2.2", "default")).status).toBe(404);
});

test("the operator puts what is free into an account's pool, which makes it its own, but not another's", async () => {
  await another("b");
  const put = (account: string) =>
    operator("POST", "/v1/ip_pools/default/ips", account, {
      ip_address: "192.0.2.2",
      hostname: "later.test",
    });
  expect((await put("b")).status).toBe(201);
  expect((await put("default")).status).toBe(409);
  await operator("DELETE", "/v1/ip_pools/default/ips/192.0.2.2", "b");
  expect((await put("default")).status, "it belongs to b").toBe(422);
  await operator("DELETE", "/v1/ip_assignments/192.0.2.2", "default");
  expect((await put("default")).status).toBe(201);
});

test("a key's name for EHLO leads to the address or is the host's own", async () => {
  const a = await keyOf("default");
  names.set("out.test", ["192.0.2.1"]).set("other.test", ["198.51.100.9"]);
  for (const name of ["other.test", "missing.test"]) {
    const refused = await add(a, "192.0.2.1", name);
    expect([refused.status, refused.json["errors"]?.[0]?.["field"]]).toEqual([422, "hostname"]);
  }
  expect((await add(a, "192.0.2.1", "broken.test")).json).toMatchObject({ code: "upstream_error" });
  expect((await add(a, "192.0.2.1", "out.test")).status).toBe(201);
  expect((await add(a, "192.0.2.2", "mail.acme.example")).status).toBe(201);
  const change = (hostname: string | null) =>
    as(a, "PATCH", "/v1/ip_pools/default/ips/192.0.2.1", { hostname });
  expect((await change("other.test")).status).toBe(422);
  expect((await change(null)).json["hostname"]).toBe("mail.acme.example");
  expect((await change("out.test")).json["hostname"]).toBe("out.test");
});

test("with an account its assignments go", async () => {
  await another("b");
  await operator("POST", "/v1/ip_assignments", "b", { ip_address: "192.0.2.2" });
  await operator("POST", "/v1/accounts/b/suspend", "default");
  expect((await operator("DELETE", "/v1/accounts/b", "default")).status).toBe(204);
  expect(list((await operator("GET", "/v1/ip_assignments", "default")).json["data"])).toEqual([]);
});

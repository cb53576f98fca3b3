// /v1/ip_pools and /v1/ips over a real store and the real pools room; only the machine's addresses and the DNS are fakes.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { DnsAnswer } from "../../src/dns/resolver.ts";
import { silentLog } from "../../src/log.ts";
import { createPools, type Pools } from "../../src/pools/pools.ts";
import type { Store } from "../../src/store/store.ts";
import { accept, newMessage } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { list, text, type Answer } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

let http: Stored;
let store: Store;
let clock: ManualClock;
let pools: Pools;
/** What the DNS says; a name that is not here does not exist. */
const names = new Map<string, string[]>();
const own = new Set<string>();
let count = 0;

const answer = (name: string): Promise<DnsAnswer<string>> => {
  const records = names.get(name);
  return Promise.resolve(
    records ? { kind: "found", records, ttlSeconds: 0, authenticated: false } : { kind: "nxdomain" },
  );
};

beforeAll(async () => {
  http = await startStored((opened) => {
    pools = createPools({
      ...opened,
      resolver: { ptr: answer, a: answer, aaaa: answer },
      hostname: "mail.acme.example",
      log: silentLog,
      canBind: (address) => Promise.resolve(own.has(address)),
    });
    return { pools };
  });
  ({ store, clock } = http);
  await pools.start();
});
afterAll(() => http.stop());
beforeEach(() => clock.advance(1000));

const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
  http.ask({ method, path, ...(body === undefined ? {} : { body }) });
/** A pool of its own. */
const freshPool = async (): Promise<string> => {
  const name = `pool-${++count}`;
  expect((await call("POST", "/v1/ip_pools", { name })).status).toBe(201);
  return name;
};
/** An address that no other test uses. */
const freshIp = (): string => `198.51.100.${++count}`;

describe("pools", () => {
  test("the default pool is there from the beginning, and the only one", async () => {
    const { status, json } = await call("GET", "/v1/ip_pools/default");
    expect(status).toBe(200);
    expect(json).toMatchObject({ name: "default", description: null, is_default: true, ips: [] });
  });

  test("a pool is made, shown, changed and deleted, under both spellings of the path", async () => {
    const made = await call("POST", "/v1/ip-pools", { name: "news", description: "newsletters" });
    expect([made.status, made.headers["location"]]).toEqual([201, "/v1/ip-pools/news"]);
    expect(made.json).toMatchObject({ name: "news", description: "newsletters", is_default: false, ips: [] });
    expect((await call("GET", "/v1/ip_pools/news")).json).toEqual(made.json);
    const changed = await call("PATCH", "/v1/ip_pools/news", { description: null });
    expect(changed.json).toMatchObject({ description: null, created_at: made.json["created_at"] });
    expect((await call("DELETE", "/v1/ip-pools/news")).status).toBe(204);
    expect((await call("GET", "/v1/ip-pools/news")).status).toBe(404);
    expect((await call("DELETE", "/v1/ip-pools/news")).status).toBe(404);
  });

  test.each(["", "Upper", "-x", "_x", "a b", "a/b", "a".repeat(65), "é", "a\n"])(
    "the name %j is refused",
    async (name) => {
      const { status, json } = await call("POST", "/v1/ip_pools", { name });
      expect([status, json["code"], json["errors"]?.[0]?.["field"]]).toEqual([
        422,
        "validation_failed",
        "name",
      ]);
    },
  );

  test("a name is taken once, `default` from the start", async () => {
    const name = await freshPool();
    for (const taken of [name, "default"]) {
      const { status, json } = await call("POST", "/v1/ip_pools", { name: taken });
      expect([status, json["code"]]).toEqual([409, "conflict"]);
    }
  });

  test("another pool may be the default one; it cannot be deleted then, and hands it back to the first", async () => {
    const name = `main-${++count}`;
    await call("POST", "/v1/ip_pools", { name, is_default: true });
    expect((await call("GET", "/v1/ip_pools/default")).json["is_default"]).toBe(false);
    expect(pools.nameFor(http.account.key, null)).toBe(name);
    expect((await call("DELETE", `/v1/ip_pools/${name}`)).status).toBe(409);
    await call("PATCH", `/v1/ip_pools/${name}`, { is_default: false });
    expect((await call("GET", "/v1/ip_pools/default")).json["is_default"]).toBe(true);
    expect((await call("DELETE", `/v1/ip_pools/${name}`)).status).toBe(204);
    expect(pools.nameFor(http.account.key, null)).toBe("default");
  });

  test("the pool `default` stays: it is not deleted, and gives the role away only to another", async () => {
    expect((await call("DELETE", "/v1/ip_pools/default")).status).toBe(409);
    expect((await call("PATCH", "/v1/ip_pools/default", { is_default: false })).status).toBe(409);
    expect((await call("PATCH", "/v1/ip_pools/default", { is_default: true })).status).toBe(200);
  });

  test("a pool with addresses, or for which mail waits, is not deleted", async () => {
    const name = await freshPool();
    const ip = freshIp();
    await call("POST", `/v1/ip_pools/${name}/ips`, { ip_address: ip });
    expect((await call("DELETE", `/v1/ip_pools/${name}`)).status).toBe(409);
    await call("DELETE", `/v1/ip_pools/${name}/ips/${ip}`);
    const queueName = `${http.account.key}.${name}/x.test`;
    const message = newMessage({
      accountKey: http.account.key,
      at: clock.now(),
      queueName,
      sendAt: clock.now() + 60_000,
    });
    await accept(store, message);
    expect((await call("DELETE", `/v1/ip_pools/${name}`)).json["code"]).toBe("conflict");
    await store.cancelMessage(http.account.key, message.message.id, clock.now());
    const [job] = await accept(
      store,
      newMessage({ accountKey: http.account.key, at: clock.now(), queueName, lease: true }),
    );
    expect((await call("DELETE", `/v1/ip_pools/${name}`)).status).toBe(409);
    await store.release("boot-1", [job?.key ?? 0], clock.now());
    expect((await call("DELETE", `/v1/ip_pools/${name}`)).status).toBe(409);
    // Mail of another pool, or of one whose name only begins alike, is in nobody's way.
    const shorter = `p${++count}`;
    await call("POST", "/v1/ip_pools", { name: shorter });
    await accept(
      store,
      newMessage({
        accountKey: http.account.key,
        at: clock.now(),
        queueName: `${http.account.key}.${shorter}-b/x.test`,
      }),
    );
    expect((await call("DELETE", `/v1/ip_pools/${shorter}`)).status).toBe(204);
  });

  test("the list goes by name, a page at a time", async () => {
    for (let i = 0; i < 3; i++) await freshPool();
    const seen: unknown[] = [];
    for (let cursor = ""; ;) {
      const { json } = await call("GET", `/v1/ip_pools?limit=2${cursor}`);
      seen.push(...list(json["data"]).map(({ name }) => name));
      if (json["next_cursor"] === null) break;
      cursor = `&cursor=${text(json["next_cursor"])}`;
    }
    expect(seen).toEqual(seen.map(text).toSorted());
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.length).toBeGreaterThanOrEqual(4);
    expect((await call("GET", "/v1/ip_pools?cursor=%25")).status).toBe(400);
  });

  test("only a key of scope admin may see or change pools", async () => {
    const { value } = await http.key("send");
    for (const path of ["/v1/ip_pools", "/v1/ip-pools", "/v1/ips"]) {
      const { status, json } = await http.ask({ path, key: value });
      expect([status, json["error"]?.["required_scope"]]).toEqual([403, "admin"]);
    }
  });

  test("an account has at most a hundred pools", async () => {
    let last = 201;
    for (let i = 0; i < 120 && last === 201; i++)
      last = (await call("POST", "/v1/ip_pools", { name: `many-${i}` })).status;
    expect(last).toBe(409);
    expect(list((await call("GET", "/v1/ip_pools?limit=200")).json["data"])).toHaveLength(100);
    for (let i = 0; i < 100; i++) await call("DELETE", `/v1/ip_pools/many-${i}`);
  });

  test("a request with an Idempotency-Key has its effect once, and its answer is given again", async () => {
    const ask = {
      method: "POST",
      path: "/v1/ip_pools",
      body: { name: "once" },
      headers: { "idempotency-key": "k1" },
    };
    const first = await http.ask(ask);
    const second = await http.ask(ask);
    expect([second.status, second.text, second.headers["location"]]).toEqual([
      201,
      first.text,
      "/v1/ip_pools/once",
    ]);
    expect(second.headers["idempotency-replayed"]).toBe("true");
  });
});

describe("addresses", () => {
  test("an address of this machine can be used, and shows what it was given", async () => {
    const pool = await freshPool();
    const ip = freshIp();
    own.add(ip);
    names.set("out1.acme.example", [ip]);
    const { status, json, headers } = await call("POST", `/v1/ip_pools/${pool}/ips`, {
      ip_address: ip,
      hostname: "Out1.Acme.Example",
      weight: 7,
      warmup: true,
    });
    expect([status, headers["location"]]).toEqual([201, `/v1/ip_pools/${pool}/ips/${ip}`]);
    expect(json).toMatchObject({
      ip_address: ip,
      ip_pool: pool,
      hostname: "out1.acme.example",
      weight: 7,
      status: "warming",
      warmup: { day: 1, sent_today: { google: 0, default: 0 } },
      blacklists: [],
      ptr: null,
      ptr_ok: null,
    });
    const shown = list((await call("GET", `/v1/ip_pools/${pool}`)).json["ips"]);
    expect(shown).toHaveLength(1);
    expect(shown[0]).toMatchObject({ ip_address: ip, weight: 7 });
  });

  test("what is left out is the server's own name, weight 1 and no warm-up", async () => {
    const { json } = await call("POST", `/v1/ip_pools/${await freshPool()}/ips`, { ip_address: freshIp() });
    expect(json).toMatchObject({
      hostname: "mail.acme.example",
      weight: 1,
      warmup: null,
      status: "unbindable",
    });
  });

  test("IPv6 is kept and found in its one form, however it is written", async () => {
    const pool = await freshPool();
    const { status, json } = await call("POST", `/v1/ip_pools/${pool}/ips`, {
      ip_address: "2001:0DB8:0:0::00A1",
    });
    expect([status, json["ip_address"], json["status"]]).toEqual([201, "2001:db8::a1", "unbindable"]);
    const again = await call("POST", "/v1/ip_pools/default/ips", { ip_address: "2001:db8:0::a1" });
    expect(again.status).toBe(409);
    for (const path of ["2001:db8::a1", "2001%3ADB8%3A%3Aa1"])
      expect((await call("PATCH", `/v1/ip_pools/${pool}/ips/${path}`, { weight: 2 })).status).toBe(200);
    expect((await call("DELETE", `/v1/ip_pools/${pool}/ips/2001:db8:0:0:0:0:0:a1`)).status).toBe(204);
  });

  test.each([
    "",
    "x",
    "1.2.3",
    "127.1",
    "010.0.0.1",
    "1.2.3.4/32",
    "0.0.0.0",
    "::",
    "255.255.255.255",
    "224.0.0.1",
    "ff02::1",
    "fe80::1",
    "fe80::1%eth0",
    "::ffff:192.0.2.1",
    "192.0.2.1\n",
  ])("the address %j is refused", async (ip) => {
    const { status, json } = await call("POST", "/v1/ip_pools/default/ips", { ip_address: ip });
    expect([status, json["errors"]?.[0]?.["field"]]).toEqual([422, "ip_address"]);
  });

  test.each([
    [{ weight: 0 }, "weight"],
    [{ weight: 1001 }, "weight"],
    [{ weight: 1.5 }, "weight"],
    [{ weight: "3" }, "weight"],
    [{ hostname: "no name" }, "hostname"],
    [{ hostname: "192.0.2.1" }, "hostname"],
    [{ hostname: "a.test\r\nRCPT TO:<x@y>" }, "hostname"],
    [{ warmup: "soon" }, "warmup"],
    [{ status: "listed" }, "status"],
    [{ colour: 1 }, "colour"],
    [{ ip_pool: "no-such-pool" }, "ip_pool"],
  ])("the change %j is refused", async (change, field) => {
    const pool = await freshPool();
    const ip = freshIp();
    await call("POST", `/v1/ip_pools/${pool}/ips`, { ip_address: ip });
    const { status, json } = await call("PATCH", `/v1/ip_pools/${pool}/ips/${ip}`, change);
    expect([status, json["errors"]?.[0]?.["field"]]).toEqual([422, field]);
  });

  test("an address is in one pool only", async () => {
    const [a, b] = [await freshPool(), await freshPool()];
    const ip = freshIp();
    await call("POST", `/v1/ip_pools/${a}/ips`, { ip_address: ip });
    for (const pool of [a, b]) {
      const { status, json } = await call("POST", `/v1/ip_pools/${pool}/ips`, { ip_address: ip });
      expect([status, json["code"]]).toEqual([409, "conflict"]);
    }
    expect((await call("PATCH", `/v1/ip_pools/${b}/ips/${ip}`, {})).status).toBe(404);
    expect((await call("DELETE", `/v1/ip_pools/${b}/ips/${ip}`)).status).toBe(404);
  });

  test("it moves to another pool with its settings, and is never in none", async () => {
    const [a, b] = [await freshPool(), await freshPool()];
    const ip = freshIp();
    names.set("nine.acme.example", [ip]);
    await call("POST", `/v1/ip_pools/${a}/ips`, { ip_address: ip, weight: 9, hostname: "nine.acme.example" });
    const { json } = await call("PATCH", `/v1/ip_pools/${a}/ips/${ip}`, { ip_pool: b });
    expect(json).toMatchObject({ ip_pool: b, weight: 9, hostname: "nine.acme.example" });
    expect((await call("GET", `/v1/ip_pools/${a}`)).json["ips"]).toEqual([]);
  });

  test("a pause holds until it is resumed; what is not named stays", async () => {
    const pool = await freshPool();
    const ip = freshIp();
    own.add(ip);
    names.set("four.acme.example", [ip]);
    const at = `/v1/ip_pools/${pool}/ips/${ip}`;
    await call("POST", `/v1/ip_pools/${pool}/ips`, {
      ip_address: ip,
      weight: 4,
      hostname: "four.acme.example",
    });
    expect((await call("PATCH", at, { status: "paused" })).json).toMatchObject({
      status: "paused",
      weight: 4,
    });
    expect(pools.mayUse(ip)).toBe(false);
    expect((await call("PATCH", at, { weight: 5 })).json).toMatchObject({ status: "paused", weight: 5 });
    expect((await call("PATCH", at, { status: "active", hostname: null })).json).toMatchObject({
      status: "active",
      hostname: "mail.acme.example",
    });
    expect(pools.mayUse(ip)).toBe(true);
  });

  test("GET /v1/ips lists the addresses of all pools, each once", async () => {
    const ips = list((await call("GET", "/v1/ips?limit=200")).json["data"]);
    const addresses = ips.map(({ ip_address: address }) => text(address));
    expect(new Set(addresses).size).toBe(addresses.length);
    expect(ips.every(({ ip_pool: pool }) => typeof pool === "string")).toBe(true);
    const page = await call("GET", "/v1/ips?limit=1");
    expect([page.json["has_more"], list(page.json["data"]).length]).toEqual([true, 1]);
  });

  test("what the DNS calls it is looked up behind the answer, and must be the name of EHLO with the address again", async () => {
    const pool = await freshPool();
    const ip = freshIp();
    own.add(ip);
    names.set(ip, ["OUT.acme.example."]);
    names.set("out.acme.example", [ip]);
    const at = `/v1/ip_pools/${pool}/ips/${ip}`;
    const shown = async () => list((await call("GET", `/v1/ip_pools/${pool}`)).json["ips"])[0];
    const added = await call("POST", `/v1/ip_pools/${pool}/ips`, { ip_address: ip });
    expect(added.json).toMatchObject({ ptr: null, ptr_ok: null });
    await pools.look();
    expect(await shown()).toMatchObject({ ptr: "out.acme.example", ptr_ok: false });
    await call("PATCH", at, { hostname: "out.acme.example" });
    await pools.look();
    expect(await shown()).toMatchObject({ ptr: "out.acme.example", ptr_ok: true });
    names.set("out.acme.example", ["198.51.100.250"]);
    await pools.look();
    expect(await shown()).toMatchObject({ ptr_ok: true }); // what was well is good for an hour
    await clock.advance(3_600_000);
    await pools.look();
    expect(await shown()).toMatchObject({ ptr_ok: false });
  });

  test("an address that comes to the machine, or leaves it, is seen within a round", async () => {
    const pool = await freshPool();
    const ip = freshIp();
    await call("POST", `/v1/ip_pools/${pool}/ips`, { ip_address: ip });
    const status = async () => list((await call("GET", `/v1/ip_pools/${pool}`)).json["ips"])[0]?.["status"];
    expect(await status()).toBe("unbindable");
    own.add(ip);
    await pools.look();
    expect(await status()).toBe("active");
    own.delete(ip);
    await pools.look();
    expect(await status()).toBe("unbindable");
  });
});

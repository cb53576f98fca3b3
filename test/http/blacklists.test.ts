// /v1/blacklists on the operator's socket: what is known of addresses, a check, and the zones, over a real store and the
// real monitor with a DNS from a table.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { DnsAnswer } from "../../src/dns/resolver.ts";
import { createDnsbl, type Dnsbl } from "../../src/dnsbl/dnsbl.ts";
import { builtInZones, mostZones } from "../../src/dnsbl/zones.ts";
import { createRecorder } from "../../src/events/record.ts";
import { createIdMint } from "../../src/ids.ts";
import { silentLog } from "../../src/log.ts";
import type { Pool } from "../../src/model/ip-pool.ts";
import type { Store } from "../../src/store/store.ts";
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { list, startHttp, text, type Answer, type Harness } from "./harness.ts";

let http: Harness;
let store: Store;
let clock: ManualClock;
let dnsbl: Dnsbl;
const records = new Map<string, string>();
const minute = 60_000;

beforeEach(async () => {
  clock = new ManualClock();
  records.clear();
  store = await openSqlite(newDirectory(), clock);
  const account = (await store.accountByName("default"))?.key ?? 0;
  for (const [pool, address] of [
    ["default", "11.22.33.44"],
    ["news", "11.22.33.55"],
  ] as const) {
    if (pool === "news")
      await store.createPool({ accountKey: account, name: pool, description: null, isDefault: false, at: 0 });
    await store.addAddress(
      account,
      pool,
      { address, hostname: null, weight: 1, warmup: null, bindable: true },
      0,
    );
  }
  let pools: Pool[] = await store.listPools(account);
  const a = (name: string): Promise<DnsAnswer<string>> => {
    const found = records.get(name);
    if (found === undefined) return Promise.resolve({ kind: "nxdomain" });
    return Promise.resolve({ kind: "found", records: [found], ttlSeconds: 0, authenticated: false });
  };
  dnsbl = createDnsbl({
    store,
    pools: () => pools,
    resolver: { a, aaaa: a, txt: () => Promise.resolve({ kind: "failed", why: "timed out" }) },
    recorder: createRecorder({ clock, mint: createIdMint() }),
    config: { intervalMs: 60 * minute, zones: [] },
    system: { hostname: "mail.test", sources: [], accountKey: account },
    async onShown() {
      pools = await store.listPools(account);
    },
    clock,
    log: silentLog,
    random: () => 0,
  });
  await dnsbl.start();
  http = await startHttp({ opened: { store, clock }, dnsbl });
});
afterEach(() => http.stop());

const operator = (method: string, path: string, body?: unknown): Promise<Answer> =>
  http.ask({ admin: true, method, path, ...(body === undefined ? {} : { body }) });
const zoneNames = async () =>
  list((await operator("GET", "/v1/blacklists/zones")).json["data"]).map((row) => row["zone"]);
const checked = async (body: unknown = {}) =>
  list((await operator("POST", "/v1/blacklists/check", body)).json["data"]);

test("addresses are shown at each zone: unknown before the first look-up, listed once two agree", async () => {
  records.set("2.0.0.127.zen.spamhaus.org", "127.0.0.2");
  records.set("44.33.22.11.zen.spamhaus.org", "127.0.0.4");
  const atZen = (rows: Answer["json"][], ip: string) => {
    const row = rows.find((one) => text(one["ip_address"]) === ip);
    return list(row?.["blacklists"]).find((one) => text(one["blacklist_zone"]) === "zen.spamhaus.org");
  };
  const first = await checked();
  expect(first.map((row) => [row["ip_address"], row["affected_pools"], row["listed"]])).toEqual([
    ["11.22.33.44", ["default"], false],
    ["11.22.33.55", ["news"], false],
  ]);
  expect(atZen(first, "11.22.33.44")).toMatchObject({ status: "not_listed", last_answer: "listed" });
  await clock.advance(minute);
  const second = await checked({ ip_address: "11.22.33.44" });
  expect(second).toHaveLength(1);
  const iso = new Date(clock.now() - minute).toISOString();
  expect(atZen(second, "11.22.33.44")).toEqual({
    blacklist_name: "Spamhaus ZEN",
    blacklist_zone: "zen.spamhaus.org",
    status: "listed",
    last_answer: "listed",
    detail: null,
    return_codes: [{ code: "127.0.0.4", meaning: "XBL: an infected or abused machine" }],
    listing_reason: "XBL: an infected or abused machine",
    removal_url: "https://check.spamhaus.org/",
    listed_at: iso,
    looked_at: new Date(clock.now()).toISOString(),
  });
  const shown = list((await operator("GET", "/v1/blacklists")).json["data"]);
  expect(shown.map((row) => row["listed"])).toEqual([true, false]);
  const broken = list(shown[0]?.["blacklists"]).find(
    (one) => text(one["blacklist_zone"]) === "bl.spamcop.net",
  );
  expect(broken).toMatchObject({ status: "unknown", detail: "does not list the test address 127.0.0.2" });
  await clock.advance(3 * 24 * 60 * minute); // nobody asks meanwhile
  const old = list((await operator("GET", "/v1/blacklists")).json["data"]);
  expect(old.map((row) => row["listed"])).toEqual([false, false]);
  expect(atZen(old, "11.22.33.44")).toMatchObject({
    status: "unknown",
    listed_at: iso,
    detail: expect.stringContaining("counts no more") as string,
  });
});

test("a check of an address that mail does not leave from is 404, one of no address 422", async () => {
  expect((await operator("POST", "/v1/blacklists/check", { ip_address: "8.8.8.8" })).status).toBe(404);
  expect((await operator("POST", "/v1/blacklists/check", { ip_address: "x" })).status).toBe(422);
});

test("a zone is added, tested and removed, and a built-in one is taken away and back", async () => {
  const builtIn = builtInZones.map(({ zone }) => zone).toSorted();
  expect(await zoneNames()).toEqual(builtIn);
  const body = {
    zone: "BL.test",
    codes: ["127.0.0.2", "127.0.0.4-127.0.0.7"],
    removal_url: "https://bl.test/x",
  };
  const added = await operator("POST", "/v1/blacklists/zones", body);
  expect([added.status, added.headers["location"]]).toEqual([201, "/v1/blacklists/zones/bl.test"]);
  expect(added.json).toMatchObject({ zone: "bl.test", name: "bl.test", source: "added", health: "untested" });
  expect((await operator("POST", "/v1/blacklists/zones", body)).status).toBe(409);
  records.set("2.0.0.127.bl.test", "127.0.0.2");
  const tested = await operator("POST", "/v1/blacklists/zones/BL.test/test");
  expect(tested.json).toMatchObject({ health: "ok", detail: null });
  expect((await operator("DELETE", "/v1/blacklists/zones/bl.test")).status).toBe(204);
  expect((await operator("DELETE", "/v1/blacklists/zones/bl.test")).status).toBe(404);
  expect((await operator("POST", "/v1/blacklists/zones/bl.test/test")).status).toBe(404);
  expect((await operator("DELETE", "/v1/blacklists/zones/bl.spamcop.net")).status).toBe(204);
  expect(await zoneNames()).not.toContain("bl.spamcop.net");
  const back = await operator("POST", "/v1/blacklists/zones", { zone: "bl.spamcop.net" });
  expect(back.json).toMatchObject({ name: "SpamCop", removal_url: "https://www.spamcop.net/bl.shtml" });
  expect(await zoneNames()).toEqual(builtIn);
  const audit = list((await operator("GET", "/v1/audit?limit=50")).json["data"]).map((row) => row["action"]);
  expect(audit).toContain("blacklists.zones.create");
  expect(audit).toContain("blacklists.zones.delete");
});

test.each([
  { zone: "not a zone" },
  { zone: "bl.test", codes: [] },
  { zone: "bl.test", codes: ["127.0.0.300"] },
  { zone: "bl.test", codes: ["10.0.0.1"] },
  { zone: "bl.test", removal_url: "javascript:alert(1)" },
  { zone: "bl.test", name: "" },
])("the zone %j is refused", async (body) => {
  expect((await operator("POST", "/v1/blacklists/zones", body)).status).toBe(422);
});

test("zones are bounded, and listed in pages", async () => {
  for (let i = builtInZones.length; i < mostZones; i++)
    expect(
      (await operator("POST", "/v1/blacklists/zones", { zone: `z${i}.${"long.".repeat(20)}test` })).status,
    ).toBe(201);
  expect((await operator("POST", "/v1/blacklists/zones", { zone: "more.test" })).status).toBe(409);
  const page = await operator("GET", "/v1/blacklists/zones?limit=49");
  const rest = await operator("GET", `/v1/blacklists/zones?cursor=${text(page.json["next_cursor"])}`);
  expect([list(page.json["data"]).length, list(rest.json["data"]).length]).toEqual([49, 1]);
});

test("a key of the API reaches none of it", async () => {
  expect((await http.ask({ path: "/v1/blacklists" })).status).toBe(404);
});

// The monitor over a fake DNS and a real store, its time moved by hand.
import { expect, onTestFinished, test } from "vitest";
import type { DnsAnswer } from "../../src/dns/resolver.ts";
import { createDnsbl, type DnsblDeps } from "../../src/dnsbl/dnsbl.ts";
import type { ListingChange } from "../../src/dnsbl/changes.ts";
import { createRecorder } from "../../src/events/record.ts";
import { createIdMint } from "../../src/ids.ts";
import { silentLog } from "../../src/log.ts";
import type { Pool, PoolAddress } from "../../src/model/ip-pool.ts";
import { StoreUnavailable, type Store } from "../../src/store/store.ts";
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";

const hour = 3_600_000;
const named = (zone: string) => ({ zone, name: null, codes: null, removalUrl: null });

interface Bench {
  clock: ManualClock;
  store: Store;
  /** What the DNS has; a name that is not there does not exist. "silent": no answer. */
  records: Map<string, string[] | "silent">;
  asked: string[];
  changes: ListingChange[];
  shown: number[];
  pools(): Promise<Pool[]>;
  add(address: string, over?: { hostname?: string; pool?: string; bindable?: boolean }): Promise<void>;
  start(over?: Partial<DnsblDeps>): Promise<ReturnType<typeof createDnsbl>>;
  /** The events recorded so far, their data alone. */
  events(): Promise<Record<string, unknown>[]>;
}

async function bench(zones = ["bl.test"]): Promise<Bench> {
  const clock = new ManualClock();
  const store = await openSqlite(newDirectory(), clock);
  onTestFinished(() => store.close());
  const account = (await store.accountByName("default"))?.key ?? 0;
  const records = new Map<string, string[] | "silent">(
    zones.map((zone) => [`2.0.0.127.${zone}`, ["127.0.0.2"]]),
  );
  const asked: string[] = [];
  const changes: ListingChange[] = [];
  const shown: number[] = [];
  const answer = (type: string) => (name: string) => {
    asked.push(`${type} ${name}`);
    const found = records.get(type === "A" ? name : `${type} ${name}`);
    const given: DnsAnswer<string> =
      found === undefined
        ? { kind: "nxdomain" }
        : found === "silent"
          ? { kind: "failed", why: "timed out" }
          : { kind: "found", records: found, ttlSeconds: 0, authenticated: false };
    return Promise.resolve(given);
  };
  const pools = () => store.listPools(account);
  return {
    clock,
    store,
    records,
    asked,
    changes,
    shown,
    pools,
    async add(address, { hostname = null, pool = "default", bindable = true } = {}) {
      if (pool !== "default")
        await store.createPool({
          accountKey: account,
          name: pool,
          description: null,
          isDefault: false,
          at: 0,
        });
      await store.addAddress(account, pool, { address, hostname, weight: 1, warmup: null, bindable }, 0);
    },
    async start(over = {}) {
      let known = await pools();
      const dnsbl = createDnsbl({
        store,
        pools: () => known,
        resolver: { a: answer("A"), aaaa: answer("AAAA"), txt: answer("TXT") },
        recorder: createRecorder({ clock, mint: createIdMint() }),
        config: { intervalMs: hour, zones: zones.map(named) },
        system: { hostname: "mail.test", sources: [], accountKey: account },
        async onShown(accountKey) {
          shown.push(accountKey);
          known = await pools();
        },
        clock,
        log: silentLog,
        random: () => 0.5,
        ...over,
      });
      dnsbl.onChanges((found) => void changes.push(...found));
      await dnsbl.start();
      return dnsbl;
    },
    async events() {
      const page = await store.listEvents(account, {}, { limit: 100, cursor: null });
      return page.rows.map(({ body }) => (JSON.parse(body) as { data: Record<string, unknown> }).data);
    },
  };
}

const runOf = (dnsbl: ReturnType<typeof createDnsbl>): Promise<void> => {
  const [job] = dnsbl.jobs;
  if (!job) throw new Error("no job");
  return job.run();
};
const listed = "A 44.33.22.11.bl.test";
const addressIn = async (b: Bench): Promise<PoolAddress | undefined> =>
  (await b.pools()).flatMap(({ addresses }) => addresses)[0];

test("two look-ups an interval apart make the event, the operator's notice and the address's status", async () => {
  const b = await bench();
  await b.add("11.22.33.44");
  b.records.set("44.33.22.11.bl.test", ["127.0.0.2"]);
  b.records.set("TXT 44.33.22.11.bl.test", ["spam"]);
  const dnsbl = await b.start();
  const found = new Date(b.clock.now()).toISOString();
  await runOf(dnsbl);
  expect([await b.events(), b.changes]).toEqual([[], []]);
  await b.clock.advance(hour);
  await runOf(dnsbl);
  expect(await b.events()).toEqual([
    {
      ip_address: "11.22.33.44",
      blacklist_name: "bl.test",
      blacklist_zone: "bl.test",
      affected_pools: ["default"],
      listing_reason: "spam",
      detected_at: found,
      return_code: "127.0.0.2",
      removal_url: null,
    },
  ]);
  expect([b.changes.length, b.shown.length]).toEqual([1, 1]);
  expect((await addressIn(b))?.blacklists).toEqual(["bl.test"]);
  b.records.delete("44.33.22.11.bl.test");
  for (let i = 0; i < 2; i++) {
    await b.clock.advance(hour);
    await runOf(dnsbl);
  }
  expect((await b.events())[1]).toMatchObject({ listed_at: found, duration_seconds: 2 * 3600 });
  expect((await addressIn(b))?.blacklists).toEqual([]);
});

test("each address is asked once an interval, over a restart and a check too, and the zone tested once a day", async () => {
  const b = await bench();
  await b.add("11.22.33.44");
  let dnsbl = await b.start();
  for (let i = 0; i < 59; i++) {
    await runOf(dnsbl);
    await b.clock.advance(60_000);
  }
  await dnsbl.stop();
  dnsbl = await b.start();
  await runOf(dnsbl);
  expect(b.asked.filter((question) => question === listed)).toHaveLength(1);
  await b.clock.advance(60_000);
  await runOf(dnsbl);
  await dnsbl.check(null);
  expect(b.asked.filter((question) => question === listed)).toHaveLength(2);
  await b.clock.advance(60_000);
  await dnsbl.check("11.22.33.44");
  expect(b.asked.filter((question) => question === listed)).toHaveLength(3);
  b.asked.length = 0;
  for (let i = 0; i < 25; i++) {
    await b.clock.advance(hour);
    await runOf(dnsbl);
  }
  expect(b.asked.filter((question) => question === "A 2.0.0.127.bl.test")).toHaveLength(1);
});

test("a restart between the two look-ups loses neither, and announces nothing again", async () => {
  const b = await bench();
  await b.add("11.22.33.44");
  b.records.set("44.33.22.11.bl.test", ["127.0.0.2"]);
  for (let i = 0; i < 4; i++) {
    const dnsbl = await b.start();
    await runOf(dnsbl);
    await dnsbl.stop();
    await b.clock.advance(hour);
  }
  expect(await b.events()).toHaveLength(1);
});

test("a clock that was set back does not silence the monitor", async () => {
  const b = await bench();
  await b.add("11.22.33.44");
  const dnsbl = await b.start();
  await runOf(dnsbl);
  b.clock.jump(-100 * hour);
  await runOf(dnsbl);
  expect(b.asked.filter((question) => question === listed)).toHaveLength(2);
});

test("a zone that fails its test is not asked, one that does not answer it is tested again after an interval", async () => {
  const b = await bench(["broken.test", "silent.test"]);
  await b.add("11.22.33.44");
  b.records.delete("2.0.0.127.broken.test");
  b.records.set("2.0.0.127.silent.test", "silent");
  const dnsbl = await b.start();
  await runOf(dnsbl);
  expect(b.asked.toSorted()).toEqual(["A 2.0.0.127.broken.test", "A 2.0.0.127.silent.test"]);
  expect(dnsbl.zones().map(({ tested }) => tested?.health.status)).toEqual(["broken", "unknown"]);
  b.records.set("2.0.0.127.silent.test", ["127.0.0.2"]);
  await runOf(dnsbl);
  expect(b.asked).toHaveLength(2);
  await b.clock.advance(hour);
  await runOf(dnsbl);
  expect(b.asked.slice(2)).toEqual([
    "A 2.0.0.127.silent.test",
    "A 1.0.0.127.silent.test",
    expect.stringContaining(".0.0.silent.test"),
    "A 44.33.22.11.silent.test",
  ]);
});

test("a zone that falls silent is left after three questions, and nothing it said before changes", async () => {
  const b = await bench();
  const addresses = Array.from({ length: 10 }, (_, i) => `11.22.33.${i + 1}`);
  for (const address of addresses) await b.add(address);
  const dnsbl = await b.start();
  await runOf(dnsbl);
  for (let i = 1; i <= 10; i++) b.records.set(`${i}.33.22.11.bl.test`, "silent");
  b.asked.length = 0;
  await b.clock.advance(hour);
  await runOf(dnsbl);
  expect(b.asked).toHaveLength(3);
  expect(await b.events()).toEqual([]);
});

test("what a zone listed counts no more once it was silent for days, without an event, and again once it answers", async () => {
  const b = await bench();
  await b.add("11.22.33.44");
  const lists = ["2.0.0.127.bl.test", "44.33.22.11.bl.test"];
  for (const name of lists) b.records.set(name, ["127.0.0.2"]);
  let dnsbl = await b.start();
  const passHours = async (hours: number): Promise<void> => {
    for (let i = 0; i < hours; i++) {
      await b.clock.advance(hour);
      await runOf(dnsbl);
    }
  };
  await runOf(dnsbl);
  await passHours(1);
  expect((await addressIn(b))?.blacklists).toEqual(["bl.test"]);

  for (const name of lists) b.records.set(name, "silent");
  await passHours(3 * 24 - 1);
  expect((await addressIn(b))?.blacklists).toEqual(["bl.test"]);
  await dnsbl.stop();
  dnsbl = await b.start();
  await passHours(26);
  expect((await addressIn(b))?.blacklists).toEqual([]);
  expect(dnsbl.listings()[0]?.zones[0]).toMatchObject({ listed: false, listing: { codes: ["127.0.0.2"] } });
  expect([dnsbl.summary().listed, await b.events()]).toMatchObject([[], [{ return_code: "127.0.0.2" }]]);

  for (const name of lists) b.records.set(name, ["127.0.0.2"]);
  await passHours(1);
  expect((await addressIn(b))?.blacklists).toEqual(["bl.test"]);
  expect(await b.events()).toHaveLength(1);
  b.records.delete("44.33.22.11.bl.test");
  await passHours(2);
  expect([(await addressIn(b))?.blacklists, (await b.events()).length]).toEqual([[], 2]);
});

test("behind NAT the public addresses of the EHLO name are looked up, one question for all that share one", async () => {
  const b = await bench();
  await b.add("10.0.0.5", { hostname: "out.test" });
  await b.add("10.0.0.6", { hostname: "out.test", pool: "news" });
  b.records.set("out.test", ["11.22.33.44", "192.168.0.1"]);
  b.records.set("44.33.22.11.bl.test", ["127.0.0.2"]);
  const dnsbl = await b.start();
  await runOf(dnsbl);
  await b.clock.advance(hour);
  await runOf(dnsbl);
  expect(await b.events()).toMatchObject([
    { ip_address: "11.22.33.44", affected_pools: ["default", "news"] },
  ]);
  const all = (await b.pools()).flatMap(({ addresses }) => addresses);
  expect(all.map(({ blacklists }) => blacklists)).toEqual([["bl.test"], ["bl.test"]]);
  expect(b.asked.filter((question) => question === listed)).toHaveLength(2);
  expect((await dnsbl.check("10.0.0.6")).map(({ address }) => address)).toEqual(["11.22.33.44"]);
});

test("the system's choice is looked up by the server's hostname, outbound.source by its addresses", async () => {
  const b = await bench();
  b.records.set("mail.test", ["11.22.33.44"]);
  b.records.set("AAAA mail.test", ["2a00:1234::1"]);
  const dnsbl = await b.start();
  await runOf(dnsbl);
  expect(dnsbl.listings().map(({ address, pools }) => [address, pools])).toEqual([
    ["11.22.33.44", ["default"]],
    ["2a00:1234::1", ["default"]],
  ]);
  const system = { hostname: "mail.test", sources: ["11.22.33.55"], accountKey: 1 };
  const other = await b.start({ system });
  await runOf(other);
  expect(other.listings().map(({ address }) => address)).toEqual(["11.22.33.55"]);
});

test("a zone without IPv6 addresses is not asked about one", async () => {
  const b = await bench(["four.test", "six.test"]);
  await b.add("2a00:1234::1");
  b.records.set(`2.0.0.0.0.0.f.7.f.f.f.f.${"0.".repeat(20)}six.test`, ["127.0.0.2"]);
  const dnsbl = await b.start();
  await runOf(dnsbl);
  const nibbles = `1.${"0.".repeat(23)}4.3.2.1.0.0.a.2`;
  expect(b.asked.filter((question) => question.includes(nibbles))).toEqual([`A ${nibbles}.six.test`]);
  expect(dnsbl.listings()[0]?.zones.map(({ zone }) => zone.zone)).toEqual(["six.test"]);
});

test("with a smart host nothing is looked up", async () => {
  const b = await bench();
  await b.add("11.22.33.44");
  const dnsbl = await b.start({ system: null });
  await runOf(dnsbl);
  await dnsbl.check(null);
  expect([b.asked, dnsbl.listings()]).toEqual([[], []]);
});

test("an address that this machine does not have is not asked about, and keeps its listing meanwhile", async () => {
  const b = await bench();
  await b.add("11.22.33.44", { bindable: false });
  const dnsbl = await b.start();
  await runOf(dnsbl);
  expect(b.asked).toEqual([]);
  const row = {
    answer: "listed" as const,
    detail: null,
    codes: ["127.0.0.2"],
    reason: null,
    changedAt: null,
  };
  await b.store.saveListings(
    [{ address: "11.22.33.44", zone: "bl.test", lookedAt: 0, listedAt: 1, ...row }],
    [],
  );
  const again = await b.start();
  await runOf(again);
  expect(again.listings()[0]?.zones[0]?.listing?.listedAt).toBe(1);
});

test("while the EHLO name cannot be looked up nothing is forgotten; a removed address is, without an event", async () => {
  const b = await bench();
  await b.add("10.0.0.5", { hostname: "out.test" });
  b.records.set("out.test", ["11.22.33.44"]);
  b.records.set("44.33.22.11.bl.test", ["127.0.0.2"]);
  const first = await b.start();
  await runOf(first);
  b.records.set("out.test", "silent");
  const second = await b.start();
  await runOf(second);
  expect(await b.store.listings()).toHaveLength(1);
  b.records.delete("out.test");
  await b.clock.advance(hour);
  await runOf(second);
  expect([await b.store.listings(), await b.events()]).toEqual([[], []]);
});

test("a removed zone no longer lists anything", async () => {
  const b = await bench(["a.test", "b.test"]);
  await b.add("11.22.33.44");
  for (const zone of ["a.test", "b.test"]) b.records.set(`44.33.22.11.${zone}`, ["127.0.0.2"]);
  const dnsbl = await b.start();
  await runOf(dnsbl);
  await b.clock.advance(hour);
  await runOf(dnsbl);
  expect((await addressIn(b))?.blacklists).toEqual(["a.test", "b.test"]);
  await b.store.putZoneChange({ ...named("a.test"), watched: false });
  await dnsbl.zonesChanged();
  await runOf(dnsbl);
  expect((await addressIn(b))?.blacklists).toEqual(["b.test"]);
  expect((await b.store.listings()).map(({ zone }) => zone)).toEqual(["b.test"]);
});

test("what could not be written is neither announced nor asked for again before an interval", async () => {
  const b = await bench();
  await b.add("11.22.33.44");
  b.records.set("44.33.22.11.bl.test", ["127.0.0.2"]);
  let full = false;
  const store: DnsblDeps["store"] = {
    listings: () => b.store.listings(),
    zoneChanges: () => b.store.zoneChanges(),
    removeListings: (gone) => b.store.removeListings(gone),
    showBlacklists: (addresses, at) => b.store.showBlacklists(addresses, at),
    saveListings: (rows, events) =>
      full ? Promise.reject(new StoreUnavailable("full", "no room")) : b.store.saveListings(rows, events),
  };
  const dnsbl = await b.start({ store });
  await runOf(dnsbl);
  full = true;
  await b.clock.advance(hour);
  await expect(runOf(dnsbl)).rejects.toThrow("no room");
  await runOf(dnsbl);
  expect(b.asked.filter((question) => question === listed)).toHaveLength(2);
  full = false;
  await b.clock.advance(hour);
  await runOf(dnsbl);
  expect([await b.events(), b.changes]).toMatchObject([[{ ip_address: "11.22.33.44" }], [{}]]);
});

test("after its seconds a run ends, and the next goes on with what was not asked", async () => {
  const b = await bench();
  for (let i = 1; i <= 5; i++) await b.add(`11.22.33.${i}`);
  const slow = await b.start({
    resolver: {
      a: async (name) => {
        b.asked.push(name);
        await b.clock.advance(8000);
        return name.startsWith("2.0.0.127")
          ? { kind: "found", records: ["127.0.0.2"], ttlSeconds: 0, authenticated: false }
          : { kind: "nxdomain" };
      },
      aaaa: () => Promise.resolve({ kind: "nxdomain" }),
      txt: () => Promise.resolve({ kind: "nxdomain" }),
    },
  });
  await runOf(slow);
  await runOf(slow);
  await runOf(slow);
  const own = b.asked.filter((name) => name.includes(".33.22.11."));
  expect(own.toSorted()).toEqual([1, 2, 3, 4, 5].map((i) => `${i}.33.22.11.bl.test`));
});

test("the job runs at a second of its own", async () => {
  const b = await bench();
  expect((await b.start()).jobs).toMatchObject([{ name: "check-blacklists", cron: "30 * * * * *" }]);
});

test("a zone that closes and lists every address makes no event", async () => {
  const b = await bench();
  await b.add("11.22.33.44");
  const dnsbl = await b.start();
  await runOf(dnsbl);
  b.records.set("1.0.0.127.bl.test", ["127.0.0.2"]);
  b.records.set("44.33.22.11.bl.test", ["127.0.0.2"]);
  for (let i = 0; i < 30; i++) {
    await b.clock.advance(hour);
    await runOf(dnsbl);
  }
  expect([await b.events(), (await addressIn(b))?.blacklists]).toEqual([[], []]);
  expect(dnsbl.zones()[0]?.tested?.health.status).toBe("broken");
});

test("a host name that cannot be looked up at the start is asked for again soon", async () => {
  const b = await bench();
  b.records.set("mail.test", "silent");
  const dnsbl = await b.start();
  await runOf(dnsbl);
  b.records.set("mail.test", ["11.22.33.44"]);
  await b.clock.advance(5 * 60_000);
  await runOf(dnsbl);
  expect(dnsbl.listings().map(({ address }) => address)).toEqual(["11.22.33.44"]);
});

// Which of a pool's addresses can be used, as it changes, and what the operator is told.
import { expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import type { Pool, PoolAddress } from "../../src/model/ip-pool.ts";
import { canBind } from "../../src/pools/bind.ts";
import { createPools } from "../../src/pools/pools.ts";
import { subjectOf } from "../../src/pools/problems.ts";
import { chooseByWeight, sourcesOf } from "../../src/pools/sources.ts";
import { ManualClock } from "../support/clock.ts";
import { noWarmups } from "../support/warmups.ts";

const address = (ip: string, over: Partial<PoolAddress> = {}): PoolAddress => ({
  address: ip,
  hostname: null,
  weight: 1,
  paused: false,
  warmupStartedAt: null,
  bindable: true,
  ptr: null,
  ptrOk: null,
  blacklists: [],
  createdAt: 0,
  updatedAt: 0,
  ...over,
});

const failed = () => Promise.resolve({ kind: "failed" as const, why: "no server" });
const noAnswer = { ptr: failed, a: failed, aaaa: failed };

function bench(addresses: PoolAddress[], own: Set<string>, name = "default") {
  const pool: Pool = {
    accountKey: 1,
    name,
    description: null,
    isDefault: true,
    addresses,
    createdAt: 0,
    updatedAt: 0,
  };
  const told: string[] = [];
  const pools = createPools({
    store: {
      listPools: (key) => Promise.resolve(key === 1 ? [pool] : []),
      ...noWarmups,
      accountsWithPools: () => Promise.resolve([1]),
      saveLooks(looks) {
        for (const look of looks)
          pool.addresses = pool.addresses.map((one) =>
            one.address === look.address ? { ...one, ...look } : one,
          );
        return Promise.resolve();
      },
    },
    resolver: noAnswer,
    hostname: "mail.test",
    drainListed: true,
    clock: new ManualClock(),
    log: silentLog,
    canBind: (ip) => Promise.resolve(own.has(ip)),
  });
  pools.onProblem((problem) => void told.push(subjectOf(problem)));
  const usable = () =>
    pools
      .sourcesOf(1, name)
      .usable(null)
      .map((source) => source.address);
  return { pools, pool, told, usable };
}

test("an address that this machine lost while it was down is not used, and the operator is notified once", async () => {
  const own = new Set<string>();
  const { pools, told, usable } = bench([address("192.0.2.1")], own);
  await pools.start();
  expect(usable()).toEqual([]);
  await pools.look();
  await pools.look();
  expect(told).toEqual([
    "no address of the pool default can be used: 192.0.2.1 is not an address of this machine",
  ]);
  let changes = 0;
  pools.onChange(() => void changes++);
  own.add("192.0.2.1");
  await pools.look();
  expect([usable(), changes, pools.mayUse("192.0.2.1")]).toEqual([["192.0.2.1"], 1, true]);
});

test("an address that came back while the program was down is not news for the operator", async () => {
  const { pools, told, usable } = bench([address("192.0.2.1", { bindable: false })], new Set(["192.0.2.1"]));
  await pools.start();
  expect([usable(), told]).toEqual([["192.0.2.1"], []]);
});

test("the loss of a family's last address is reported, since hosts of that family alone wait for it", async () => {
  const own = new Set(["192.0.2.1", "2001:db8::1"]);
  const { pools, told } = bench([address("192.0.2.1"), address("2001:db8::1")], own);
  await pools.start();
  expect(told).toEqual([]);
  own.delete("192.0.2.1");
  await pools.look();
  await pools.look();
  expect(told).toEqual([
    "no IPv4 address of the pool default can be used: 192.0.2.1 is not an address of this machine",
  ]);
  own.delete("2001:db8::1");
  await pools.look();
  expect(told.slice(1)).toEqual([
    "no address of the pool default can be used: 192.0.2.1 is not an address of this machine, 2001:db8::1 is not an address of this machine",
  ]);
  own.add("192.0.2.1").add("2001:db8::1");
  await pools.look();
  expect(told).toHaveLength(2);
});

test("while one address can be used nothing is reported, and a pause of the last is", async () => {
  const { pools, pool, told, usable } = bench(
    [address("192.0.2.1"), address("192.0.2.2")],
    new Set(["192.0.2.1"]),
  );
  await pools.start();
  expect([usable(), told]).toEqual([["192.0.2.1"], []]);
  pool.addresses = pool.addresses.map((one) => ({ ...one, paused: true }));
  await pools.changed(1);
  expect([usable(), told.length]).toEqual([[], 1]);
});

test("a pool without addresses, and one that nobody made, leave the choice to the system", async () => {
  const { pools, usable } = bench([], new Set());
  await pools.start();
  expect(usable()).toEqual([null]);
  expect(pools.sourcesOf(2, "default").usable(6)).toHaveLength(1);
  expect(pools.sourcesOf(1, "gone").usable(null)).toHaveLength(1);
  expect([pools.nameFor(1, null), pools.nameFor(2, null), pools.nameFor(2, "news")]).toEqual([
    "default",
    "default",
    null,
  ]);
});

test("what changes for several accounts at once is told once", async () => {
  const looks: string[] = [];
  const pools = createPools({
    store: {
      ...noWarmups,
      accountsWithPools: () => Promise.resolve([1, 2, 3]),
      listPools: (accountKey) =>
        Promise.resolve([
          {
            accountKey,
            name: "default",
            description: null,
            isDefault: true,
            addresses: [address(`192.0.2.${accountKey}`)],
            createdAt: 0,
            updatedAt: 0,
          },
        ]),
      saveLooks: async (saved) => void looks.push(...saved.map((look) => look.address)),
    },
    resolver: noAnswer,
    hostname: "mail.test",
    clock: new ManualClock(),
    log: silentLog,
    canBind: () => Promise.resolve(false),
  });
  let changes = 0;
  pools.onChange(() => void changes++);
  await pools.start();
  expect([looks.length, changes]).toEqual([3, 2]); // read, and read again after the look
});

test("a failed look-up of the name changes nothing that was seen before", async () => {
  const { pools, pool } = bench(
    [address("192.0.2.1", { ptr: "out.test", ptrOk: true })],
    new Set(["192.0.2.1"]),
  );
  await pools.start();
  await pools.look();
  expect(pool.addresses[0]).toMatchObject({ ptr: "out.test", ptrOk: true });
});

test("this machine has its loopback addresses, and not those of documentation", async () => {
  expect(await canBind("127.0.0.9")).toBe(true);
  for (const other of ["192.0.2.1", "2001:db8::1", "no address"]) expect(await canBind(other)).toBe(false);
});

test("a choice by weight falls on each as often as it weighs, and on one of them at the edges", () => {
  const list = [{ weight: 1 }, { weight: 3 }, { weight: 6 }];
  const counts = list.map(() => 0);
  for (let i = 0; i < 1000; i++) {
    const chosen = chooseByWeight(list, i / 1000);
    const index = list.findIndex((one) => one === chosen);
    counts[index] = (counts[index] ?? 0) + 1;
  }
  expect(counts).toEqual([100, 300, 600]);
  expect(chooseByWeight(list, 0.999999999)).toBe(list[2]);
  expect(chooseByWeight([], 0.5)).toBeNull();
});

test("the pool default without addresses leaves the choice to the system", async () => {
  const { pools, told, usable } = bench([], new Set());
  await pools.start();
  await pools.look();
  expect([usable(), told]).toEqual([[null], []]);
});

test("mail of any other pool without addresses waits; a new pool is not an alarm until mail does, and then once", async () => {
  const own = new Set(["192.0.2.1"]);
  const { pools, pool, told, usable } = bench([], own, "news");
  await pools.start();
  expect(pools.sourcesOf(1, "news").families).toEqual([4, 6]); // one of either family may come: nothing bounces for want of it
  expect(usable()).toEqual([]);
  await pools.changed(1);
  await pools.look();
  expect(told).toEqual([]);
  expect(pools.problems()).toMatchObject([{ pool: "news", waits: "all", addresses: [] }]);
  for (let i = 0; i < 3; i++) pools.noteWaiting(1, "news");
  await pools.look();
  expect(told).toEqual(["the pool news has no address"]);
  pool.addresses = [address("192.0.2.1")];
  await pools.changed(1);
  await pools.look();
  expect([usable(), pools.problems(), told.length]).toEqual([["192.0.2.1"], [], 1]);
});

test("an address that cannot be bound is named, each cause once, whatever was reported of the pool before", async () => {
  const { pools, pool, told } = bench([], new Set(), "news");
  await pools.start();
  pools.noteWaiting(1, "news");
  for (const ip of ["192.0.2.9", "192.0.2.10"]) {
    pool.addresses = [...pool.addresses, address(ip, { bindable: null })];
    await pools.changed(1);
    await pools.look();
    await pools.look();
  }
  const not = "is not an address of this machine";
  expect(told).toEqual([
    "the pool news has no address",
    `no address of the pool news can be used: 192.0.2.9 ${not}`,
    `no address of the pool news can be used: 192.0.2.9 ${not}, 192.0.2.10 ${not}`,
  ]);
});

test("beside addresses that can be used, one that cannot be bound is a problem that raises no alarm, a paused one is none", async () => {
  const all = [address("192.0.2.1"), address("192.0.2.2"), address("192.0.2.3", { paused: true })];
  const { pools, told } = bench(all, new Set(["192.0.2.1", "192.0.2.3"]));
  await pools.start();
  expect(pools.problems()).toEqual([
    {
      accountKey: 1,
      pool: "default",
      waits: null,
      addresses: [{ address: "192.0.2.2", fault: "unbindable" }],
    },
  ]);
  expect(told).toEqual([]);
});

test("a pool that is given its address right after it was made is not news", async () => {
  const { pools, pool, told } = bench([address("192.0.2.9")], new Set(["192.0.2.1", "192.0.2.9"]), "news");
  await pools.start();
  pool.addresses = [];
  await pools.changed(1);
  pool.addresses = [address("192.0.2.1")];
  await pools.changed(1);
  await pools.look();
  expect(told).toEqual([]);
});

const on = (ip: string): PoolAddress => address(ip, { blacklists: ["bl.test"] });
const usableOf = (addresses: PoolAddress[], drainListed: boolean, family: 4 | 6 | null = null) =>
  sourcesOf(
    {
      accountKey: 1,
      name: "default",
      description: null,
      isDefault: true,
      addresses,
      createdAt: 0,
      updatedAt: 0,
    },
    drainListed,
  )
    .usable(family)
    .map((source) => source.address);

test("a drained listing leaves new mail to the other addresses, and to itself where there is none", () => {
  const pool = [on("192.0.2.1"), address("192.0.2.2"), on("2001:db8::1")];
  expect(usableOf(pool, true)).toEqual(["192.0.2.2"]);
  expect(usableOf(pool, true, 4)).toEqual(["192.0.2.2"]);
  expect(usableOf(pool, true, 6)).toEqual(["2001:db8::1"]);
  expect(usableOf([on("192.0.2.1"), on("192.0.2.2")], true)).toEqual(["192.0.2.1", "192.0.2.2"]);
  const others = [address("192.0.2.2", { paused: true }), address("192.0.2.3", { bindable: false })];
  expect(usableOf([on("192.0.2.1"), ...others], true)).toEqual(["192.0.2.1"]);
  expect(usableOf(pool, false)).toHaveLength(3);
  const warming = address("192.0.2.4", { warmupStartedAt: 1 });
  expect(usableOf([on("192.0.2.1"), warming], true)).toEqual(["192.0.2.1", "192.0.2.4"]);
});

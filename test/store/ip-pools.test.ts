// The store's half of pools: what the routes cannot show.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { ManualClock } from "../support/clock.ts";
import { newDirectory, openSqlite } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

let dataDir: string;
let clock: ManualClock;
let store: Store | null = null;

beforeEach(() => {
  dataDir = newDirectory();
  clock = new ManualClock();
});
afterEach(async () => {
  await store?.close();
  store = null;
  removeFolder(dataDir);
});

const accountOf = async (name: string): Promise<number> => (await store?.accountByName(name))?.key ?? 0;
const address = (ip: string) => ({ address: ip, hostname: null, weight: 1, warmup: null, bindable: true });

test("every account has its own `default`, without a row for it", async () => {
  store = await openSqlite(dataDir, clock);
  const [a, b] = [await accountOf("default"), await accountOf("operations")];
  expect(await store.listPools(a)).toMatchObject([
    { accountKey: a, name: "default", isDefault: true, addresses: [] },
  ]);
  expect(await store.accountsWithPools()).toEqual([]);
  await store.addAddress(b, "default", address("192.0.2.1"), clock.now());
  expect((await store.listPools(a))[0]?.addresses).toEqual([]);
  expect(await store.accountsWithPools()).toEqual([b]);
  expect(await store.listPools(999)).toEqual([]);
});

test("an address of another account's pool is taken, and is not theirs to change", async () => {
  store = await openSqlite(dataDir, clock);
  const [a, b] = [await accountOf("default"), await accountOf("operations")];
  await store.addAddress(a, "default", address("192.0.2.1"), 1);
  const refused = { ok: false, why: "no_address" };
  expect(await store.addAddress(b, "default", address("192.0.2.1"), 1)).toEqual({ ok: false, why: "taken" });
  expect(await store.updateAddress(b, "default", "192.0.2.1", { weight: 2 }, 1)).toEqual(refused);
  expect(await store.removeAddress(b, "default", "192.0.2.1", 1)).toEqual(refused);
  expect((await store.listPools(a))[0]?.addresses).toHaveLength(1);
});

test("pools, addresses and what was seen of them are there after a restart", async () => {
  store = await openSqlite(dataDir, clock);
  const a = await accountOf("default");
  await store.createPool({ accountKey: a, name: "news", description: "d", isDefault: true, at: 5 });
  await store.addAddress(a, "news", { ...address("192.0.2.9"), hostname: "h.test", warmup: false }, 6);
  await store.saveLooks([{ address: "192.0.2.9", bindable: false, ptr: "p.test", ptrOk: true }], 7);
  await store.saveLooks([{ address: "192.0.2.200", bindable: false, ptr: null, ptrOk: null }], 7);
  const before = await store.listPools(a);
  await store.close();
  store = await openSqlite(dataDir, clock);
  expect(await store.listPools(a)).toEqual(before);
  expect(before[1]).toMatchObject({
    name: "news",
    isDefault: true,
    addresses: [
      {
        hostname: "h.test",
        warmupStartedAt: null,
        bindable: false,
        ptr: "p.test",
        ptrOk: true,
        updatedAt: 7,
      },
    ],
  });
});

test("what a node sees of an address is its own: a node of another name has not looked, and changes nothing of it", async () => {
  store = await openSqlite(dataDir, clock);
  const a = await accountOf("default");
  const bindable = async () => (await store?.listPools(a))?.[0]?.addresses.map((one) => one.bindable);
  const look = { address: "192.0.2.9", ptr: "p.test", ptrOk: true };
  await store.addAddress(a, "default", address("192.0.2.9"), 1);
  await store.close();
  store = await openSqlite(dataDir, clock, { node: "b" });
  expect(await bindable()).toEqual([null]);
  await store.saveLooks([{ ...look, bindable: false }], 2);
  expect(await bindable()).toEqual([false]);
  await store.close();
  store = await openSqlite(dataDir, clock);
  expect(await bindable()).toEqual([true]);
  expect(await store.listPools(a)).toMatchObject([{ addresses: [{ ptr: "p.test", updatedAt: 2 }] }]);
});

test("a key's limit of addresses holds over all pools of its account", async () => {
  store = await openSqlite(dataDir, clock);
  const a = await accountOf("default");
  await store.createPool({ accountKey: a, name: "b", description: null, isDefault: false, at: 1 });
  const rules = { most: 6, ownOnly: true };
  for (let i = 0; i < 6; i++)
    expect((await store.addAddress(a, i % 2 ? "b" : "default", address(`10.0.0.${i}`), 1, rules)).ok).toBe(
      true,
    );
  expect(await store.addAddress(a, "b", address("10.0.1.0"), 1, rules)).toEqual({
    ok: false,
    why: "too_many_addresses",
  });
  expect((await store.addAddress(await accountOf("operations"), "default", address("10.0.1.0"), 1)).ok).toBe(
    true,
  );
});

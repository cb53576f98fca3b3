// IPv6 is used where its reverse name holds: receivers refuse mail from addresses without one.
import { describe, expect, test } from "vitest";
import type { DnsAnswer } from "../../src/dns/resolver.ts";
import { silentLog } from "../../src/log.ts";
import type { Pool, PoolAddress } from "../../src/model/ip-pool.ts";
import { createPools } from "../../src/pools/pools.ts";
import { adviceOf, effectOf, problemOf, subjectOf } from "../../src/pools/problems.ts";
import { sourcesOf } from "../../src/pools/sources.ts";
import { ManualClock } from "../support/clock.ts";
import { noWarmups } from "../support/warmups.ts";

const address = (ip: string, ptrOk: boolean | null = null, over: Partial<PoolAddress> = {}): PoolAddress => ({
  address: ip,
  hostname: null,
  weight: 1,
  paused: false,
  warmupStartedAt: null,
  bindable: true,
  ptr: null,
  ptrOk,
  blacklists: [],
  createdAt: 0,
  updatedAt: 0,
  ...over,
});
const poolOf = (...addresses: PoolAddress[]): Pool => {
  const at = { createdAt: 0, updatedAt: 0 };
  return { accountKey: 1, name: "default", description: null, isDefault: true, addresses, ...at };
};
const [four, six, otherSix] = ["192.0.2.1", "2001:db8::1", "2001:db8::2"];
const named = (sources: readonly { address: string | null }[]) => sources.map((source) => source.address);

describe("an IPv6 address with a wrong PTR record", () => {
  test("is not used beside an IPv4 address, but for hosts that only IPv6 reaches", () => {
    const { families, lastResort, usable, others } = sourcesOf(poolOf(address(four), address(six, false)));
    expect([families, lastResort]).toEqual([[4], [6]]);
    expect([named(usable(null)), named(usable(4)), named(usable(6))]).toEqual([[four], [four], [six]]);
    expect(named(others(6))).toEqual([]); // an attempt that found no connection by IPv4 is made again later
  });

  test("is not used beside an IPv6 address whose name holds, or is not known yet", () => {
    for (const holds of [true, null]) {
      const { usable } = sourcesOf(poolOf(address(six, false), address(otherSix, holds)));
      expect([named(usable(null)), named(usable(6))]).toEqual([[otherSix], [otherSix]]);
    }
  });

  test("is used where the pool has no better that can be used", () => {
    const unusable = address(four, true, { paused: true });
    for (const pool of [poolOf(address(six, false)), poolOf(address(six, false), unusable)]) {
      const { usable, others } = sourcesOf(pool);
      expect([named(usable(null)), named(usable(6)), named(others(6))]).toEqual([[six], [six], [six]]);
    }
  });

  test("is a problem that says what to publish, and what becomes of the mail", () => {
    const beside = problemOf(poolOf(address(four), address(six, false)), "mail.test");
    if (!beside) throw new Error("no problem");
    expect([beside.waits, subjectOf(beside)]).toEqual([
      null,
      "2001:db8::1 has no valid reverse name (pool default)",
    ]);
    expect(effectOf(beside)).toBe("Mail of the pool default is sent from its other addresses.");
    expect(adviceOf(beside, "default")).toEqual([
      "publish a PTR record of 2001:db8::1 with mail.test and an AAAA record of mail.test with 2001:db8::1; the DNS is asked every five minutes",
    ]);
    const alone = problemOf(poolOf(address(six, false, { hostname: "out.test" })), "mail.test");
    if (!alone) throw new Error("no problem");
    expect(effectOf(alone)).toMatch(/is sent from there all the same/);
    expect(adviceOf(alone, "default")[0]).toContain("with out.test");
    expect(problemOf(poolOf(address(four, false)), "mail.test")).toBeNull();
  });
});

test("a look-up that fails leaves an address as it was last known, used or not", async () => {
  const pool = poolOf(address(four), address(six));
  let ptr: DnsAnswer<string> = { kind: "nxdomain" };
  let aaaa: DnsAnswer<string> = { kind: "failed", why: "timeout" };
  const found = (record: string): DnsAnswer<string> => {
    return { kind: "found", records: [record], ttlSeconds: 60, authenticated: false };
  };
  const clock = new ManualClock();
  const pools = createPools({
    store: {
      listPools: async () => [pool],
      ...noWarmups,
      accountsWithPools: async () => [1],
      async saveLooks(looks) {
        for (const look of looks)
          pool.addresses = pool.addresses.map((one) =>
            one.address === look.address ? { ...one, ...look } : one,
          );
      },
    },
    resolver: { ptr: async () => ptr, a: async () => found(four), aaaa: async () => aaaa },
    hostname: "mail.test",
    clock,
    log: silentLog,
    canBind: async () => true,
  });
  const used = async () => {
    await clock.advance(3_600_000);
    await pools.look();
    return named(pools.sourcesOf(1, "default").usable(null)).includes(six);
  };
  await pools.start();
  expect(await used()).toBe(false); // no PTR record
  ptr = { kind: "failed", why: "timeout" };
  expect(await used()).toBe(false);
  ptr = found("mail.test.");
  expect(await used()).toBe(false); // the PTR record is right, the name's address not known
  aaaa = found(six);
  expect(await used()).toBe(true);
  aaaa = { kind: "failed", why: "timeout" };
  expect(await used()).toBe(true);
  ptr = { kind: "failed", why: "timeout" };
  expect(await used()).toBe(true);
  ptr = found("other.test");
  expect(await used()).toBe(false);
});

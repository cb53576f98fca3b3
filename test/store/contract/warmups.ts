// The warm-up of addresses. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { settlementOf } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

const day = 20_000;
const dayMs = 86_400_000;

export function warmupContract(open: OpenStore): void {
  describe("warm-up", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { one } = beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    const send = (address: string, provider: string, on = day) => ({ address, provider, day: on });
    const address = (ip: string, warmup: boolean | null) => {
      return { address: ip, hostname: null, weight: 1, warmup, bindable: true };
    };
    const startOf = async (ip: string): Promise<number | null | undefined> => {
      const pools = await store.listPools(account);
      return pools.flatMap(({ addresses }) => addresses).find((found) => found.address === ip)
        ?.warmupStartedAt;
    };

    test("a message is counted with its outcome, also where the lease was lost; one without an address is not", async () => {
      const at = clock.now();
      for (const warmup of [send("192.0.2.1", "google"), send("192.0.2.1", "default"), null])
        await store.settle(settlementOf(await one(), at, { warmup }));
      const job = await one();
      const lost = settlementOf(job, at, {
        outcome: "bounced",
        owner: "another",
        warmup: send("192.0.2.1", "google"),
      });
      expect(await store.settle(lost)).toBe(false);
      await store.settle(settlementOf(await one(), at, { warmup: send("192.0.2.1", "google", day + 1) }));
      expect(await store.warmupCounts(day)).toEqual([
        { ...send("192.0.2.1", "default"), sent: 1 },
        { ...send("192.0.2.1", "google"), sent: 2 },
      ]);
    });

    test("begins when it is asked for, goes on when it is asked for again, and ends when it is asked to", async () => {
      await store.addAddress(account, "default", address("192.0.2.2", true), 5);
      await store.addAddress(account, "default", address("192.0.2.3", null), 5);
      expect([await startOf("192.0.2.2"), await startOf("192.0.2.3")]).toEqual([5, null]);
      const change = (ip: string, warmup: boolean | null, at: number) =>
        store.updateAddress(account, "default", ip, { warmup }, at);
      await change("192.0.2.2", true, 9);
      await change("192.0.2.3", true, 9);
      await store.updateAddress(account, "default", "192.0.2.3", { weight: 2 }, 10);
      expect([await startOf("192.0.2.2"), await startOf("192.0.2.3")]).toEqual([5, 9]);
      await change("192.0.2.2", false, 11);
      await change("192.0.2.3", null, 11);
      expect([await startOf("192.0.2.2"), await startOf("192.0.2.3")]).toEqual([null, null]);
    });

    test("ends by its age, and the counts of earlier days are deleted", async () => {
      const at = clock.now();
      await store.addAddress(account, "default", address("192.0.2.4", true), dayMs);
      await store.addAddress(account, "default", address("192.0.2.5", true), 2 * dayMs);
      const over = { startedBefore: 2 * dayMs, day: day + 1, at };
      expect(await store.endWarmups(over)).toEqual(["192.0.2.4"]);
      expect(await store.endWarmups(over)).toEqual([]);
      expect([await startOf("192.0.2.4"), await startOf("192.0.2.5")]).toEqual([null, 2 * dayMs]);
      expect([await store.warmupCounts(day), (await store.warmupCounts(day + 1)).length]).toEqual([[], 1]);
    });
  });
}

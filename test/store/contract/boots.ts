// Boots, and the leases that are theirs. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import { queueParts } from "../../../src/model/queue-entry.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { accept, beginBoot, minute, newEndpoint, newEvent, newMessage } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function bootContract(open: OpenStore): void {
  describe("boots", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    /** The boot claims one mail and one webhook; the names are its own. */
    const claimBoth = async (owner: string) => {
      const at = clock.now();
      const queueName = `${owner}.test`;
      const message = newMessage({ accountKey: account, to: [`a@${queueName}`], at });
      await accept(store, message);
      const endpoint = await store.createEndpoint(newEndpoint(account, at, { eventMask: 8 }));
      await store.recordEvent(newEvent({ accountKey: account, receivedAt: at, typeBit: 8 }));
      await store.updateEndpoint(account, endpoint.id, { eventMask: 0, updatedAt: at });
      const { key: endpointKey } = endpoint;
      const claim = { owner, accountKey: account, endpointKey, limit: 1, now: at };
      const { jobs } = await store.claimDue({ owner, queueName, limit: 1, now: at });
      const { deliveries } = await store.claimDeliveries(claim);
      expect([jobs.length, deliveries.length]).toEqual([1, 1]);
      return { owner, queueName, endpointKey };
    };
    type Claimed = Awaited<ReturnType<typeof claimBoth>>;

    /** Attempts of the mail and the webhook that `owner` can claim now. */
    const dueTo = async (owner: string, { queueName, endpointKey }: Claimed): Promise<number[]> => {
      const now = clock.now();
      const { jobs } = await store.claimDue({ owner, queueName, limit: 9, now });
      const claim = { owner, accountKey: account, endpointKey, limit: 9, now };
      const { deliveries } = await store.claimDeliveries(claim);
      return [...jobs, ...deliveries].map(({ attempt }) => attempt);
    };

    const takeBack = async (owner: string): Promise<number[]> => [
      await store.takeBackLeases(owner, clock.now(), "~"),
      await store.takeBackDeliveries(owner, clock.now()),
    ];

    test("a start takes back what an ended or expired boot of its node held, mail and webhooks alike, and nobody else's", async () => {
      const at = clock.now();
      const boots = [
        { id: "living", node: "a", leaseUntil: at + minute, ends: false, over: false },
        { id: "ended", node: "a", leaseUntil: at + minute, ends: true, over: true },
        { id: "expired", node: "a", leaseUntil: at, ends: false, over: true },
        { id: "living-elsewhere", node: "b", leaseUntil: at + minute, ends: false, over: false },
        { id: "ended-elsewhere", node: "b", leaseUntil: at + minute, ends: true, over: false },
        { id: "expired-elsewhere", node: "b", leaseUntil: at, ends: false, over: false },
      ];
      const claimed: Claimed[] = [];
      for (const { id, node, leaseUntil, ends } of boots) {
        await store.beginBoot({ id, node, leaseUntil });
        claimed.push(await claimBoth(id));
        if (ends) await store.endBoot(id, at);
      }
      await beginBoot(store, "starting", "a");
      expect(await takeBack("starting")).toEqual([2, 2]);
      expect(await takeBack("starting")).toEqual([0, 0]);
      const due: [string, number[]][] = [];
      for (const each of claimed) due.push([each.owner, await dueTo("starting", each)]);
      expect(due).toEqual(boots.map(({ id, over }) => [id, over ? [2, 2] : []]));
    });

    test("a renewal holds all leases of the boot; none revives a boot that has ended", async () => {
      const at = clock.now();
      await store.beginBoot({ id: "renewed", node: "c", leaseUntil: at });
      const claimed = await claimBoth("renewed");
      await beginBoot(store, "beside", "c");
      expect(await store.renewBoot("renewed", at + minute)).toBe(true);
      expect(await takeBack("beside")).toEqual([0, 0]);
      await store.endBoot("renewed", at);
      expect(await store.renewBoot("renewed", at + minute)).toBe(false);
      expect(await store.renewBoot("unknown", at + minute)).toBe(false);
      expect(await takeBack("beside")).toEqual([1, 1]);
      expect(await dueTo("beside", claimed)).toEqual([2, 2]);
    });

    test("what is leased to an owner that never began is taken back too, else it would never move again", async () => {
      const claimed = await claimBoth("unknown-owner");
      await beginBoot(store, "finder", "e");
      expect(await takeBack("finder")).toEqual([1, 1]);
      expect(await dueTo("finder", claimed)).toEqual([2, 2]);
    });

    test("a boot takes back neither what it leased itself nor what the operator holds", async () => {
      await beginBoot(store, "own", "f");
      const claimed = await claimBoth("own");
      const queueName = `${account}.default/held.test`;
      await accept(
        store,
        newMessage({ accountKey: account, to: ["a@held.test"], at: clock.now(), queueName }),
      );
      const page = { limit: 9, cursor: null };
      const { rows } = await store.listQueue(account, { domain: "held.test" }, queueParts, page);
      const keys = rows.map(({ key }) => key);
      expect(await store.holdQueued(account, keys, clock.now())).toBe(1);
      expect(await takeBack("own")).toEqual([0, 0]);
      expect(await dueTo("own", claimed)).toEqual([]);
      const { jobs } = await store.claimDue({ owner: "own", queueName, limit: 9, now: clock.now() });
      expect(jobs).toEqual([]);
    });

    test("time alone ends no lease: what a living boot holds is due to no claim", async () => {
      await beginBoot(store, "hanging", "d");
      const claimed = await claimBoth("hanging");
      clock.jump(24 * 60 * minute);
      expect(await dueTo("hanging", claimed)).toEqual([]);
    });
  });
}

// What blocklists say of addresses. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Listing } from "../../../src/model/listing.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { newEvent } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

const listing = (address: string, zone: string, over: Partial<Listing> = {}): Listing => ({
  address,
  zone,
  answer: "listed",
  detail: null,
  lookedAt: 5,
  codes: ["127.0.0.2", "127.0.0.4"],
  reason: "spam",
  listedAt: 3,
  changedAt: null,
  ...over,
});

export function listingContract(open: OpenStore): void {
  describe("listings", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    test("a listing is kept as it was saved last, with the events that it raises, until it is removed", async () => {
      const a = listing("11.22.33.44", "a.test");
      const b = listing("11.22.33.44", "b.test", { answer: "unknown", detail: "timed out", reason: null });
      const event = newEvent({ accountKey: account, receivedAt: clock.now() });
      await store.saveListings([b, { ...a, listedAt: null, changedAt: 3 }], []);
      await store.saveListings([a], [event]);
      expect(await store.listings()).toEqual([a, b]);
      const events = await store.listEvents(account, { eventId: event.id }, { limit: 5, cursor: null });
      expect(events.rows).toHaveLength(1);
      await store.removeListings([a, listing("192.0.2.9", "gone.test")]);
      expect(await store.listings()).toEqual([b]);
      await store.removeListings([b]);
    });

    test("all listings are read, however many there are", async () => {
      const many = Array.from({ length: 2500 }, (_, i) => listing(`11.22.${i >> 8}.${i & 255}`, "a.test"));
      await store.saveListings(many, []);
      expect(await store.listings()).toHaveLength(many.length);
      await store.removeListings(many);
      expect(await store.listings()).toEqual([]);
    });

    test("an address of a pool shows the zones that list it, until others are saved", async () => {
      const address = "192.0.2.77";
      const row = { address, hostname: null, weight: 1, warmup: null, bindable: true };
      await store.addAddress(account, "default", row, clock.now());
      const shown = async () =>
        (await store.listPools(account)).flatMap(({ addresses }) => addresses)[0]?.blacklists;
      expect(await shown()).toEqual([]);
      const other = { address: "192.0.2.78", zones: ["a.test"] }; // in no pool
      await store.showBlacklists([{ address, zones: ["a.test", "b.test"] }, other], clock.now());
      expect(await shown()).toEqual(["a.test", "b.test"]);
      await store.showBlacklists([{ address, zones: [] }], clock.now());
      expect(await shown()).toEqual([]);
    });

    test("the operator's zones are one a name, and a removed one is as if it had never been said", async () => {
      const zone = { zone: "a.test", watched: true, name: "A", codes: ["127.0.0.2"], removalUrl: null };
      await store.putZoneChange({ ...zone, watched: false, codes: null });
      await store.putZoneChange(zone);
      await store.putZoneChange({ ...zone, zone: "0.test" });
      expect(await store.zoneChanges()).toEqual([{ ...zone, zone: "0.test" }, zone]);
      await store.removeZoneChange("0.test");
      await store.removeZoneChange("unknown.test");
      expect(await store.zoneChanges()).toEqual([zone]);
    });
  });
}

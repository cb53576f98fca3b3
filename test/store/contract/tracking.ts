// Tracking: the keys of its tokens. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function trackingContract(open: OpenStore): void {
  describe("tracking", () => {
    let store: Store;
    beforeAllOpened(open, (opened) => ({ store } = opened));

    test("keys get the next number each, up to 255, and none is ever removed", async () => {
      expect(await store.trackingKeys()).toEqual([]);
      const first = await store.addTrackingKey(1_000);
      const second = await store.addTrackingKey(2_000);
      expect(first).toMatchObject({ number: 0, createdAt: 1_000 });
      expect(second?.secret).toHaveLength(32);
      expect(second?.secret).not.toEqual(first?.secret);
      expect(await store.trackingKeys()).toEqual([first, second]);
      for (let number = 2; number < 256; number++) await store.addTrackingKey(number);
      expect(await store.addTrackingKey(9_000)).toBeNull();
      expect(await store.trackingKeys()).toHaveLength(256);
    });
  });
}

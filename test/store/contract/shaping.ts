// Shaping rules that were set while the program ran. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function shapingContract(open: OpenStore): void {
  describe("shaping rules", () => {
    let store: Store;
    beforeAllOpened(open, (opened) => ({ store } = opened));

    test("a rule is kept by its name; a change leaves its other fields, and one that says nothing is removed", async () => {
      const rule = { connections: 2, perSecond: 0.5, messagesPerConnection: null, tls: null };
      expect(await store.setShapingRule("b.test", { connections: 2, perSecond: 0.5 }, 7)).toEqual({
        name: "b.test",
        ...rule,
        updatedAt: 7,
      });
      await store.setShapingRule("a.test", { tls: "verify", messagesPerConnection: 20 }, 8);
      await store.setShapingRule("b.test", { connections: 3 }, 9);
      expect(await store.shapingRules()).toEqual([
        {
          name: "a.test",
          connections: null,
          perSecond: null,
          messagesPerConnection: 20,
          tls: "verify",
          updatedAt: 8,
        },
        { name: "b.test", ...rule, connections: 3, updatedAt: 9 },
      ]);
      expect(await store.setShapingRule("b.test", { connections: null, perSecond: null }, 10)).toBeNull();
      expect(await store.unsetShapingRule("a.test")).toBe(true);
      expect(await store.unsetShapingRule("a.test")).toBe(false);
      expect(await store.shapingRules()).toEqual([]);
    });
  });
}

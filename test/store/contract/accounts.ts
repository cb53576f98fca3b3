// Accounts. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function accountContract(open: OpenStore): void {
  describe("accounts", () => {
    let store: Store;
    beforeAllOpened(open, (opened) => ({ store } = opened));

    test("the account default is there from the first start, by name, key and id", async () => {
      const found = await store.accountByName("default");
      expect(found).toMatchObject({
        name: "default",
        status: "active",
        id: expect.stringMatching(/^acct_/),
      });
      expect(await store.accountByKey(found?.key ?? 0)).toEqual(found);
      expect(await store.accountById(found?.id ?? "")).toEqual(found);
      expect(await store.accountByName("nobody")).toBeNull();
    });
  });
}

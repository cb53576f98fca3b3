// Accounts. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { mint } from "../values.ts";
import { walk } from "./walk.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function accountContract(open: OpenStore): void {
  describe("accounts", () => {
    let store: Store;
    let clock: ManualClock;
    beforeAllOpened(open, (opened) => ({ store, clock } = opened));

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

    test("accounts are listed in the order of their creation, page by page, those of one time too", async () => {
      const at = clock.now();
      for (const [name, createdAt] of [
        ["late", at + 1000],
        ["early", at + 500],
        ["also-early", at + 500],
      ] as const)
        await store.createAccount({ id: mint("acct", createdAt), name, createdAt });
      const names = (await walk((cursor) => store.listAccounts({ limit: 1, cursor }))).map(
        ({ name }) => name,
      );
      expect(names.slice(-3)).toEqual(["early", "also-early", "late"]);
      expect(new Set(names).size).toBe(names.length);
    });
  });
}

// API keys, and the uses of keys and credentials. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { NewApiKey } from "../../../src/model/api-key.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { mint } from "../values.ts";
import { walk } from "./walk.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function apiKeyContract(open: OpenStore): void {
  describe("API keys", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    const newKey = (): NewApiKey => ({
      rates: {},
      dailyQuota: null,
      id: mint("key", clock.now()),
      accountKey: account,
      name: "shop",
      test: false,
      scope: "send",
      hash: crypto.getRandomValues(new Uint8Array(32)),
      hint: "abcd",
      allowIps: ["192.0.2.0/24"],
      status: "active",
      createdAt: clock.now(),
      expiresAt: null,
    });

    test("a key is found by its hash as it was made", async () => {
      const { hash, ...wanted } = newKey();
      const made = await store.createApiKey({ ...wanted, hash });
      expect(made).not.toHaveProperty("hash");
      expect(await store.apiKeyByHash(hash)).toEqual(made);
      expect(await store.apiKeyByHash(new Uint8Array(32))).toBeNull();
    });

    test("a revoked key never becomes active again", async () => {
      const made = await store.createApiKey(newKey());
      expect(await store.setApiKeyStatus(account, made.id, "disabled", 5)).toMatchObject({
        status: "disabled",
        revokedAt: null,
      });
      expect(await store.setApiKeyStatus(account, made.id, "revoked", 6)).toMatchObject({
        status: "revoked",
        revokedAt: 6,
      });
      expect(await store.setApiKeyStatus(account, made.id, "active", 7)).toMatchObject({
        status: "revoked",
        revokedAt: 6,
      });
      expect(await store.setApiKeyStatus(account + 1, made.id, "active", 7)).toBeNull();
    });

    test("keys are listed in the order of their creation, page by page, those of one time too", async () => {
      const at = clock.now();
      const made = [];
      for (const createdAt of [at + 1000, at + 500, at + 500])
        made.push(await store.createApiKey({ ...newKey(), createdAt }));
      const [last, second, third] = made.map(({ id }) => id);
      const ids = (await walk((cursor) => store.listApiKeys(account, { limit: 1, cursor }))).map(
        ({ id }) => id,
      );
      expect(ids.slice(-3)).toEqual([second, third, last]);
      expect(new Set(ids).size).toBe(ids.length);
    });

    test("uses are noted and never go back", async () => {
      const wanted = newKey();
      const made = await store.createApiKey(wanted);
      await store.noteUse({ apiKeys: [made.key], smtpCredentials: [], at: 900 });
      await store.noteUse({ apiKeys: [made.key], smtpCredentials: [], at: 800 });
      expect(await store.apiKeyByHash(wanted.hash)).toMatchObject({ lastUsedAt: 900 });
    });
  });
}

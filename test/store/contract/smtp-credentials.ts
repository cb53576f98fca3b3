// SMTP credentials. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import { mint } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function smtpCredentialContract(open: OpenStore): void {
  describe("SMTP credentials", () => {
    let store: Store;
    let account: number;
    beforeAllOpened(open, (opened) => ({ store, account } = opened));

    test("a credential belongs to an account and to live or test", async () => {
      const hash = crypto.getRandomValues(new Uint8Array(32));
      const { key } = await store.createSmtpCredential({
        id: mint("cred", 1),
        accountKey: account,
        name: "printer",
        test: true,
        hash,
        hint: "wxyz",
        status: "active",
        createdAt: 1,
      });
      expect(await store.smtpCredentialByHash(account, true, hash)).toMatchObject({
        key,
        name: "printer",
        test: true,
      });
      expect(await store.smtpCredentialByHash(account, false, hash)).toBeNull();
      expect(await store.smtpCredentialByHash(account + 1, true, hash)).toBeNull();
    });
  });
}

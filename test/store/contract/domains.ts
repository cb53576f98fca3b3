// Sender domains. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { SenderDomain } from "../../../src/model/domain.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { asAdded } from "../../support/domains.ts";
import { mint } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function domainContract(open: OpenStore): void {
  describe("domains", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { freshDomain } = beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    const newDomain = (name: string, wishes: Partial<SenderDomain> = {}): Omit<SenderDomain, "key"> => ({
      id: mint("dom", clock.now()),
      accountKey: account,
      name,
      status: "pending",
      returnPathDomain: `rp.${name}`,
      records: [],
      dkimKeys: [
        { selector: "s1", algorithm: "rsa-sha256", privatePem: "pem", publicKey: "p", status: "active" },
      ],
      createdAt: 1,
      updatedAt: 1,
      verifiedAt: null,
      checkedAt: null,
      failingSince: null,
      ...asAdded,
      ...wishes,
    });

    test("a domain stands once in an account, and is found by name", async () => {
      const name = freshDomain();
      const made = await store.createDomain(newDomain(name));
      expect(await store.createDomain(newDomain(name))).toBeNull();
      expect(await store.domainByName(account, name)).toEqual(made);
      expect(await store.deleteDomain(account, name)).toBe(true);
      expect(await store.deleteDomain(account, name)).toBe(false);
      expect(await store.domainByName(account, name)).toBeNull();
    });

    test("what should be looked at again: never checked, what waits for the DNS and others by their own age, suspended never", async () => {
      const names = [
        "never",
        "old-pending",
        "new-pending",
        "old-verified",
        "new-verified",
        "suspended",
        "rotating",
      ];
      const rows = [null, 100, 300, 10, 30, 1, 100];
      const states = [
        "pending",
        "pending",
        "pending",
        "verified",
        "verified",
        "suspended",
        "verified",
      ] as const;
      const dkimKeys = [
        { selector: "s2", algorithm: "rsa-sha256", privatePem: "p", publicKey: "p", status: "pending" },
      ] as SenderDomain["dkimKeys"];
      for (const [i, label] of names.entries()) {
        await store.createDomain(
          newDomain(`${label}.check.test`, {
            status: states[i] ?? "pending",
            checkedAt: rows[i] ?? null,
            ...(label === "rotating" ? { dkimKeys } : {}),
          }),
        );
      }
      const due = await store.domainsToCheck(200, 20, 100);
      const seen = due.map((domain) => domain.name).filter((domain) => domain.endsWith(".check.test"));
      expect(seen.sort()).toEqual([
        "never.check.test",
        "old-pending.check.test",
        "old-verified.check.test",
        "rotating.check.test",
      ]);
    });

    test("a domain is saved whole", async () => {
      const made = await store.createDomain(newDomain(freshDomain()));
      if (!made) throw new Error("not made");
      const record = {
        purpose: "spf",
        type: "TXT",
        name: "x",
        value: "v",
        required: true,
        status: "ok",
        found: ["v"],
        issue: null,
      } as const;
      const saved = await store.saveDomain({
        ...made,
        status: "verified",
        records: [{ ...record, found: ["v"] }],
        updatedAt: 9,
        verifiedAt: 9,
        checkedAt: 9,
        returnPathDomain: "other.test",
        trackClicks: true,
        trackingDomain: "t.test",
        allowSubdomains: false,
      });
      expect(saved).toBe(true);
      expect(await store.domainByName(account, made.name)).toMatchObject({
        status: "verified",
        records: [record],
        checkedAt: 9,
        createdAt: 1,
        returnPathDomain: "other.test",
        trackOpens: false,
        trackClicks: true,
        trackingDomain: "t.test",
        allowSubdomains: false,
        revision: 1,
      });
    });

    test("a change that was made of an older state, or of a domain that is gone, writes nothing", async () => {
      const made = await store.createDomain(newDomain(freshDomain()));
      if (!made) throw new Error("not made");
      expect(await store.saveDomain({ ...made, status: "verified" })).toBe(true);
      expect(await store.saveDomain({ ...made, status: "failed" })).toBe(false);
      expect(await store.domainByName(account, made.name)).toMatchObject({ status: "verified" });
      await store.deleteDomain(account, made.name);
      expect(await store.saveDomain({ ...made, revision: 1 })).toBe(false);
      expect(await store.domainByName(account, made.name)).toBeNull();
    });

    test("a check of a domain that is deleted meanwhile verifies no other, though that may have its key", async () => {
      const gone = await store.createDomain(newDomain(freshDomain()));
      if (!gone) throw new Error("not made");
      await store.deleteDomain(account, gone.name);
      const next = await store.createDomain(newDomain(freshDomain()));
      if (!next) throw new Error("not made");
      expect(await store.saveDomain({ ...gone, status: "verified", verifiedAt: 9 })).toBe(false);
      expect(await store.saveDomain({ ...gone, key: next.key, status: "verified", verifiedAt: 9 })).toBe(
        false,
      );
      expect(await store.domainByName(account, next.name)).toEqual(next);
    });
  });
}

// The suppression list. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import { LimitReached, type Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { minute, newSuppression } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function suppressionContract(open: OpenStore): void {
  describe("suppressions", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { freshDomain } = beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    test("a stronger reason replaces a weaker one, the first spelling stays, and none ends earlier", async () => {
      const at = clock.now();
      const domain = freshDomain();
      const put = (
        reason: "manual" | "complaint" | "hard_bounce" | "unsubscribe",
        spelling: string,
        expiresAt: number | null = null,
      ) => store.addSuppressions([newSuppression(account, spelling, { reason, expiresAt })], at);
      const email = `Some.One@${domain}`;
      expect(await put("unsubscribe", email, at + minute)).toMatchObject({
        added: 1,
        rows: [{ reason: "unsubscribe" }],
      });
      expect(await put("manual", email.toUpperCase(), at + 1)).toMatchObject({
        unchanged: 1,
        rows: [{ reason: "unsubscribe", email }],
      });
      expect(await put("manual", email, null)).toMatchObject({
        updated: 1,
        rows: [{ reason: "unsubscribe", expiresAt: null }],
      });
      expect(await put("complaint", email.toLowerCase(), at + 1)).toMatchObject({
        updated: 1,
        rows: [{ reason: "complaint", email, expiresAt: null }],
      });
      expect(await put("hard_bounce", email)).toMatchObject({ unchanged: 1 });
      expect(await store.removeSuppression(account, email.toLowerCase())).toBe(true);
      expect(await store.removeSuppression(account, email.toLowerCase())).toBe(false);
    });

    test("an import says how many entries were new, stronger or known, and its limit is that of the others", async () => {
      const at = clock.now();
      const domain = freshDomain();
      const entries = (reason: "manual" | "complaint", ...locals: string[]) =>
        locals.map((local) => newSuppression(account, `${local}@${domain}`, { reason, source: "import" }));
      expect(await store.importSuppressions(entries("manual", "a", "b"), at)).toEqual({
        added: 2,
        updated: 0,
        unchanged: 0,
      });
      expect(
        await store.importSuppressions([...entries("complaint", "a"), ...entries("manual", "b", "c")], at),
      ).toEqual({ added: 1, updated: 1, unchanged: 1 });
      expect(await store.suppression(account, `a@${domain}`, at)).toMatchObject({
        reason: "complaint",
        source: "import",
      });
      await expect(store.importSuppressions(entries("manual", "d"), at, 1)).rejects.toBeInstanceOf(
        LimitReached,
      );
      expect(await store.suppression(account, `d@${domain}`, at)).toBeNull();
    });

    test("they are counted by reason, by the same filters as they are listed, without those that have expired", async () => {
      const at = clock.now();
      const domain = freshDomain();
      const put = (reason: "manual" | "complaint", ...locals: string[]) =>
        store.addSuppressions(
          locals.map((local) => newSuppression(account, `${local}@${domain}`, { reason })),
          at,
        );
      await put("manual", "a", "b");
      await put("complaint", "c");
      await store.addSuppressions(
        [newSuppression(account, `old@${domain}`, { expiresAt: at - 1 })],
        at - minute,
      );
      const count = (filter: Parameters<Store["countSuppressions"]>[1], after: string | null = null) =>
        store.countSuppressions(account, { domain, ...filter }, after);
      expect(await count({})).toEqual({ byReason: { manual: 2, complaint: 1 }, next: null });
      expect(await count({ reason: "manual" })).toEqual({ byReason: { manual: 2 }, next: null });
      expect(await count({ createdAfter: at + 1 })).toEqual({ byReason: {}, next: null });
      expect(await count({}, `a@${domain}`)).toEqual({ byReason: { manual: 1, complaint: 1 }, next: null });
    });

    test("one that has expired is none, and is added as new", async () => {
      const at = clock.now();
      const email = `old@${freshDomain()}`;
      await store.addSuppressions(
        [newSuppression(account, email, { reason: "complaint", expiresAt: at - 1 })],
        at - minute,
      );
      expect(await store.suppression(account, email, at)).toBeNull();
      expect(await store.suppressed(account, [email, "nobody@x.test"], at)).toEqual([]);
      expect(await store.addSuppressions([newSuppression(account, email)], at)).toMatchObject({
        added: 1,
        rows: [{ reason: "manual", createdAt: at }],
      });
      expect(await store.suppressed(account, [email, "nobody@x.test"], at)).toHaveLength(1);
    });

    test("the list is filtered, paged, and one account's own", async () => {
      const at = clock.now();
      const domain = freshDomain();
      const emails = ["ab", "aa", "b_", "b%"].map((local) => `${local}@${domain}`);
      await store.addSuppressions(
        emails.map((email, i) => newSuppression(account, email, { reason: i ? "manual" : "complaint" })),
        at,
      );
      const list = (
        filter: Parameters<Store["listSuppressions"]>[1],
        limit = 50,
        cursor: string | null = null,
      ) => store.listSuppressions(account, { domain, ...filter }, { limit, cursor });
      expect((await list({})).rows.map(({ email }) => email)).toEqual([...emails].sort());
      expect((await list({ emailPrefix: "A" })).rows).toHaveLength(2);
      expect((await list({ emailPrefix: "b_" })).rows.map(({ email }) => email)).toEqual([`b_@${domain}`]);
      expect((await list({ reason: "complaint" })).rows.map(({ email }) => email)).toEqual([emails[0]]);
      expect((await list({ createdAfter: at + 1 })).rows).toEqual([]);
      const page = await list({}, 3);
      expect(page.hasMore).toBe(true);
      expect((await list({}, 3, page.next)).rows).toHaveLength(1);
      expect((await store.listSuppressions(account + 1, {}, { limit: 5, cursor: null })).rows).toEqual([]);
    });
  });
}

// MTA-STS policies. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { KeptMtaStsPolicy } from "../../../src/model/mta-sts.ts";
import type { Store } from "../../../src/store/store.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function mtaStsContract(open: OpenStore): void {
  describe("MTA-STS policies", () => {
    let store: Store;
    const { freshDomain } = beforeAllOpened(open, (opened) => ({ store } = opened));

    const policy = (over: Partial<KeptMtaStsPolicy> = {}): KeptMtaStsPolicy => ({
      domain: freshDomain(),
      id: "1",
      mode: "enforce",
      mx: ["mail.test", "*.mx.test"],
      fetchedAt: 1_000,
      expiresAt: 2_000,
      ...over,
    });
    const kept = async (...domains: string[]) =>
      (await Promise.all(domains.map((domain) => store.mtaStsPolicy(domain)))).map((one) => one !== null);

    test("a policy is kept by its domain, and the next one of the domain replaces it", async () => {
      const first = policy();
      await store.putMtaStsPolicy(first);
      expect(await store.mtaStsPolicy(first.domain)).toEqual(first);
      const second = { ...first, id: "2", mode: "none" as const, mx: [], expiresAt: 3_000 };
      await store.putMtaStsPolicy(second);
      expect(await store.mtaStsPolicy(first.domain)).toEqual(second);
      expect(await store.mtaStsPolicy(freshDomain())).toBeNull();
    });

    test("expired ones of other domains go", async () => {
      const [old, live, now] = [
        policy(),
        policy({ expiresAt: 20_000 }),
        policy({ fetchedAt: 10_000, expiresAt: 10_000 }),
      ];
      for (const one of [old, live, now]) await store.putMtaStsPolicy(one);
      expect(await kept(old.domain, live.domain, now.domain)).toEqual([false, true, true]);
    });
  });
}

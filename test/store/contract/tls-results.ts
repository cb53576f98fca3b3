// TLS results. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { TlsResultCount } from "../../../src/model/tls-result.ts";
import type { Store } from "../../../src/store/store.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function tlsResultContract(open: OpenStore): void {
  describe("TLS results", () => {
    let store: Store;
    beforeAllOpened(open, (opened) => ({ store } = opened));

    const failure = {
      type: "certificate-expired" as const,
      sendingIp: null,
      mxHost: "mail.x.test",
      receivingIp: "192.0.2.1",
    };
    const count = (day: number, domain: string, over: Partial<TlsResultCount> = {}): TlsResultCount => ({
      day,
      domain,
      policy: { type: "sts", strings: ["version: STSv1"], domain, mxHosts: ["mail.x.test"] },
      failure: null,
      reason: "",
      sessions: 1,
      ...over,
    });

    test("they are added up by day, domain, policy and failure, and go with their day", async () => {
      await store.addTlsResults([count(1, "a.test"), count(1, "a.test", { failure, reason: "old" })], 10);
      await store.addTlsResults([count(1, "a.test", { sessions: 4 }), count(2, "a.test")], 10);
      const found = await store.tlsResults({ day: 1, domain: "a.test" });
      expect(found.toSorted((a, b) => b.sessions - a.sessions)).toEqual([
        count(1, "a.test", { sessions: 5 }),
        count(1, "a.test", { failure, reason: "old" }),
      ]);
      await store.removeTlsResults([{ day: 1, domain: "a.test" }]);
      expect(await store.tlsResults({ day: 1, domain: "a.test" })).toEqual([]);
      expect(await store.tlsResults({ day: 2, domain: "a.test" })).toEqual([count(2, "a.test")]);
    });

    test("days that are over are listed in order, each domain once, a page at a time", async () => {
      const rows = [
        count(11, "b.test"),
        count(11, "b.test", { failure }),
        count(11, "a.test"),
        count(10, "c.test"),
      ];
      await store.addTlsResults([...rows, count(12, "a.test")], 10);
      const first = await store.tlsResultDays(12, { day: 9, domain: "" }, 2);
      expect(first).toEqual([
        { day: 10, domain: "c.test" },
        { day: 11, domain: "a.test" },
      ]);
      expect(await store.tlsResultDays(12, first.at(-1) ?? null, 2)).toEqual([{ day: 11, domain: "b.test" }]);
      expect((await store.tlsResultDays(12, null, 100)).at(-1)).toEqual({ day: 11, domain: "b.test" });
    });

    test("of a domain and day no more than the most are kept, and those still count", async () => {
      const kinds = Array.from({ length: 5 }, (_, i) =>
        count(20, "a.test", { failure: { ...failure, mxHost: `m${i}.test` } }),
      );
      await store.addTlsResults([...kinds, ...kinds], 3);
      const found = await store.tlsResults({ day: 20, domain: "a.test" });
      expect(found.map(({ sessions }) => sessions)).toEqual([2, 2, 2]);
    });
  });
}

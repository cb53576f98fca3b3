// Lists of messages. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { accept, newMessage, settlementOf } from "../values.ts";
import { walk } from "./walk.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function messageListContract(open: OpenStore): void {
  describe("message lists", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { freshDomain, one } = beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    test("messages come newest first; a walk while others arrive shows each once", async () => {
      const to = `walk@${freshDomain()}`;
      const send = (subject: string) =>
        accept(store, newMessage({ accountKey: account, to: [to], at: clock.now(), subject }));
      for (let i = 0; i < 7; i++) await send(`walk ${i}`);
      const grow = async (): Promise<void> => void (await send("walk later"));
      const byTime = await walk(
        (cursor) => store.listMessages(account, { subject: "WALK" }, { limit: 3, cursor }),
        grow,
      );
      const byAddress = await walk(
        (cursor) => store.listMessages(account, { to }, { limit: 3, cursor }),
        grow,
      );
      const early = (rows: { subject: string }[]) =>
        rows.map(({ subject }) => subject).filter((subject) => subject !== "walk later");
      const expected = [6, 5, 4, 3, 2, 1, 0].map((i) => `walk ${i}`);
      expect(early(byTime)).toEqual(expected);
      expect(early(byAddress)).toEqual(expected);
    });

    test("each filter of messages keeps the others out", async () => {
      const domain = freshDomain();
      const at = clock.now();
      const sent = await one(`in@${domain}`);
      await store.settle(settlementOf(sent, at));
      await accept(
        store,
        newMessage({
          accountKey: account,
          to: [`x@${domain}`],
          at: at + 50,
          source: "smtp",
          tags: ["rare"],
          subject: "50% off",
        }),
      );
      const found = async (filter: Parameters<Store["listMessages"]>[1]) =>
        (
          await store.listMessages(account, { toDomain: domain, ...filter }, { limit: 9, cursor: null })
        ).rows.map((row) => row.recipients[0]?.to.split("@")[0]);
      expect(await found({})).toEqual(["x", "in"]);
      expect(await found({ status: "delivered" })).toEqual(["in"]);
      expect(await found({ status: "queued" })).toEqual(["x"]);
      expect(await found({ source: "smtp" })).toEqual(["x"]);
      expect(await found({ tag: "rare" })).toEqual(["x"]);
      expect(await found({ subject: "0%" })).toEqual(["x"]);
      expect(await found({ from: "INFO@shop.example" })).toEqual(["x", "in"]);
      expect(await found({ ipPool: "other" })).toEqual([]);
      expect(await found({ createdAfter: at + 50 })).toEqual(["x"]);
      expect(await found({ createdBefore: at + 50 })).toEqual(["in"]);
      expect(await found({ to: `in@${domain}`, status: "delivered" })).toEqual(["in"]);
    });

    test("status is the common state, else whether anything is still to come", async () => {
      const at = clock.now();
      const domain = freshDomain();
      const input = newMessage({
        accountKey: account,
        to: [`a@${domain}`, `b@${domain}`],
        at,
        lease: true,
      });
      const [a, b] = await accept(store, input);
      if (!a || !b) throw new Error("two jobs");
      const has = async (status: "sending" | "processing" | "partially_delivered") =>
        (await store.listMessages(account, { toDomain: domain, status }, { limit: 1, cursor: null })).rows
          .length === 1;
      expect(await has("sending")).toBe(true);
      await store.settle(settlementOf(a, at));
      expect(await has("processing")).toBe(true);
      await store.settle(settlementOf(b, at, { outcome: "bounced" }));
      expect(await has("partially_delivered")).toBe(true);
    });
  });
}

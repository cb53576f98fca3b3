// Lists of events. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import { Refusal } from "../../../src/errors.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { mint, minute, newEvent, settlementOf } from "../values.ts";
import { walk } from "./walk.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function eventContract(open: OpenStore): void {
  describe("event lists", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { freshDomain, one } = beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    test("polling the events' next position tails them: nothing twice, nothing missed", async () => {
      const start = await walk((cursor) => store.listEvents(account, {}, { limit: 1000, cursor }));
      let { next } = await store.listEvents(account, {}, { limit: start.length, cursor: null });
      const poll = async () => {
        const page = await store.listEvents(account, {}, { limit: 2, cursor: next });
        next = page.next;
        return page;
      };
      expect(await poll()).toMatchObject({ rows: [], hasMore: false, next: expect.any(String) });
      const ids = Array.from({ length: 3 }, () => mint("evt", clock.now()));
      // recorded in this order, though the last occurred first
      for (const [i, id] of ids.entries()) {
        await store.recordEvent(
          newEvent({
            accountKey: account,
            receivedAt: clock.now(),
            occurredAt: clock.now() - i * minute,
            id,
          }),
        );
      }
      const first = await poll();
      expect([first.rows.map(({ id }) => id), first.hasMore]).toEqual([ids.slice(0, 2), true]);
      const second = await poll();
      expect([second.rows.map(({ id }) => id), second.hasMore]).toEqual([ids.slice(2), false]);
      expect((await poll()).rows).toEqual([]);
    });

    test("each filter of events keeps the others out, in both orders", async () => {
      const at = clock.now();
      const to = `ev@${freshDomain()}`;
      const first = await one(to);
      const second = await one(to);
      await store.settle(settlementOf(first, at, { outcome: "deferred" }));
      await store.settle(settlementOf(second, at + 1));
      const alone = newEvent({
        accountKey: account,
        receivedAt: at,
        recipient: to,
        type: "message.unsubscribed",
      });
      await store.recordEvent(alone);
      const other = JSON.stringify({ data: { tags: ["gold"], ip_address: "203.0.113.9" } });
      const listed = newEvent({
        accountKey: account,
        receivedAt: at,
        type: "ip.blacklisted",
        body: other,
        occurredAt: at - 60 * minute,
      });
      await store.recordEvent(listed);
      const found = async (filter: Parameters<Store["listEvents"]>[1]) =>
        (await walk((cursor) => store.listEvents(account, filter, { limit: 2, cursor }))).map(
          ({ type, id }) => ({ type, id }),
        );
      const types = async (filter: Parameters<Store["listEvents"]>[1]) =>
        (await found(filter)).map(({ type }) => type);
      expect(await types({ to })).toEqual(["message.deferred", "message.delivered", "message.unsubscribed"]);
      expect(await types({ to, order: "desc" })).toEqual([
        "message.unsubscribed",
        "message.delivered",
        "message.deferred",
      ]);
      expect(await types({ to, types: ["message.delivered", "message.bounced"] })).toEqual([
        "message.delivered",
      ]);
      expect(await types({ ipAddress: "203.0.113.9", ip: "203.0.*" })).toEqual(["ip.blacklisted"]);
      expect(await types({ messageId: first.message.id })).toEqual(["message.deferred"]);
      expect(await types({ messageId: mint("msg", at) })).toEqual([]);
      expect(await types({ eventId: alone.id })).toEqual(["message.unsubscribed"]);
      expect(await types({ tag: "gold" })).toEqual(["ip.blacklisted"]);
      expect(await types({ ipAddress: "203.0.113.9" })).toEqual(["ip.blacklisted"]);
      expect(await types({ eventId: listed.id, occurredAfter: at })).toEqual([]);
      expect(await types({ eventId: listed.id, occurredBefore: at })).toEqual(["ip.blacklisted"]);
      expect(
        (await store.listEvents(account + 1, { eventId: alone.id }, { limit: 5, cursor: null })).rows,
      ).toEqual([]);
    });

    test.each([
      "",
      "x",
      "%",
      "W10",
      Buffer.from('["e","x"]').toString("base64url"),
      Buffer.from('["m",1,2]').toString("base64url"),
    ])("the cursor %j is refused by name", async (cursor) => {
      const refusal = await store.listEvents(account, {}, { limit: 1, cursor }).then(
        () => null,
        (error: unknown) => error,
      );
      expect(refusal).toBeInstanceOf(Refusal);
      expect(refusal).toMatchObject({ code: "invalid_request", extras: { field: "cursor" } });
    });
  });
}

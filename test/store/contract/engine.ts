// What concerns the store itself, whatever engine it stands on. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { mint, newEndpoint, newEvent } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function engineContract(open: OpenStore): void {
  describe("the store itself", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    test("a secret is made once and stays", async () => {
      const [first, second] = await Promise.all([store.secret("verp"), store.secret("verp")]);
      expect(first.byteLength).toBe(32);
      expect(Buffer.from(second).equals(first)).toBe(true);
      expect(Buffer.from(await store.secret("verp")).equals(first)).toBe(true);
      expect(Buffer.from(await store.secret("other")).equals(first)).toBe(false);
    });

    test("listeners hear of commits after them, whether they brought events, and any that are to be posted", async () => {
      const heard: boolean[] = [];
      const stop = store.onCommit(({ events, deliveries }) => heard.push(events, deliveries));
      await store.noteUse({ apiKeys: [], smtpCredentials: [], at: 1 });
      await store.recordEvent(newEvent({ accountKey: account, receivedAt: clock.now() }));
      const subscribed = newEvent({ accountKey: account, receivedAt: clock.now(), typeBit: 4 });
      await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 4 }));
      await store.recordEvent(subscribed);
      stop();
      await store.recordEvent(newEvent({ accountKey: account, receivedAt: clock.now() }));
      expect(heard).toEqual([false, false, true, false, false, false, true, true]);
    });

    test("a call that fails by its own fault takes no other call with it", async () => {
      const id = mint("evt", clock.now());
      const events = [id, id, mint("evt", clock.now())].map((each) =>
        newEvent({ accountKey: account, receivedAt: clock.now(), id: each }),
      );
      const results = await Promise.allSettled(events.map((event) => store.recordEvent(event)));
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect(
        (await store.listEvents(account, { eventId: events[2]?.id ?? "" }, { limit: 1, cursor: null })).rows,
      ).toHaveLength(1);
    });
  });
}

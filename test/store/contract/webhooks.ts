// Webhook endpoints and the deliveries to them. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { FanOutPiece, Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { beginBoot, minute, newEndpoint, newEvent, owner, took } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function webhookContract(open: OpenStore): void {
  describe("webhooks", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    const record = async (typeBit = 1) => {
      const event = newEvent({ accountKey: account, receivedAt: clock.now(), typeBit });
      await store.recordEvent(event);
      return event;
    };

    const claimAll = (endpointKey: number, now = clock.now(), limit = 32) =>
      store.claimDeliveries({ owner, accountKey: account, endpointKey, limit, now });

    const fanOutAll = async (before: FanOutPiece | null = null): Promise<FanOutPiece[]> => {
      const pieces: FanOutPiece[] = [];
      for (let piece = await store.fanOut(account, before); piece; piece = await store.fanOut(account, piece))
        pieces.push(piece);
      return pieces;
    };

    test("an event goes to every endpoint that subscribed, with its body as recorded", async () => {
      const all = await store.createEndpoint(newEndpoint(account, clock.now()));
      const bounces = await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 4 }));
      const elsewhere = await store.accountByName("default");
      expect(elsewhere?.key).toBe(account);
      const event = await record(1);
      const { deliveries } = await claimAll(all.key);
      expect(deliveries).toEqual([
        {
          accountKey: account,
          endpointKey: all.key,
          eventSeq: expect.any(Number),
          eventId: event.id,
          owner,
          attempt: 1,
          body: event.body,
        },
      ]);
      expect((await claimAll(bounces.key)).deliveries).toEqual([]);
      expect((await store.endpointsDue()).map(({ endpointKey }) => endpointKey)).not.toContain(bounces.key);
      await store.deleteEndpoint(account, all.id);
      await store.deleteEndpoint(account, bounces.id);
    });

    test("an endpoint that is made with a kept answer has the key that the answer was made of; a key is never given again", async () => {
      const wanted = newEndpoint(account, clock.now(), { eventMask: 0 });
      const answer = () => ({ status: 201, body: "{}", audit: null });
      const made = await store.withIdempotency(null, (view) => view.createEndpoint(wanted), answer);
      if (made.kind !== "done") throw new Error(made.kind);
      expect(await store.endpointByKey(made.result.key)).toMatchObject({ id: wanted.id });
      const keys = [made.result.key];
      for (let n = 0; n < 3; n++) {
        const endpoint = await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 0 }));
        await store.deleteEndpoint(account, endpoint.id);
        keys.push(endpoint.key);
      }
      expect(new Set(keys).size).toBe(4);
      await store.deleteEndpoint(account, wanted.id);
    });

    test("an event of an account with many endpoints is queued for the first few at once, for all in pieces, each once", async () => {
      const made: number[] = [];
      for (let n = 0; n < 20; n++)
        made.push((await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 8 }))).key);
      const other = await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 16 }));
      const events: string[] = [];
      for (let n = 0; n < 60; n++) events.push((await record(8)).id);
      const [first = 0] = made;
      const [early] = (await claimAll(first, clock.now(), 1)).deliveries;
      if (!early) throw new Error("nothing claimed");
      await store.settleDeliveries([
        { ...took, ...early, at: 5, status: 200, result: { kind: "delivered" } },
      ]);
      const due = async () => (await store.endpointsDue()).map(({ endpointKey }) => endpointKey);
      expect((await due()).filter((key) => made.includes(key))).toHaveLength(6);
      expect(await store.accountsToFanOut()).toEqual([account]);
      expect((await fanOutAll()).length).toBeGreaterThan(1);
      expect(await store.accountsToFanOut()).toEqual([]);
      for (const key of made) {
        const ids = (await claimAll(key, clock.now(), 100)).deliveries.map(({ eventId }) => eventId);
        expect(ids).toEqual(key === first ? events.slice(1) : events);
      }
      expect(await due()).not.toContain(other.key);
      for (const { id } of await store.listEndpoints(account)) await store.deleteEndpoint(account, id);
    });

    test("a piece has many events for few endpoints; one that is repeated queues nothing twice", async () => {
      const made: number[] = [];
      const ids: string[] = [];
      for (let n = 0; n < 20; n++) {
        const { id, key } = await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 8 }));
        made.push(key);
        ids.push(id);
      }
      const events: string[] = [];
      for (let n = 0; n < 150; n++) events.push((await record(8)).id);
      const queued = async () => {
        const due = (await store.endpointsDue()).map(({ endpointKey }) => endpointKey);
        return made.filter((key) => due.includes(key)).length;
      };
      const first = await store.fanOut(account, null);
      expect(first?.endpointKey).toBe(made[4]);
      const second = await store.fanOut(account, first);
      expect([second?.seq, second?.endpointKey]).toEqual([first?.seq, made[9]]);
      expect(await queued()).toBe(10);
      expect(await store.fanOut(account, null)).toEqual(first); // as after a death
      expect(await queued()).toBe(10);
      const meanwhile = await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 8 }));
      await store.deleteEndpoint(account, ids[12] ?? "");
      const pieces = [first, ...(await fanOutAll(first))];
      const ends = pieces.slice(0, 4).map((piece) => piece?.endpointKey);
      expect(ends).toEqual([made[4], made[9], made[15], null]); // without the one that was deleted, with the one that was made
      expect(await store.accountsToFanOut()).toEqual([]);
      for (const key of [...made.filter((_, n) => n !== 12), meanwhile.key]) {
        const { deliveries } = await claimAll(key, clock.now(), 200);
        expect(deliveries.map(({ eventId }) => eventId)).toEqual(events);
      }
      for (const { id } of await store.listEndpoints(account)) await store.deleteEndpoint(account, id);
    });

    test("who goes on where another has ended the pieces begins with what waits since", async () => {
      const made: number[] = [];
      for (let n = 0; n < 12; n++)
        made.push((await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 8 }))).key);
      for (let n = 0; n < 100; n++) await record(8);
      const mine = await store.fanOut(account, null);
      await fanOutAll();
      expect(await store.fanOut(account, mine)).toBeNull();
      const { id } = await record(8);
      expect((await store.fanOut(account, mine))?.endpointKey).toBeNull();
      for (const key of made)
        expect((await claimAll(key, clock.now(), 200)).deliveries.at(-1)?.eventId).toBe(id);
      for (const endpoint of await store.listEndpoints(account))
        await store.deleteEndpoint(account, endpoint.id);
    });

    test("a backlog that is discarded has what is still to be queued; events of a deleted account's endpoints are let go", async () => {
      const made = [];
      for (let n = 0; n < 9; n++) made.push(await store.createEndpoint(newEndpoint(account, clock.now())));
      for (let n = 0; n < 150; n++) await record(1);
      const [, , , , , , , , last] = made;
      if (!last) throw new Error("no endpoint");
      const change = { active: false, updatedAt: clock.now() };
      await store.updateEndpoint(account, last.id, change, { discardBacklog: true });
      await fanOutAll();
      await store.updateEndpoint(account, last.id, { ...change, active: true });
      expect((await claimAll(last.key)).deliveries).toEqual([]);
      await record(1);
      for (const { id } of await store.listEndpoints(account)) await store.deleteEndpoint(account, id);
      expect(await store.fanOut(account, null)).toEqual({ seq: expect.any(Number), endpointKey: null });
      expect(await store.accountsToFanOut()).toEqual([]);
    });

    test("an event that is recorded while a backlog is discarded goes with it, and is not queued again later", async () => {
      const made = [];
      for (let n = 0; n < 9; n++) made.push(await store.createEndpoint(newEndpoint(account, clock.now())));
      const [first, , , , , , , , last] = made;
      if (!first || !last) throw new Error("no endpoint");
      for (const { key, id } of [first, last]) {
        const change = { active: true, updatedAt: clock.now() };
        await Promise.all([
          store.updateEndpoint(account, id, change, { discardBacklog: true }),
          record(1),
          record(1),
        ]);
        const before = (await claimAll(key)).deliveries;
        await fanOutAll();
        expect([...before, ...(await claimAll(key)).deliveries]).toEqual([]);
      }
      for (const { id } of await store.listEndpoints(account)) await store.deleteEndpoint(account, id);
    });

    test("first attempts go in event order before retries, a retry at its time, what was given back again", async () => {
      const at = clock.now();
      const endpoint = await store.createEndpoint(newEndpoint(account, at));
      const events = [await record(), await record(), await record()];
      const [first] = (await claimAll(endpoint.key, at, 1)).deliveries;
      if (!first) throw new Error("nothing claimed");
      await store.settleDeliveries([
        { ...took, ...first, at, status: 500, result: { kind: "retry", dueAt: at + 5 } },
      ]);
      expect(await store.endpointsDue()).toContainEqual({
        endpointKey: endpoint.key,
        accountKey: account,
        dueAt: 0,
        failures: expect.any(Number),
        retryAt: null,
      });
      const next = await claimAll(endpoint.key, at + 5);
      expect(next.deliveries.map(({ eventId, attempt }) => [eventId, attempt])).toEqual([
        [events[1]?.id, 1],
        [events[2]?.id, 1],
        [events[0]?.id, 2],
      ]);
      await store.requeueDeliveries(next.deliveries, at + 20, { counted: true });
      expect((await claimAll(endpoint.key, at + 19)).deliveries).toEqual([]);
      const again = await claimAll(endpoint.key, at + 20);
      expect(again.deliveries.map(({ attempt }) => attempt).sort((a, b) => a - b)).toEqual([2, 2, 3]);
      const done = again.deliveries.map((delivery) => ({
        ...delivery,
        ...took,
        at: at + 21,
        status: 200,
        result: { kind: "delivered" } as const,
      }));
      await store.settleDeliveries(done);
      expect((await store.endpointsDue()).map(({ endpointKey }) => endpointKey)).not.toContain(endpoint.key);
      await store.deleteEndpoint(account, endpoint.id);
    });

    test("results show at the endpoint and at the event", async () => {
      const at = clock.now();
      const endpoint = await store.createEndpoint(newEndpoint(account, at));
      const event = await record();
      const claimed = async () => {
        const [delivery] = (await claimAll(endpoint.key, clock.now() + minute)).deliveries;
        if (!delivery) throw new Error("nothing claimed");
        return delivery;
      };
      const shown = async () =>
        (await store.listEvents(account, { eventId: event.id }, { limit: 1, cursor: null })).rows[0]
          ?.deliveries;
      await store.settleDeliveries([
        { ...took, ...(await claimed()), at: 5, status: 500, result: { kind: "retry", dueAt: at } },
      ]);
      expect(await store.endpointByKey(endpoint.key)).toMatchObject({
        lastFailureAt: 5,
        lastSuccessAt: null,
        consecutiveFailures: 1,
      });
      expect(await shown()).toEqual([
        { webhookId: endpoint.id, status: "pending", attempts: 1, lastAttemptAt: 5, lastStatus: 500 },
      ]);
      await store.settleDeliveries([
        { ...took, ...(await claimed()), at: 6, status: null, result: { kind: "dead_lettered" } },
      ]);
      expect(await shown()).toMatchObject([{ status: "dead_lettered", attempts: 2, lastStatus: null }]);
      expect(await store.endpointByKey(endpoint.key)).toMatchObject({ consecutiveFailures: 2 });
      const other = await record();
      const late = await claimed();
      await store.settleDeliveries([{ ...took, ...late, at: 7, status: 204, result: { kind: "delivered" } }]);
      await store.settleDeliveries([
        { ...took, ...late, at: 8, status: 500, result: { kind: "retry", dueAt: at } },
      ]);
      expect(await store.endpointByKey(endpoint.key)).toMatchObject({
        lastSuccessAt: 7,
        consecutiveFailures: 0,
      });
      const found = async (filter: Parameters<Store["listEvents"]>[1]) =>
        (
          await store.listEvents(account, { webhookId: endpoint.id, ...filter }, { limit: 9, cursor: null })
        ).rows.map(({ id }) => id);
      expect(await found({})).toEqual([event.id, other.id]);
      expect(await found({ deliveryStatus: "delivered" })).toEqual([other.id]);
      expect(await found({ deliveryStatus: "dead_lettered" })).toEqual([event.id]);
      expect(await found({ deliveryStatus: "none" })).not.toContain(event.id);
      await store.deleteEndpoint(account, endpoint.id);
    });

    test("of an attempt whose lease was lost a failure changes nothing; a delivery ends the delivery", async () => {
      const at = clock.now();
      const endpoint = await store.createEndpoint(newEndpoint(account, at));
      const event = await record();
      const [first] = (await claimAll(endpoint.key)).deliveries;
      if (!first) throw new Error("nothing claimed");
      await store.endBoot(owner, at);
      await beginBoot(store, "boot-next");
      expect(await store.takeBackDeliveries("boot-next", at)).toBe(1);
      const claim = { owner: "boot-next", accountKey: account, endpointKey: endpoint.key, limit: 9, now: at };
      const { deliveries } = await store.claimDeliveries(claim);
      expect(deliveries.map(({ attempt }) => attempt)).toEqual([2]);
      const late = { ...took, ...first, at: at + 1, status: 500 };
      const shown = async () => [
        await store.endpointByKey(endpoint.key),
        await store.listDeliveries(account, endpoint.id, {}, { limit: 9, cursor: null }),
        await store.listEvents(account, { eventId: event.id }, { limit: 1, cursor: null }),
      ];
      const before = await shown();
      await store.settleDeliveries([{ ...late, result: { kind: "retry", dueAt: at } }]);
      await store.settleDeliveries([{ ...late, result: { kind: "dead_lettered" } }]);
      await store.requeueDeliveries([first], at);
      expect(await shown()).toEqual(before);
      expect((await store.claimDeliveries(claim)).deliveries).toEqual([]);
      await store.settleDeliveries([{ ...late, status: 200, result: { kind: "delivered" } }]);
      const { rows } = await store.listEvents(account, { eventId: event.id }, { limit: 1, cursor: null });
      expect(rows[0]?.deliveries).toMatchObject([{ status: "delivered", attempts: 2 }]);
      await store.deleteEndpoint(account, endpoint.id);
    });

    test("a failure or a requeue of an attempt that is over changes nothing of the next one", async () => {
      const at = clock.now();
      const endpoint = await store.createEndpoint(newEndpoint(account, at));
      await record();
      const [first] = (await claimAll(endpoint.key)).deliveries;
      if (!first) throw new Error("nothing claimed");
      await store.requeueDeliveries([first], at, { counted: true });
      const [second] = (await claimAll(endpoint.key)).deliveries;
      expect(second).toEqual({ ...first, attempt: 2 });
      const late = { ...took, ...first, at, status: 500 };
      await store.settleDeliveries([{ ...late, result: { kind: "retry", dueAt: at } }]);
      await store.settleDeliveries([{ ...late, result: { kind: "dead_lettered" } }]);
      await store.requeueDeliveries([first], at);
      await store.requeueDeliveries([first], at, { counted: true });
      expect((await claimAll(endpoint.key)).deliveries).toEqual([]);
      await store.deleteEndpoint(account, endpoint.id);
    });

    test("a tenth attempt without a result is claimed as the eleventh, which ends it; one that a start takes back is the tenth again", async () => {
      const at = clock.now();
      const endpoint = await store.createEndpoint(newEndpoint(account, at));
      const event = await record();
      const claimOne = async (claimant: string) => {
        const wanted = { owner: claimant, accountKey: account, endpointKey: endpoint.key, limit: 9, now: at };
        const { deliveries } = await store.claimDeliveries(wanted);
        if (!deliveries[0]) throw new Error("nothing claimed");
        return deliveries[0];
      };
      await beginBoot(store, "boot-tenth");
      let claimed = await claimOne("boot-tenth");
      while (claimed.attempt < 10) {
        await store.requeueDeliveries([claimed], at, { counted: true });
        claimed = await claimOne("boot-tenth");
      }
      await store.endBoot("boot-tenth", at);
      await beginBoot(store, "boot-after");
      await store.takeBackDeliveries("boot-after", at);
      claimed = await claimOne("boot-after");
      expect(claimed.attempt).toBe(10);
      for (let i = 0; i < 2; i++) {
        await store.requeueDeliveries([claimed], at, { counted: true });
        claimed = await claimOne("boot-after");
        expect(claimed.attempt).toBe(11);
      }
      await store.settleDeliveries([
        { ...took, ...claimed, at, status: 500, result: { kind: "dead_lettered" } },
      ]);
      const { rows } = await store.listEvents(account, { eventId: event.id }, { limit: 1, cursor: null });
      expect(rows[0]?.deliveries).toMatchObject([{ status: "dead_lettered", attempts: 10 }]);
      await store.deleteEndpoint(account, endpoint.id);
    });

    test("a backlog that is discarded takes along what is in flight", async () => {
      const endpoint = await store.createEndpoint(newEndpoint(account, clock.now()));
      await record();
      await record();
      const [first] = (await claimAll(endpoint.key, clock.now(), 1)).deliveries;
      if (!first) throw new Error("nothing claimed");
      await store.updateEndpoint(account, endpoint.id, { updatedAt: 10 }, { discardBacklog: true });
      const result = { kind: "retry", dueAt: clock.now() } as const;
      await store.settleDeliveries([{ ...took, ...first, at: clock.now(), status: 500, result }]);
      expect((await claimAll(endpoint.key)).deliveries).toEqual([]);
      await store.deleteEndpoint(account, endpoint.id);
    });

    test("ten failures in a row make an endpoint failing until a success; its retries can be claimed alone", async () => {
      const at = clock.now();
      const endpoint = await store.createEndpoint(newEndpoint(account, at));
      for (let i = 0; i < 12; i++) await record();
      const failingSince = async () => (await store.endpoint(account, endpoint.id))?.failingSince;
      const { deliveries } = await claimAll(endpoint.key, at, 10);
      for (const [i, one] of deliveries.entries()) {
        expect(await failingSince()).toBeNull();
        const result = { kind: "retry", dueAt: at + 100 + i } as const;
        await store.settleDeliveries([{ ...took, ...one, at: at + i, status: 500, result }]);
      }
      expect(await failingSince()).toBe(at + 9);
      const due = async () =>
        (await store.endpointsDue()).find(({ endpointKey }) => endpointKey === endpoint.key);
      expect(await due()).toMatchObject({ dueAt: 0, failures: 10, retryAt: at + 100 });

      const claim = { owner, accountKey: account, endpointKey: endpoint.key, limit: 32, retriesOnly: true };
      const none = await store.claimDeliveries({ ...claim, now: at + 99 });
      expect(none).toEqual({ deliveries: [], nextDueAt: at + 100 });
      const again = await store.claimDeliveries({ ...claim, now: at + 100 });
      expect(again.deliveries.map(({ attempt }) => attempt)).toEqual([2]);
      expect(again.nextDueAt).toBe(at + 101);
      const [retry] = again.deliveries;
      if (!retry) throw new Error("nothing claimed");
      await store.settleDeliveries([
        { ...took, ...retry, at: at + 200, status: 200, result: { kind: "delivered" } },
      ]);
      expect(await failingSince()).toBeNull();
      expect(await due()).toMatchObject({ dueAt: 0, failures: 0, retryAt: null });
      await store.deleteEndpoint(account, endpoint.id);
    });

    test("a paused endpoint's events wait; resuming sends them or drops them", async () => {
      const endpoint = await store.createEndpoint(newEndpoint(account, clock.now(), { active: false }));
      await record();
      expect((await store.endpointsDue()).map(({ endpointKey }) => endpointKey)).not.toContain(endpoint.key);
      expect((await claimAll(endpoint.key)).deliveries).toEqual([]);
      expect(await store.updateEndpoint(account, endpoint.id, { active: true, updatedAt: 9 })).toMatchObject({
        active: true,
        updatedAt: 9,
      });
      expect(await store.endpointsDue()).toContainEqual({
        endpointKey: endpoint.key,
        accountKey: account,
        dueAt: 0,
        failures: expect.any(Number),
        retryAt: null,
      });
      await store.updateEndpoint(account, endpoint.id, { updatedAt: 10 }, { discardBacklog: true });
      expect((await claimAll(endpoint.key)).deliveries).toEqual([]);
      expect(await store.deleteEndpoint(account, endpoint.id)).toBe(true);
      expect(await store.deleteEndpoint(account, endpoint.id)).toBe(false);
      expect(await store.endpoint(account, endpoint.id)).toBeNull();
      expect(await store.updateEndpoint(account, endpoint.id, { updatedAt: 11 })).toBeNull();
    });
  });
}

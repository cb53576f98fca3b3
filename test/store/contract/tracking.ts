// Tracking: the keys of its tokens, and what recipients did. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { SenderDomain } from "../../../src/model/domain.ts";
import type { Job } from "../../../src/model/queued-recipient.ts";
import type { NewUnsubscribe, NewVisit } from "../../../src/model/reaction.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { asAdded, seenTracking } from "../../support/domains.ts";
import { mint, newEvent, newSuppression } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function trackingContract(open: OpenStore): void {
  describe("tracking", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { one } = beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    const event = (job: Job, type: string, bit: number) =>
      newEvent({
        accountKey: account,
        messageKey: job.message.key,
        recipient: job.canonical,
        type,
        typeBit: bit,
        receivedAt: clock.now(),
      });
    const visit = (job: Job, kind: NewVisit["kind"], machine = false): NewVisit => ({
      accountKey: account,
      kind,
      machine,
      recipientKey: job.key,
      messageKey: job.message.key,
      at: clock.now(),
      event: event(job, `message.${kind}`, kind === "opened" ? 8 : 16),
    });
    const unsubscribe = (job: Job): NewUnsubscribe => {
      const made = event(job, "message.unsubscribed", 64);
      return {
        accountKey: account,
        at: clock.now(),
        recipient: { recipientKey: job.key, messageKey: job.message.key, event: made },
        suppression: newSuppression(account, job.canonical, { reason: "unsubscribe", eventId: made.id }),
      };
    };
    const shown = async (job: Job) => (await store.message(account, job.message.id))?.recipients[0];
    const eventsOf = async (job: Job) =>
      (await store.listEvents(account, { messageId: job.message.id }, { limit: 50, cursor: null })).rows;
    const suppressed = (job: Job) => store.suppression(account, job.canonical, clock.now());

    test("keys get the next number each, up to 255, and none is ever removed", async () => {
      expect(await store.trackingKeys()).toEqual([]);
      const first = await store.addTrackingKey(1_000);
      const second = await store.addTrackingKey(2_000);
      expect(first).toMatchObject({ number: 0, createdAt: 1_000 });
      expect(second?.secret).toHaveLength(32);
      expect(second?.secret).not.toEqual(first?.secret);
      expect(await store.trackingKeys()).toEqual([first, second]);
      for (let number = 2; number < 256; number++) await store.addTrackingKey(number);
      expect(await store.addTrackingKey(9_000)).toBeNull();
      expect(await store.trackingKeys()).toHaveLength(256);
    });

    test("visits keep the first time and a count, machines' leave only their mark, and each has its event", async () => {
      const job = await one();
      const began = clock.now();
      await store.recordVisits([visit(job, "opened"), visit(job, "clicked", true)]);
      await clock.advance(1_000);
      await store.recordVisits([visit(job, "opened"), visit(job, "opened", true)]);
      expect(await shown(job)).toMatchObject({
        openedAt: began,
        openCount: 2,
        clickedAt: null,
        clickCount: 0,
        unsubscribedAt: null,
        updatedAt: clock.now(),
      });
      expect(await eventsOf(job)).toHaveLength(4);
      expect(await store.reactingRecipient({ key: job.message.key }, job.key)).toMatchObject({
        openedAt: began,
        clickedAt: null,
        machineVisits: 3,
      });
    });

    test("an unsubscribe is recorded once and suppresses each time, by the event where there is one", async () => {
      const job = await one();
      const began = clock.now();
      const first = unsubscribe(job);
      expect(await store.recordUnsubscribe(first)).toBe("recorded");
      expect(await suppressed(job)).toMatchObject({ eventId: first.suppression?.eventId });
      await store.removeSuppression(account, job.canonical);
      await clock.advance(1_000);
      expect(await store.recordUnsubscribe(unsubscribe(job))).toBe("already");
      expect(await suppressed(job)).toMatchObject({ reason: "unsubscribe", eventId: null });
      expect(await shown(job)).toMatchObject({ unsubscribedAt: began });
      expect(await eventsOf(job)).toHaveLength(1);
    });

    test("a recipient that is gone, or of another message, gets nothing; its address is suppressed all the same", async () => {
      const job = await one();
      const other = { ...job, key: job.key + 1_000_000 };
      await store.recordVisits([visit(other, "opened")]);
      expect(await store.recordUnsubscribe(unsubscribe(other))).toBe("already");
      expect(await store.recordUnsubscribe({ ...unsubscribe(job), recipient: null })).toBe("already");
      expect(await eventsOf(job)).toEqual([]);
      expect(await suppressed(job)).not.toBeNull();
      expect(await store.reactingRecipient({ id: job.message.id }, other.key)).toBeNull();
      expect(await store.reactingRecipient({ id: "msg_00000000000000000000000000" }, job.key)).toBeNull();
    });

    const named = async (domain: SenderDomain, name: string | null, over: Partial<SenderDomain> = {}) => {
      const records = name === null ? [] : [seenTracking(name)];
      const saved = { ...domain, trackingDomain: name, records, verifiedAt: 1, ...over };
      expect(await store.saveDomain(saved)).toBe(true);
      return { ...saved, revision: domain.revision + 1 };
    };
    const newDomain = async (name: string): Promise<SenderDomain> => {
      const at = clock.now();
      const made = await store.createDomain({
        ...asAdded,
        id: mint("dom", at),
        accountKey: account,
        name,
        status: "verified",
        returnPathDomain: `bounce.${name}`,
        records: [],
        dkimKeys: [],
        createdAt: at,
        updatedAt: at,
        verifiedAt: at,
        checkedAt: at,
        failingSince: null,
      });
      if (!made) throw new Error("not made");
      return made;
    };

    test("a tracking name is one that a verified domain had while its record was seen", async () => {
      expect(await store.isTrackingName("t.nowhere.test")).toBe(false);
      const domain = await newDomain("seen.test");
      const pending = await named(domain, "t.seen.test", { verifiedAt: null });
      expect(await store.isTrackingName("t.seen.test")).toBe(false);
      const unseen = await named(pending, "t.seen.test", { records: [] });
      expect(await store.isTrackingName("t.seen.test")).toBe(false);
      await named(unseen, "t.seen.test");
      expect(await store.isTrackingName("t.seen.test")).toBe(true);
      expect(await store.isTrackingName("seen.test")).toBe(false);
    });

    test("it stays one when its record is gone, when the name is changed, and when the domain is deleted", async () => {
      let domain = await named(await newDomain("kept.test"), "one.kept.test");
      domain = await named(domain, "one.kept.test", { records: [] });
      domain = await named(domain, "two.kept.test");
      await named(domain, null);
      await store.deleteDomain(account, "kept.test");
      expect(await store.domainByName(account, "kept.test")).toBeNull();
      for (const name of ["one.kept.test", "two.kept.test"])
        expect([name, await store.isTrackingName(name)]).toEqual([name, true]);
    });

    test("tracking names are listed with their accounts, the newest of each first, and no more than asked for", async () => {
      let domain = await newDomain("list.test");
      for (const n of [1, 2, 3]) domain = await named(domain, `t${n}.list.test`);
      const all = await store.trackingNames(1_000, 1_000);
      expect(all.slice(0, 3)).toEqual(
        [3, 2, 1].map((n) => ({ name: `t${n}.list.test`, accountKey: account })),
      );
      expect(await store.trackingNames(2, 1_000)).toEqual(all.slice(0, 2));
      expect(await store.trackingNames(1_000, 1)).toEqual(all.slice(0, 1));
    });

    test("what is not saved makes no name", async () => {
      const domain = await newDomain("stale.test");
      await named(domain, null);
      const stale = { ...domain, verifiedAt: 1, trackingDomain: "t.stale.test" };
      expect(await store.saveDomain(stale)).toBe(false);
      expect(await store.isTrackingName("t.stale.test")).toBe(false);
    });
  });
}

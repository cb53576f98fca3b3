// What an outcome changes. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { beginBoot, minute, newMessage, newSuppression, owner, settlementOf } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function settlementContract(open: OpenStore): void {
  describe("settlement", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { freshDomain, one, stateOf } = beforeAllOpened(
      open,
      (opened) => ({ store, clock, account } = opened),
    );

    test("delivery shows in recipient, attempt and event, and a second outcome writes nothing", async () => {
      const at = clock.now();
      const job = await one();
      const settlement = settlementOf(job, at);
      expect(await store.settle(settlement)).toBe(true);
      expect(await store.settle(settlementOf(job, at + 5, { outcome: "bounced" }))).toBe(false);
      const shown = (await store.message(account, job.message.id))?.recipients[0];
      expect(shown).toMatchObject({
        state: "delivered",
        attempts: 1,
        lastAttemptAt: at - 20,
        nextAttemptAt: null,
        smtpCode: 250,
        smtpStatus: "2.0.0",
        receivingMta: "mx.a.test",
        sendingIp: "192.0.2.7",
        tls: settlement.record?.tls,
      });
      const attempts = await store.attempts(account, job.message.id);
      expect(attempts).toHaveLength(1);
      expect(attempts[0]).toEqual({
        ...settlement.record,
        recipient: job.to,
        attempt: 1,
        outcome: "delivered",
        smtpCode: 250,
        smtpStatus: "2.0.0",
        smtpResponse: "as told",
        nextAttemptAt: null,
      });
      const events = await store.listEvents(
        account,
        { messageId: job.message.id },
        { limit: 10, cursor: null },
      );
      expect(events.rows.map(({ id, body }) => ({ id, body }))).toEqual([
        { id: settlement.event.id, body: settlement.event.body },
      ]);
    });

    test("a deferral waits until its time, and the next job knows the last event", async () => {
      const at = clock.now();
      const job = await one();
      await store.settle(settlementOf(job, at, { outcome: "deferred", nextAttemptAt: at + minute }));
      expect((await store.message(account, job.message.id))?.recipients[0]).toMatchObject({
        state: "deferred",
        nextAttemptAt: at + minute,
      });
      const claim = {
        owner,
        queueName: job.queueName,
        limit: 1,
        now: at + minute - 1,
      };
      expect(await store.claimDue(claim)).toEqual({ jobs: [], nextDueAt: at + minute });
      const { jobs } = await store.claimDue({ ...claim, now: at + minute });
      expect(jobs[0]).toMatchObject({ attempt: 2, lastEventAt: at, to: job.to });
    });

    test("an end without an attempt counts none", async () => {
      const job = await one();
      await store.settle(settlementOf(job, clock.now(), { outcome: "bounced", record: null }));
      expect((await store.message(account, job.message.id))?.recipients[0]).toMatchObject({
        state: "bounced",
        attempts: 0,
        lastAttemptAt: null,
      });
      expect(await store.attempts(account, job.message.id)).toEqual([]);
    });

    test("of an attempt whose lease was lost a deferral and a bounce write nothing; a delivery is final", async () => {
      const at = clock.now();
      const job = await one();
      await store.endBoot(owner, at);
      await beginBoot(store, "boot-next");
      await store.takeBackLeases("boot-next", at, "~");
      const claim = { owner: "boot-next", queueName: job.queueName, limit: 1, now: at };
      expect((await store.claimDue(claim)).jobs).toHaveLength(1);
      const shown = async () => [
        await store.message(account, job.message.id),
        await store.attempts(account, job.message.id),
        await store.listEvents(account, { messageId: job.message.id }, { limit: 10, cursor: null }),
      ];
      const before = await shown();
      const suppression = newSuppression(account, job.to);
      for (const outcome of ["deferred", "bounced"] as const)
        expect(await store.settle(settlementOf(job, at + 1, { outcome, suppression }))).toBe(false);
      expect(await shown()).toEqual(before);
      expect(await store.suppression(account, job.to, at)).toBeNull();
      expect((await store.claimDue({ ...claim, now: at + 60 * minute })).jobs).toEqual([]);
      expect(await store.settle(settlementOf(job, at + 1))).toBe(true);
      expect(await stateOf(job)).toBe("delivered");
      expect(await store.settle(settlementOf(job, at + 2, { owner: "boot-next", attempt: 2 }))).toBe(false);
    });

    test("an outcome of an earlier attempt changes nothing of the one that its own boot makes now", async () => {
      const at = clock.now();
      const job = await one();
      await store.settle(settlementOf(job, at, { outcome: "deferred", nextAttemptAt: at }));
      expect(await store.settle(settlementOf(job, at, { outcome: "bounced" }))).toBe(false);
      const claim = { owner, queueName: job.queueName, limit: 1, now: at };
      const [again] = (await store.claimDue(claim)).jobs;
      expect(await store.settle(settlementOf(job, at, { outcome: "bounced" }))).toBe(false);
      expect(await stateOf(job)).toBe("sending");
      expect(again && (await store.settle(settlementOf(again, at, { outcome: "bounced" })))).toBe(true);
    });

    test("a bounce that suppresses keeps the next message out; a test mail is caught in the inbox", async () => {
      const at = clock.now();
      const job = await one(`Gone@${freshDomain()}`);
      const suppression = newSuppression(account, job.to, {
        reason: "hard_bounce",
        source: "system",
        messageId: job.message.id,
      });
      await store.settle(settlementOf(job, at, { outcome: "bounced", suppression, catchInInbox: true }));
      expect(await store.suppression(account, job.to.toLowerCase(), at)).toMatchObject({
        reason: "hard_bounce",
        createdAt: at,
      });
      const refused = await store.acceptMessage(newMessage({ accountKey: account, to: [job.to], at }));
      expect(refused.kind).toBe("suppressed");
      const { rows } = await store.listInbox(account, { limit: 10, cursor: null });
      expect(rows[0]).toMatchObject({
        messageId: job.message.id,
        to: job.to,
        from: "info@shop.example",
        subject: "Your order",
        caughtAt: at,
      });
      expect(await store.clearInbox(account)).toBeGreaterThan(0);
      expect((await store.listInbox(account, { limit: 10, cursor: null })).rows).toEqual([]);
    });
  });
}

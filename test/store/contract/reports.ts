// What any Store must do with reports that come back: only the interface is used.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Job } from "../../../src/model/queued-recipient.ts";
import type { Report } from "../../../src/model/report.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import type { OpenedStore, OpenStore } from "./opened.ts";
import {
  accept,
  minute,
  newEndpoint,
  newEvent,
  newMessage,
  newSuppression,
  owner,
  settlementOf,
} from "../values.ts";

export function reportContract(open: OpenStore): void {
  describe("reports", () => {
    let opened: OpenedStore;
    let store: Store;
    let clock: ManualClock;
    let account: number;
    let count = 0;

    beforeAll(async () => {
      opened = await open();
      ({ store, clock } = opened);
      account = (await store.accountByName("default"))?.key ?? 0;
    });
    afterAll(() => opened.close());

    const send = (to: string[]): Promise<Job[]> =>
      accept(store, newMessage({ accountKey: account, to, at: clock.now(), lease: true }));
    const delivered = async (): Promise<Job> => {
      const [job] = await send([`r${++count}@d${count}.test`]);
      if (!job) throw new Error("no job");
      await store.settle(settlementOf(job, clock.now()));
      return job;
    };
    const report = (job: Job, wishes: Partial<Report> = {}): Report => {
      const kind = wishes.kind ?? "bounced";
      const event = newEvent({
        accountKey: account,
        messageKey: job.message.key,
        recipient: job.canonical,
        type: `message.${kind}`,
        typeBit: kind === "bounced" ? 4 : 32,
        receivedAt: clock.now(),
      });
      return {
        kind,
        recipientKey: job.key,
        messageKey: job.message.key,
        at: clock.now(),
        smtpCode: 550,
        smtpStatus: "5.1.1",
        smtpResponse: "550 5.1.1 no such user",
        event,
        suppression: newSuppression(account, job.to, {
          reason: kind === "bounced" ? "hard_bounce" : "complaint",
        }),
        ...wishes,
      };
    };
    const eventsOf = async (job: Job): Promise<string[]> =>
      (await store.listEvents(account, { messageId: job.message.id }, { limit: 100, cursor: null })).rows.map(
        ({ type }) => type,
      );
    const recipientOf = async (job: Job) =>
      (await store.message(account, job.message.id))?.recipients.find(({ to }) => to === job.to);

    test("a message that went out is found by key and by id, with its recipients in order", async () => {
      const [first, second] = await send([`a@x${++count}.test`, `b@x${count}.test`]);
      if (!first || !second) throw new Error("no jobs");
      await store.settle(settlementOf(first, clock.now()));
      const byKey = await store.sentMessage({ key: first.message.key });
      expect(
        byKey?.map(({ job, state, sendingIp, receivingMta }) => [job.to, state, sendingIp, receivingMta]),
      ).toEqual([
        [first.to, "delivered", "192.0.2.7", "mx.a.test"],
        [second.to, "sending", null, null],
      ]);
      expect(await store.sentMessage({ id: first.message.id })).toEqual(byKey);
      expect(byKey?.[0]?.job).toMatchObject({
        key: first.key,
        canonical: first.canonical,
        attempt: 1,
        message: {
          key: first.message.key,
          accountKey: account,
          returnPathDomain: "rp.shop.example",
          test: false,
        },
      });
      expect(await store.sentMessage({ key: 999_999_999 })).toBeNull();
      expect(await store.sentMessage({ id: "msg_01jdq0000000000000000000zz" })).toBeNull();
    });

    test("a delivered recipient bounces once, with event, webhook row and suppression", async () => {
      const job = await delivered();
      const endpoint = await store.createEndpoint(newEndpoint(account, clock.now()));
      await clock.advance(minute);
      expect(await store.settleReports([report(job)])).toEqual(["recorded"]);
      expect(await recipientOf(job)).toMatchObject({
        state: "bounced",
        smtpCode: 550,
        smtpStatus: "5.1.1",
        updatedAt: clock.now(),
        attempts: 1,
        receivingMta: "mx.a.test",
      });
      expect(await store.suppression(account, job.canonical, clock.now())).toMatchObject({
        reason: "hard_bounce",
      });
      expect(await store.endpointsDue()).toContainEqual({
        endpointKey: endpoint.key,
        accountKey: account,
        dueAt: 0,
        failures: expect.any(Number),
        retryAt: null,
      });
      expect(await store.settleReports([report(job)])).toEqual(["already"]);
      expect(await eventsOf(job)).toEqual(["message.delivered", "message.bounced"]);
      await store.deleteEndpoint(account, endpoint.id);
    });

    test("a recipient complains once, before or after a bounce, and its state stays", async () => {
      const job = await delivered();
      const complaint = (): Report =>
        report(job, { kind: "complained", smtpCode: null, smtpStatus: null, smtpResponse: null });
      expect(await store.settleReports([complaint()])).toEqual(["recorded"]);
      expect(await store.settleReports([complaint(), report(job)])).toEqual(["already", "recorded"]);
      expect(await recipientOf(job)).toMatchObject({
        state: "bounced",
        complainedAt: clock.now(),
        smtpCode: 550,
      });
      expect(await store.suppression(account, job.canonical, clock.now())).toMatchObject({
        reason: "complaint",
      });
      expect(await eventsOf(job)).toEqual(["message.delivered", "message.complained", "message.bounced"]);
    });

    test("while an attempt is under way nothing is written", async () => {
      const [job] = await send([`busy@x${++count}.test`]);
      if (!job) throw new Error("no job");
      expect(await store.settleReports([report(job)])).toEqual(["busy"]);
      expect(await recipientOf(job)).toMatchObject({ state: "sending" });
      expect(await eventsOf(job)).toEqual([]);
      await store.settle(settlementOf(job, clock.now()));
      expect(await store.settleReports([report(job)])).toEqual(["recorded"]);
    });

    test("a recipient that waits after an attempt whose end nobody knows is ended, and is claimed no more", async () => {
      const [job] = await send([`ambiguous@x${++count}.test`]);
      if (!job) throw new Error("no job");
      await store.settle(settlementOf(job, clock.now(), { outcome: "deferred" }));
      expect(await store.settleReports([report(job)])).toEqual(["recorded"]);
      const later = clock.now() + 60 * minute;
      const claim = await store.claimDue({
        owner,
        queueName: job.queueName,
        limit: 10,
        now: later,
      });
      expect(claim).toEqual({ jobs: [], nextDueAt: null });
    });

    test("what was never tried, was canceled or has bounced does not bounce again", async () => {
      const waiting = await store.acceptMessage(
        newMessage({ accountKey: account, to: [`new@x${++count}.test`], at: clock.now() }),
      );
      expect(waiting.kind).toBe("accepted");
      const rows = await store.listMessages(account, {}, { limit: 1, cursor: null });
      const sent = await store.sentMessage({ id: rows.rows[0]?.id ?? "" });
      const job = sent?.[0]?.job;
      if (!job) throw new Error("no job");
      expect(await store.settleReports([report(job)])).toEqual(["already"]);
      await store.cancelMessage(account, job.message.id, clock.now());
      expect(await store.settleReports([report(job)])).toEqual(["already"]);
      const [bounced] = await send([`gone@x${++count}.test`]);
      if (!bounced) throw new Error("no job");
      await store.settle(settlementOf(bounced, clock.now(), { outcome: "bounced" }));
      expect(await store.settleReports([report(bounced)])).toEqual(["already"]);
      expect(await eventsOf(bounced)).toEqual(["message.bounced"]);
    });

    test("a report on a recipient of another message changes nothing", async () => {
      const [mine, other] = [await delivered(), await delivered()];
      expect(await store.settleReports([report(mine, { recipientKey: other.key })])).toEqual(["already"]);
      expect(await eventsOf(other)).toEqual(["message.delivered"]);
    });

    test("one report of many writes all or what each may", async () => {
      const jobs = [await delivered(), await delivered(), await delivered()];
      const reports = jobs.map((job) => report(job));
      expect(await store.settleReports([...reports, ...reports])).toEqual([
        "recorded",
        "recorded",
        "recorded",
        "already",
        "already",
        "already",
      ]);
    });
  });
}

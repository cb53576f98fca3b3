// What any Store must do about retention: only the interface is used. Each test has a store of its own, since a purge
// is about everything that is in one.
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Job } from "../../../src/model/queued-recipient.ts";
import {
  nothingPurged as nothing,
  type Purged,
  type PurgedCounts,
  type PurgeRequest,
} from "../../../src/model/retention.ts";
import type { Settlement } from "../../../src/model/settlement.ts";
import { failingAfter } from "../../../src/model/webhook.ts";
import { ContentGone } from "../../../src/store/store.ts";
import type { Store } from "../../../src/store/store.ts";
import type { OpenedStore, OpenStore } from "./opened.ts";
import {
  accept,
  inChunks,
  minute,
  newEndpoint,
  newEvent,
  newMessage,
  owner,
  readAll,
  settlementOf,
  took,
} from "../values.ts";
import type { MessageWishes } from "../values.ts";

const hour = 60 * minute;
const day = 24 * hour;
const kept = { contentMs: 3 * day, messagesMs: 90 * day, eventsMs: 30 * day, auditMs: 90 * day };
const page = { limit: 50, cursor: null };

export function retentionContract(open: OpenStore): void {
  describe("retention", () => {
    let opened: OpenedStore;
    let store: Store;
    let account: number;
    let t0: number;

    beforeEach(async () => {
      opened = await open();
      ({ store } = opened);
      account = (await store.accountByName("default"))?.key ?? 0;
      t0 = opened.clock.now();
    });
    afterEach(() => opened.close());

    const piece = (now: number, retention = kept, limit = 1000): Promise<Purged> =>
      store.purge(requestOf(now, retention, limit));

    const purge = async (now: number, retention = kept, limit = 1000): Promise<PurgedCounts> => {
      const sum = { ...nothing };
      for (let more = true; more;) {
        const { more: again, ...counts } = await piece(now, retention, limit);
        for (const kind of Object.keys(counts) as (keyof typeof sum)[]) sum[kind] += counts[kind];
        more = again;
      }
      return sum;
    };

    const send = async (at: number, wishes: Partial<MessageWishes> = {}): Promise<Job[]> =>
      accept(store, newMessage({ accountKey: account, at, lease: true, ...wishes }));
    const sendOne = async (at: number, wishes: Partial<MessageWishes> = {}): Promise<Job> => {
      const [job] = await send(at, wishes);
      if (!job) throw new Error("no job");
      return job;
    };
    const settle = (job: Job, at: number, wishes: Partial<Settlement> = {}): Promise<boolean> =>
      store.settle(settlementOf(job, at, wishes));
    const shown = (job: Job) => store.message(account, job.message.id);

    test("content goes three days after the last recipient is final, with the dialogues and inbox copies that show it", async () => {
      const [first, second] = (await send(t0, { to: ["a@x.test", "b@x.test"] })) as [Job, Job];
      await settle(first, t0 + 1000, { catchInInbox: true });
      await settle(second, t0 + 1000, { outcome: "deferred" });
      await settle({ ...second, attempt: 2 }, t0 + day);
      const { content } = (await shown(first)) ?? {};
      if (!content) throw new Error("no content");

      expect(await purge(t0 + 3 * day + 1000)).toEqual(nothing);
      expect(await purge(t0 + 4 * day - 1)).toEqual(nothing);
      expect(await readAll(store.openContent(content))).toHaveLength(21);
      expect((await store.listInbox(account, page)).rows).toHaveLength(1);

      expect(await purge(t0 + 4 * day)).toEqual({ ...nothing, content: 1 });
      expect(await shown(first)).toMatchObject({
        content: null,
        subject: "Your order",
        recipients: [{ state: "delivered" }, { state: "delivered" }],
      });
      await expect(readAll(store.openContent(content))).rejects.toBeInstanceOf(ContentGone);
      expect((await store.listInbox(account, page)).rows).toEqual([]);
      const attempts = await store.attempts(account, first.message.id);
      expect(attempts).toHaveLength(3);
      for (const attempt of attempts)
        expect(attempt).toMatchObject({ mx: [], dialogue: [], host: "mx.a.test", smtpResponse: "as told" });
      expect(await purge(t0 + 4 * day)).toEqual(nothing);
    });

    test("large content goes the same way", async () => {
      const content = await store.putContent(inChunks(Buffer.alloc(100_000), 50_000));
      const job = await sendOne(t0, { content });
      await settle(job, t0);
      expect(await purge(t0 + 3 * day)).toEqual({ ...nothing, content: 1, files: 1, fileBytes: 100_000 });
      await expect(readAll(store.openContent(job.message.content))).rejects.toBeInstanceOf(ContentGone);
    });

    test("with a retention of nothing content goes as soon as the last recipient is final, and not before", async () => {
      const atOnce = { ...kept, contentMs: 0 };
      const job = await sendOne(t0);
      const other = await sendOne(t0);
      await settle(other, t0 + 10);
      expect(await purge(t0 + 10, atOnce)).toEqual({ ...nothing, content: 1 });
      expect(await shown(job)).toMatchObject({ content: { kind: "inline" } });
      await settle(job, t0 + 8 * hour);
      // What was waiting when it was looked at is looked at again within an eighth of its age, or ten minutes.
      expect(await purge(t0 + 8 * hour + 10 * minute, atOnce)).toEqual({ ...nothing, content: 1 });
    });

    test("a message goes with all that is its own; what only names it stays", async () => {
      const job = await sendOne(t0, { to: ["gone@x.test"] });
      await settle(job, t0);
      const wide = { ...kept, eventsMs: 200 * day };
      expect(await purge(t0 + 90 * day - 1, wide)).toMatchObject({ content: 1, messages: 0 });
      expect(await shown(job)).not.toBeNull();
      expect(await purge(t0 + 90 * day, wide)).toEqual({ ...nothing, messages: 1 });
      expect(await shown(job)).toBeNull();
      expect(await store.attempts(account, job.message.id)).toEqual([]);
      expect((await store.listMessages(account, { to: "gone@x.test" }, page)).rows).toEqual([]);
      expect((await store.listMessages(account, {}, page)).rows).toEqual([]);
      expect((await store.listEvents(account, {}, page)).rows).toHaveLength(1);
    });

    test("content that is kept for longer than its message goes with it", async () => {
      const content = await store.putContent(inChunks(Buffer.alloc(100_000), 50_000));
      const spooled = await sendOne(t0, { content });
      const inline = await sendOne(t0);
      for (const job of [spooled, inline]) await settle(job, t0, { catchInInbox: true });
      const removed = await purge(t0 + 90 * day, { ...kept, contentMs: 400 * day });
      expect(removed).toMatchObject({ content: 2, messages: 2, files: 1 });
      expect((await store.listInbox(account, page)).rows).toEqual([]);
      for (const { message } of [spooled, inline])
        await expect(readAll(store.openContent(message.content))).rejects.toBeInstanceOf(ContentGone);
      expect(await purge(t0 + 900 * day, { ...kept, contentMs: 400 * day })).toMatchObject({ content: 0 });
    });

    test("what is scheduled, waits, is deferred or in flight stays, however old it is", async () => {
      const wishes = { lease: false, to: ["w@x.test"] };
      const scheduled = newMessage({ accountKey: account, at: t0, sendAt: t0 + 72 * hour, ...wishes });
      const queued = newMessage({ accountKey: account, at: t0, ...wishes });
      for (const message of [scheduled, queued]) await accept(store, message);
      const leased = await sendOne(t0);
      const deferred = await sendOne(t0);
      await settle(deferred, t0, { outcome: "deferred" });
      for (const years of [1, 2, 3])
        expect(await purge(t0 + years * 365 * day)).toMatchObject({ content: 0, messages: 0 });
      for (const { message } of [scheduled, queued, leased, deferred])
        expect(await store.message(account, message.id)).toMatchObject({
          content: { kind: "inline" },
          recipients: [{}],
        });
      expect((await store.attempts(account, deferred.message.id))[0]?.dialogue).toHaveLength(1);
    });

    test("one that is final late has its days from then, and holds up no younger one", async () => {
      const late = await sendOne(t0);
      await settle(late, t0, { outcome: "deferred" });
      const young = await sendOne(t0 + 1);
      await settle(young, t0 + 1);
      expect(await purge(t0 + 3 * day + 1)).toEqual({ ...nothing, content: 1 });
      expect(await shown(young)).toMatchObject({ content: null });
      await settle({ ...late, attempt: 2 }, t0 + 5 * day);
      expect(await purge(t0 + 8 * day - 1)).toEqual(nothing);
      expect(await purge(t0 + 8 * day)).toEqual({ ...nothing, content: 1 });
    });

    test("a canceled message counts from its cancellation", async () => {
      const message = newMessage({ accountKey: account, at: t0, sendAt: t0 + 72 * hour });
      await accept(store, message);
      await store.cancelMessage(account, message.message.id, t0 + hour);
      expect(await purge(t0 + 3 * day)).toEqual(nothing);
      expect(await purge(t0 + 3 * day + hour)).toEqual({ ...nothing, content: 1 });
    });

    test("a shorter retention holds for what the longer one had put off too", async () => {
      const [first, second] = [await sendOne(t0), await sendOne(t0)];
      await settle(first, t0);
      await settle(second, t0, { outcome: "deferred" });
      await settle({ ...second, attempt: 2 }, t0 + day);
      expect(await purge(t0 + 3 * day)).toEqual({ ...nothing, content: 1 });
      expect(await purge(t0 + 3 * day, { ...kept, contentMs: 2 * day })).toEqual({ ...nothing, content: 1 });
    });

    describe("events", () => {
      const record = async (at: number): Promise<string> => {
        const event = newEvent({ accountKey: account, receivedAt: at });
        await store.recordEvent(event);
        return event.id;
      };
      const ids = async () => (await store.listEvents(account, {}, page)).rows.map(({ id }) => id);
      const claimed = async (endpointKey: number, now: number) =>
        (
          await store.claimDeliveries({
            owner,
            accountKey: account,
            endpointKey,
            limit: 10,
            now,
          })
        ).deliveries;

      test("an event goes thirty days after it was received, with its deliveries", async () => {
        const endpoint = await store.createEndpoint(newEndpoint(account, t0));
        await record(t0);
        const younger = await record(t0 + 1);
        const deliveries = await claimed(endpoint.key, t0);
        await store.settleDeliveries(
          deliveries.map((one) => ({
            ...took,
            ...one,
            at: t0 + 5,
            status: 200,
            result: { kind: "delivered" },
          })),
        );
        expect(await purge(t0 + 30 * day - 1)).toEqual(nothing);
        expect(await purge(t0 + 30 * day)).toEqual({ ...nothing, events: 1, deliveries: 1 });
        expect(await ids()).toEqual([younger]);
      });

      test("one that was dead-lettered stays thirty days from then; one that a delivery waits for stays", async () => {
        const endpoint = await store.createEndpoint(newEndpoint(account, t0));
        const dead = await record(t0);
        const [delivery] = await claimed(endpoint.key, t0);
        if (!delivery) throw new Error("nothing claimed");
        const deadAt = t0 + day;
        await store.settleDeliveries([
          { ...took, ...delivery, at: deadAt, status: 500, result: { kind: "dead_lettered" } },
        ]);
        await store.updateEndpoint(account, endpoint.id, { active: false, updatedAt: t0 });
        const waiting = await record(t0);
        expect(await purge(t0 + 30 * day)).toEqual(nothing);
        expect(await purge(deadAt + 30 * day - 1)).toEqual(nothing);
        expect(await ids()).toEqual([dead, waiting]);
        expect(await purge(deadAt + 30 * day)).toEqual({ ...nothing, events: 1, deliveries: 1 });
        expect(await purge(t0 + 300 * day)).toEqual(nothing);
        await store.updateEndpoint(account, endpoint.id, { active: true, updatedAt: t0 });
        expect(await claimed(endpoint.key, t0 + 300 * day)).toMatchObject([{ eventId: waiting }]);
      });

      test("one that came to a failing endpoint and was never tried goes like any other, one from before stays", async () => {
        const endpoint = await store.createEndpoint(newEndpoint(account, t0));
        for (let failures = 0; failures < failingAfter; failures++) {
          await record(t0);
          const [delivery] = await claimed(endpoint.key, t0);
          if (!delivery) throw new Error("nothing claimed");
          if (failures === failingAfter - 1) await record(t0);
          const result = { kind: "dead_lettered" } as const;
          await store.settleDeliveries([{ ...took, ...delivery, at: t0 + 1, status: 500, result }]);
        }
        const since = await record(t0 + 1);
        expect(await purge(t0 + 30 * day)).toEqual(nothing);
        expect(await purge(t0 + 30 * day + 1)).toEqual({ ...nothing, events: 11, deliveries: 11 });
        expect(await ids()).toHaveLength(1);
        expect(await ids()).not.toContain(since);
      });

      test("the backlog of a deleted endpoint holds no event", async () => {
        const endpoint = await store.createEndpoint(newEndpoint(account, t0));
        await record(t0);
        await store.deleteEndpoint(account, endpoint.id);
        expect(await purge(t0 + 30 * day)).toEqual({ ...nothing, events: 1 });
      });
    });

    test("the answer to an idempotent request goes when it is not replayed any more, and not before", async () => {
      const ask = (at: number) =>
        store.acceptMessage(
          newMessage({
            accountKey: account,
            at,
            idempotency: {
              key: "k",
              fingerprint: new Uint8Array(32),
              status: 202,
              body: `{"at":${at - t0}}`,
            },
          }),
        );
      await ask(t0);
      expect(await purge(t0 + day)).toEqual(nothing);
      expect(await ask(t0 + day)).toMatchObject({ kind: "replayed" });
      expect(await ask(t0 + day + 1)).toMatchObject({ kind: "accepted" }); // expired, and accepted again
      expect(await purge(t0 + day + 1)).toEqual(nothing);
      expect(await ask(t0 + 2 * day + 1)).toMatchObject({ kind: "replayed", body: '{"at":86400001}' });
      expect(await purge(t0 + 2 * day + 2)).toEqual({ ...nothing, idempotency: 1 });
      expect(await store.idempotent(account, false, "k", 0)).toBeNull();
    });

    test("a call is a piece: no more than its limit, and more to come until all is done", async () => {
      const jobs = await Promise.all(
        Array.from({ length: 60 }, (_, i) => sendOne(t0, { to: [`${i}@x.test`] })),
      );
      await Promise.all(jobs.map((job) => settle(job, t0)));
      const late = t0 + 90 * day;
      let calls = 0;
      for (let more = true; more; calls++) {
        const purged = await piece(late, kept, 40);
        // A quarter of the limit each; one message with its recipient, attempt and page of content weighs five.
        expect(purged.content).toBeLessThanOrEqual(6);
        expect(purged.events).toBeLessThanOrEqual(3);
        ({ more } = purged);
      }
      expect(calls).toBeGreaterThanOrEqual(20);
      expect((await store.listMessages(account, {}, page)).rows).toEqual([]);
      expect((await store.listEvents(account, {}, page)).rows).toEqual([]);
      expect(await piece(late, kept, 40)).toEqual({ ...nothing, more: false });
    });

    test("what was made while a clock was years ahead delays no other, and a clock that went back removes nothing", async () => {
      const ahead = t0 + 3650 * day;
      const wrong = await sendOne(ahead);
      await settle(wrong, ahead);
      const right = await sendOne(t0);
      await settle(right, t0);
      expect(await purge(t0 - 25 * hour)).toEqual(nothing);
      expect(await purge(t0 + 3 * day)).toEqual({ ...nothing, content: 1 });
      expect(await shown(right)).toMatchObject({ content: null });
      expect(await shown(wrong)).toMatchObject({ content: { kind: "inline" } });
    });

    test("whatever happens in whatever order, nothing unsent is removed, nothing too early, and in the end all that is final", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), (steps) => history(steps)),
        { numRuns: 40 },
      );
    });

    /** Runs a history against the store and a model of it, from where the last one ended. */
    const history = async (steps: Step[]): Promise<void> => {
      let now = t0;
      const mails: { id: string; waiting: Job[]; finalAt: number; contentFrom: number; from: number }[] = [];
      const check = async (): Promise<void> => {
        for (const mail of mails) {
          const record = await store.message(account, mail.id);
          const unsent = mail.waiting.length > 0;
          if (unsent || mail.finalAt > mail.from) expect(record?.recipients).toBeDefined();
          if (unsent || mail.finalAt > Math.max(mail.from, mail.contentFrom))
            expect(
              await readAll(store.openContent(record?.content ?? { kind: "inline", id: 0, sizeBytes: 0 })),
            ).toHaveLength(21);
        }
      };
      for (const { kind, pick, ms, limit } of steps) {
        const mail = mails[pick % Math.max(1, mails.length)];
        const job = mail?.waiting[pick % Math.max(1, mail.waiting.length)];
        if (kind === "send") {
          const to = Array.from({ length: 1 + (pick % 3) }, (_, i) => `r${i}@x.test`);
          const jobs = await send(now, { to });
          mails.push({ id: jobs[0]?.message.id ?? "", waiting: jobs, finalAt: 0, contentFrom: 0, from: 0 });
        } else if (kind === "wait") now += ms;
        else if (kind === "defer" && job) {
          await settle(job, now, { outcome: "deferred" });
          const claim = { owner, queueName: "x.test", limit: 100, now: now + minute };
          const { jobs } = await store.claimDue(claim);
          const claimed = new Map(jobs.map((each) => [each.key, each]));
          for (const each of mails) each.waiting = each.waiting.map((old) => claimed.get(old.key) ?? old);
        } else if (kind === "settle" && mail && job) {
          await settle(job, now, { outcome: pick % 2 === 0 ? "delivered" : "bounced" });
          mail.waiting = mail.waiting.filter((other) => other !== job);
          mail.finalAt = now;
        } else if (kind === "purge") {
          const retention = { contentMs: ms, messagesMs: ms * 3, eventsMs: ms, auditMs: ms };
          if (pick % 2 === 0) await purge(now, retention, limit);
          else await piece(now, retention, limit);
          for (const each of mails) {
            each.contentFrom = Math.max(each.contentFrom, now - ms);
            each.from = Math.max(each.from, now - ms * 3);
          }
          await check();
        }
      }
      const waiting = new Set(mails.filter((mail) => mail.waiting.length > 0).map(({ id }) => id));
      for (const days of [100, 200, 300]) await purge(now + days * day);
      for (const { id } of mails) expect((await store.message(account, id)) !== null).toBe(waiting.has(id));
      t0 = now + 301 * day;
    };
  });
}

interface Step {
  kind: "send" | "wait" | "defer" | "settle" | "purge";
  pick: number;
  ms: number;
  limit: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("send", "send", "wait", "defer", "settle", "settle", "purge"),
  pick: fc.nat(99),
  ms: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 5 * minute }), fc.integer({ min: 1, max: 4 * day })),
  limit: fc.integer({ min: 1, max: 200 }),
});

function requestOf(now: number, retention: typeof kept, limit: number): PurgeRequest {
  return {
    now,
    contentBefore: now - retention.contentMs,
    messagesBefore: now - retention.messagesMs,
    eventsBefore: now - retention.eventsMs,
    auditBefore: now - retention.auditMs,
    limit,
  };
}

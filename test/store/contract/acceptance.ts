// Messages as they are accepted. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Job } from "../../../src/model/queued-recipient.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { accept, minute, newMessage, newSuppression, settlementOf } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function acceptanceContract(open: OpenStore): void {
  describe("acceptance", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { freshDomain, one, stateOf } = beforeAllOpened(
      open,
      (opened) => ({ store, clock, account } = opened),
    );

    test("a message is shown as it was accepted", async () => {
      const at = clock.now();
      const input = newMessage({
        accountKey: account,
        to: ["Ann@ok.test", "bob@ok.test"],
        at,
        tags: ["x", "y"],
      });
      expect(await store.acceptMessage(input)).toEqual({ kind: "accepted", jobs: [] });
      const shown = await store.message(account, input.message.id);
      expect(shown).toMatchObject({
        id: input.message.id,
        test: false,
        from: "info@shop.example",
        subject: "Your order",
        tags: ["x", "y"],
        metadata: { order: "17" },
        source: "api",
        sizeBytes: 21,
        createdAt: at,
        sendAt: null,
        headerLength: 42,
        bodyHash: new Uint8Array(32).fill(7),
      });
      expect(
        shown?.recipients.map(({ to, state, attempts, nextAttemptAt }) => ({
          to,
          state,
          attempts,
          nextAttemptAt,
        })),
      ).toEqual([
        { to: "Ann@ok.test", state: "queued", attempts: 0, nextAttemptAt: at },
        { to: "bob@ok.test", state: "queued", attempts: 0, nextAttemptAt: at },
      ]);
      expect(await store.message(account + 1, input.message.id)).toBeNull();
    });

    test("the caller's buffers are left as they are", async () => {
      const content = Buffer.from("small buffers share a pool");
      const input = newMessage({
        accountKey: account,
        at: clock.now(),
        content: { kind: "inline", bytes: content },
      });
      await store.acceptMessage(input);
      expect(content.toString()).toBe("small buffers share a pool");
      expect(input.message.bodyHash.byteLength).toBe(32);
    });

    test("recipients that are leased at once come back as jobs of their first attempt", async () => {
      const at = clock.now();
      const input = newMessage({ accountKey: account, to: ["a@l.test", "b@l.test"], at, lease: true });
      const jobs = await accept(store, input);
      expect(
        jobs.map(({ to, attempt, queueName, leaseUntil }) => ({ to, attempt, queueName, leaseUntil })),
      ).toEqual([
        { to: "a@l.test", attempt: 1, queueName: "l.test", leaseUntil: at + 10 * minute },
        { to: "b@l.test", attempt: 1, queueName: "l.test", leaseUntil: at + 10 * minute },
      ]);
      expect(jobs[0]?.message).toBe(jobs[1]?.message);
      expect(jobs[0]?.message).toMatchObject({
        id: input.message.id,
        eightBit: true,
        tagsJson: '["orders"]',
      });
      expect(await stateOf(jobs[0] as Job)).toBe("sending");
      for (const job of jobs) await store.settle(settlementOf(job, at));
    });

    test("a suppressed recipient keeps the whole message out, until the suppression expires", async () => {
      const at = clock.now();
      await store.addSuppressions([newSuppression(account, "Bad@sup.test", { expiresAt: at + minute })], at);
      const refused = await store.acceptMessage(
        newMessage({ accountKey: account, to: ["good@sup.test", "bad@SUP.test"], at }),
      );
      expect(refused).toMatchObject({
        kind: "suppressed",
        entries: [{ email: "Bad@sup.test", reason: "manual" }],
      });
      const { rows } = await store.listMessages(account, { to: "good@sup.test" }, { limit: 5, cursor: null });
      expect(rows).toEqual([]);
      const later = newMessage({ accountKey: account, to: ["bad@sup.test"], at: at + minute, lease: true });
      const jobs = await accept(store, later);
      for (const job of jobs) await store.settle(settlementOf(job, at));
    });

    test("fifty racing requests with one idempotency key are one message and one answer", async () => {
      const at = clock.now();
      const fingerprint = new Uint8Array(32).fill(1);
      const messages = Array.from({ length: 50 }, (_, i) =>
        newMessage({
          accountKey: account,
          to: ["race@race.test"],
          at,
          lease: true,
          idempotency: { key: "race", fingerprint, status: 202, body: `{"n":${i}}` },
        }),
      );
      const results = await Promise.all(messages.map((message) => store.acceptMessage(message)));
      expect(results.filter(({ kind }) => kind === "accepted")).toHaveLength(1);
      const replays = results.filter((result) => result.kind === "replayed");
      expect(new Set(replays.map(({ body }) => body)).size).toBe(1);
      expect(replays).toHaveLength(49);
      const { rows } = await store.listMessages(
        account,
        { to: "race@race.test" },
        { limit: 5, cursor: null },
      );
      expect(rows).toHaveLength(1);
    });

    test("a batch is kept with its answer as a whole, or not at all, and refusals say which message", async () => {
      const at = clock.now();
      await store.addSuppressions([newSuppression(account, "gone@batch.test")], at);
      const to = (...names: string[]) =>
        names.map((name) => newMessage({ accountKey: account, to: [`${name}@batch.test`], at, lease: true }));
      const answer = (fill: number) => ({
        accountKey: account,
        test: false,
        at,
        key: "batch",
        fingerprint: new Uint8Array(32).fill(fill),
        status: 200,
        body: `{"n":${fill}}`,
      });
      expect(await store.acceptMessages(to("one", "gone", "two"), answer(1))).toMatchObject({
        kind: "refused",
        refusals: [null, { kind: "suppressed", entries: [{ canonical: "gone@batch.test" }] }, null],
      });
      expect(await store.idempotent(account, false, "batch", at)).toBeNull();
      const kept = async (name: string) =>
        (await store.listMessages(account, { to: `${name}@batch.test` }, { limit: 5, cursor: null })).rows
          .length;
      expect(await kept("one")).toBe(0);

      const taken = await store.acceptMessages(to("one", "two"), answer(2));
      if (taken.kind !== "accepted") throw new Error(taken.kind);
      expect(taken.jobs.map((jobs) => jobs.map((job) => job.to))).toEqual([
        ["one@batch.test"],
        ["two@batch.test"],
      ]);
      expect(await store.acceptMessages(to("one", "two"), answer(2))).toEqual({
        kind: "replayed",
        status: 200,
        body: '{"n":2}',
      });
      expect(await store.acceptMessages(to("one"), answer(3))).toEqual({ kind: "idempotency_conflict" });
      expect([await kept("one"), await kept("two")]).toEqual([1, 1]);
      for (const job of taken.jobs.flat()) await store.settle(settlementOf(job, at));
    });

    test("an answer without any message is kept too, and is not taken for a message's", async () => {
      const at = clock.now();
      const fingerprint = new Uint8Array(32).fill(9);
      const keys = ["bare-1", "bare-2"];
      for (const key of keys)
        expect(
          await store.acceptMessages([], {
            accountKey: account,
            test: false,
            at,
            key,
            fingerprint,
            status: 200,
            body: key,
          }),
        ).toEqual({ kind: "accepted", jobs: [] });
      const message = newMessage({
        accountKey: account,
        to: ["x@bare.test"],
        at,
        idempotency: { key: "bare-3", fingerprint, status: 202, body: "bare-3" },
      });
      await store.acceptMessage(message);
      for (const key of [...keys, "bare-3"])
        expect(await store.idempotent(account, false, key, at)).toMatchObject({ body: key });
    });

    test("a key under another request conflicts for 24 hours; live and test have keys of their own", async () => {
      const at = clock.now();
      const request = (fill: number, when: number) =>
        newMessage({
          accountKey: account,
          to: ["k@key.test"],
          at: when,
          idempotency: {
            key: "k",
            fingerprint: new Uint8Array(32).fill(fill),
            status: 202,
            body: `{"n":${fill}}`,
          },
        });
      const day = 24 * 60 * minute;
      expect(await store.acceptMessage(request(1, at))).toMatchObject({ kind: "accepted" });
      expect(await store.acceptMessage(request(2, at + day))).toEqual({ kind: "idempotency_conflict" });
      const inTest = request(2, at);
      inTest.message.test = true;
      expect(await store.acceptMessage(inTest)).toMatchObject({ kind: "accepted" });
      expect(await store.idempotent(account, false, "k", at)).toMatchObject({
        status: 202,
        body: '{"n":1}',
      });
      expect(await store.idempotent(account, false, "k", at + 1)).toBeNull();
      expect(await store.acceptMessage(request(2, at + day + 1))).toMatchObject({ kind: "accepted" });
    });

    test("the queue's limit counts what is unsent, and lets in again as it drains", async () => {
      const at = clock.now();
      const job = await one();
      const { scheduled, queued, deferred, sending } = await store.queueCounts();
      const maxQueue = scheduled + queued + deferred + sending;
      const queueName = freshDomain();
      const more = (seconds: number) =>
        newMessage({
          accountKey: account,
          to: [`x@${queueName}`],
          at: at + seconds * 1000,
          maxQueue,
          lease: true,
        });
      expect(await store.acceptMessage(more(0))).toEqual({ kind: "queue_full" });
      await store.settle(settlementOf(job, at));
      expect(await store.acceptMessage(more(0)), "not within the same second").toEqual({
        kind: "queue_full",
      });
      const jobs = await accept(store, more(1));
      expect(await store.acceptMessage(more(1))).toEqual({ kind: "queue_full" });
      for (const each of jobs) await store.settle(settlementOf(each, at));
    });
  });
}

// The queue: claims, leases, what goes back. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { accept, beginBoot, mint, minute, newMessage, owner, settlementOf } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function queueContract(open: OpenStore): void {
  describe("queue", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { freshDomain, one, stateOf } = beforeAllOpened(
      open,
      (opened) => ({ store, clock, account } = opened),
    );

    test("a scheduled queue gives what is due, oldest first, with the attempt already counted", async () => {
      const queueName = freshDomain();
      const at = clock.now();
      for (const [name, delay] of [
        ["c", 3],
        ["a", 1],
        ["b", 2],
        ["later", 5000],
      ] as const) {
        await accept(
          store,
          newMessage({ accountKey: account, to: [`${name}@${queueName}`], at: at + delay }),
        );
      }
      const claim = { owner, queueName, limit: 2, now: at + 10 };
      const first = await store.claimDue(claim);
      expect(first.jobs.map(({ to, attempt }) => [to, attempt])).toEqual([
        [`a@${queueName}`, 1],
        [`b@${queueName}`, 1],
      ]);
      expect(first.nextDueAt).toBe(at + 3);
      expect(first.jobs[0]?.message).toMatchObject({
        from: "info@shop.example",
        test: false,
        eightBit: true,
        smtpUtf8: false,
      });
      expect(new Uint8Array(first.jobs[0]?.message.bodyHash ?? [])).toEqual(new Uint8Array(32).fill(7));
      const second = await store.claimDue(claim);
      expect(second.jobs.map(({ to }) => to)).toEqual([`c@${queueName}`]);
      expect(second.nextDueAt).toBe(at + 5000);
      expect((await store.claimDue(claim)).jobs).toEqual([]);
    });

    test("two claims at once never share a recipient", async () => {
      const queueName = freshDomain();
      const at = clock.now();
      const to = Array.from({ length: 20 }, (_, i) => `r${i}@${queueName}`);
      await accept(store, newMessage({ accountKey: account, to, at }));
      const claimants = ["one", "two"];
      for (const name of claimants) await beginBoot(store, name);
      const claims = await Promise.all(
        claimants.map((name) => store.claimDue({ owner: name, queueName, limit: 15, now: at })),
      );
      const keys = claims.flatMap(({ jobs }) => jobs.map(({ key }) => key));
      expect(keys).toHaveLength(20);
      expect(new Set(keys).size).toBe(20);
    });

    test("scheduled queues come in order, each once, with its earliest time; a leased recipient is in none", async () => {
      const at = clock.now();
      for (const [to, delay] of [
        ["x@queue-b.test", 9],
        ["y@queue-b.test", 4],
        ["x@queue-a.test", 7],
        ["x@queue-c.test", 1],
      ] as const) {
        await accept(store, newMessage({ accountKey: account, to: [to], at: at + delay }));
      }
      await accept(store, newMessage({ accountKey: account, to: ["z@queue-a1.test"], at, lease: true }));
      expect(await store.scheduledQueues("queue-", 2)).toEqual([
        { queueName: "queue-a.test", dueAt: at + 7 },
        { queueName: "queue-b.test", dueAt: at + 4 },
      ]);
      expect((await store.scheduledQueues("queue-b.test", 1))[0]).toEqual({
        queueName: "queue-c.test",
        dueAt: at + 1,
      });
      const all = await store.scheduledQueues(null, 10_000);
      expect(all.length).toBe(new Set(all.map(({ queueName }) => queueName)).size);
    });

    test("what was not tried goes back with its attempt uncounted", async () => {
      const queueName = freshDomain();
      const at = clock.now();
      await accept(store, newMessage({ accountKey: account, to: [`a@${queueName}`], at }));
      const claim = { owner, queueName, limit: 1, now: at };
      const { jobs } = await store.claimDue(claim);
      await store.release(
        "somebody-else",
        jobs.map(({ key }) => key),
        at,
      );
      expect((await store.claimDue(claim)).jobs).toEqual([]);
      await store.release(
        owner,
        jobs.map(({ key }) => key),
        at + 5,
      );
      expect((await store.claimDue(claim)).nextDueAt).toBe(at + 5);
      expect((await store.claimDue({ ...claim, now: at + 5 })).jobs[0]?.attempt).toBe(1);
    });

    test("what an ended boot of the node held is taken back, the attempt counted, and nothing of this boot", async () => {
      const queueName = freshDomain();
      const at = clock.now();
      await accept(store, newMessage({ accountKey: account, to: [`a@${queueName}`, `b@${queueName}`], at }));
      const lease = async (who: string) =>
        (await store.claimDue({ owner: who, queueName, limit: 1, now: at })).jobs[0];
      await beginBoot(store, "dead", queueName);
      await beginBoot(store, "boot-2", queueName);
      await lease("dead");
      const held = await lease("boot-2");
      expect(await store.takeBackLeases("boot-2", at + 2, "~")).toBe(0);
      await store.endBoot("dead", at + 2);
      expect(await store.takeBackLeases("boot-2", at + 2, "~")).toBe(1);
      const { jobs } = await store.claimDue({ owner: "boot-2", queueName, limit: 9, now: at + 2 });
      expect(jobs.map(({ to, attempt }) => [to, attempt])).toEqual([[`a@${queueName}`, 2]]);
      expect(held?.to).toBe(`b@${queueName}`);
    });

    test("an attempt that the end of the program cut off is listed as interrupted, and as ambiguous where mail leaves", async () => {
      const at = clock.now();
      await beginBoot(store, "boot-a");
      await beginBoot(store, "boot-b");
      const accepted = async (queueName: string, sendAt: number | null = null) => {
        const input = newMessage({ accountKey: account, to: [`a@${queueName}`], at, sendAt, queueName });
        await accept(store, input);
        return { id: input.message.id, queueName };
      };
      const lease = (queueName: string, now: number) =>
        store.claimDue({ owner: "boot-a", queueName, limit: 1, now });
      const [sent, waiting] = [await accepted(freshDomain()), await accepted(freshDomain())];
      const local = await accepted("local scheduled queue");
      for (const { queueName } of [sent, local])
        expect((await lease(queueName, at + 7)).jobs).toHaveLength(1);
      await store.endBoot("boot-a", at + 8);
      expect(await store.takeBackLeases("boot-b", at + 900, "local scheduled queue")).toBe(2);
      const [attempt, ...more] = await store.attempts(account, sent.id);
      expect(more).toEqual([]);
      expect(attempt).toEqual({
        id: expect.stringMatching(/^att_/),
        recipient: `a@${sent.queueName}`,
        attempt: 1,
        startedAt: at + 7,
        endedAt: at + 900,
        sendingIp: null,
        mx: [],
        host: null,
        address: null,
        tls: null,
        outcome: "interrupted",
        ambiguous: true,
        smtpCode: null,
        smtpStatus: null,
        smtpResponse: expect.stringContaining("[local] "),
        dialogue: [],
        nextAttemptAt: at + 900,
        decidedBy: "restart",
      });
      expect(await store.attempts(account, local.id)).toMatchObject([
        { outcome: "interrupted", ambiguous: false },
      ]);
      expect(await store.attempts(account, waiting.id)).toEqual([]);
      expect((await store.message(account, sent.id))?.recipients).toMatchObject([
        {
          state: "queued",
          attempts: 1,
          lastAttemptAt: at + 7,
          nextAttemptAt: at + 900,
          smtpResponse: null,
        },
      ]);
    });

    test("a recipient's attempts are listed by their numbers, though the clock was set back between them", async () => {
      const at = clock.now();
      const queueName = freshDomain();
      const input = newMessage({ accountKey: account, to: [`a@${queueName}`], at, queueName });
      await accept(store, input);
      await beginBoot(store, "back-0");
      for (const [n, ended] of [at + 3 * minute, at + 2 * minute].entries()) {
        const claim = { owner: `back-${n}`, queueName, limit: 1, now: at + 9 * minute };
        expect((await store.claimDue(claim)).jobs).toHaveLength(1);
        await store.endBoot(`back-${n}`, ended);
        await beginBoot(store, `back-${n + 1}`);
        expect(await store.takeBackLeases(`back-${n + 1}`, ended, "~")).toBe(1);
      }
      const attempts = await store.attempts(account, input.message.id);
      expect(attempts.map(({ attempt, endedAt }) => [attempt, endedAt - at])).toEqual([
        [1, 3 * minute],
        [2, 2 * minute],
      ]);
    });

    test("a message for later is scheduled, then queued by time alone, and can be canceled once", async () => {
      const queueName = freshDomain();
      const at = clock.now();
      const input = newMessage({ accountKey: account, to: [`a@${queueName}`], at, sendAt: at + 10 * minute });
      await accept(store, input);
      const show = async () => (await store.message(account, input.message.id))?.recipients[0];
      expect(await show()).toMatchObject({ state: "scheduled", nextAttemptAt: at + 10 * minute });
      expect((await store.claimDue({ owner, queueName, limit: 1, now: at })).jobs).toEqual([]);
      const before = await store.queueCounts();
      clock.jump(10 * minute);
      expect(await show()).toMatchObject({ state: "queued" });
      expect((await store.queueCounts()).scheduled).toBe(before.scheduled - 1);
      expect(await store.cancelMessage(account, input.message.id, at)).toMatchObject({ canceled: 1 });
      expect(await store.cancelMessage(account, input.message.id, at)).toMatchObject({ canceled: 0 });
      expect(await store.cancelMessage(account, mint("msg", at), at)).toBeNull();
      expect(await show()).toMatchObject({ state: "canceled", nextAttemptAt: null });
      expect((await store.claimDue({ owner, queueName, limit: 1, now: at + 99 * minute })).jobs).toEqual([]);
    });

    test("a recipient that is being sent is not canceled", async () => {
      const job = await one();
      expect(await store.cancelMessage(account, job.message.id, clock.now())).toMatchObject({
        canceled: 0,
      });
      expect(await stateOf(job)).toBe("sending");
    });

    test("counts and the oldest due time follow every step", async () => {
      const queueName = freshDomain();
      const at = clock.now();
      const before = await store.queueCounts();
      await accept(store, newMessage({ accountKey: account, to: [`a@${queueName}`], at: 5 }));
      expect(await store.queueCounts()).toMatchObject({ queued: before.queued + 1, oldestDueAt: 5 });
      const { jobs } = await store.claimDue({ owner, queueName, limit: 1, now: at });
      expect(await store.queueCounts()).toMatchObject({
        queued: before.queued,
        sending: before.sending + 1,
      });
      for (const job of jobs) await store.settle(settlementOf(job, at, { outcome: "deferred" }));
      expect(await store.queueCounts()).toMatchObject({
        sending: before.sending,
        deferred: before.deferred + 1,
      });
    });
  });
}

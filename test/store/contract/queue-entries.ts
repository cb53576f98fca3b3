// The queue as an operator looks at it and acts on it: lists, counts, retry, hold, release, delete, fail.
import { describe, expect, test } from "vitest";
import type { QueueFilter, QueueGroup, QueueGrouping, QueuePart } from "../../../src/model/queue-entry.ts";
import { queueParts } from "../../../src/model/queue-entry.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { accept, minute, newEvent, newMessage, owner, settlementOf } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function queueEntryContract(open: OpenStore): void {
  describe("queue entries", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { freshDomain } = beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    const queueOf = (domain: string, pool = "default"): string => `${account}.${pool}/${domain}`;
    /** `count` recipients of a fresh domain, one message each; `lease`: in an attempt's hands. */
    const put = async (count: number, domain: string, lease = false, sendAt: number | null = null) => {
      const jobs = [];
      for (let n = 0; n < count; n++) {
        const wishes = { accountKey: account, to: [`r${n}@${domain}`], queueName: queueOf(domain) };
        jobs.push(...(await accept(store, newMessage({ ...wishes, at: clock.now(), lease, sendAt }))));
      }
      return jobs;
    };
    /** Recipients of the domain that were tried once and wait a minute. */
    const deferred = async (count: number, domain: string): Promise<void> => {
      for (const job of await put(count, domain, true))
        await store.settle({
          ...settlementOf(job, clock.now(), { outcome: "deferred", nextAttemptAt: clock.now() + minute }),
          provider: "google",
          smtpCode: 451,
          smtpStatus: "4.7.1",
        });
    };
    const list = async (filter: QueueFilter, parts: readonly QueuePart[] = queueParts, limit = 50) =>
      (await store.listQueue(account, filter, parts, { limit, cursor: null })).rows;
    const keysOf = async (filter: QueueFilter) => (await list(filter)).map(({ key }) => key);
    const statesOf = async (domain: string) => (await list({ domain })).map(({ status }) => status);
    const counted = async (by: QueueGrouping, filter: QueueFilter): Promise<QueueGroup[]> => {
      const groups: QueueGroup[] = [];
      for (let cursor: string | null = null; ;) {
        const found = await store.countQueue(account, by, filter, queueParts, cursor);
        groups.push(...found.groups);
        cursor = found.next;
        if (cursor === null) return groups;
      }
    };

    test("a list shows why each recipient is in the queue: what waits, what is held, what is being sent", async () => {
      const domain = freshDomain();
      await deferred(1, domain);
      await put(1, domain, false, clock.now() + 10 * minute);
      await put(1, domain, true);
      const rows = await list({ domain });
      expect(rows.map(({ status, attempts, provider }) => [status, attempts, provider])).toEqual([
        ["deferred", 1, "google"],
        ["scheduled", 0, null],
        ["sending", 1, null],
      ]);
      expect(rows[0]).toMatchObject({
        to: `r0@${domain}`,
        domain,
        ipPool: "default",
        smtpCode: 451,
        heldBy: null,
        nextAttemptAt: clock.now() + minute,
      });
    });

    test("pages of any length give every recipient once", async () => {
      const domain = freshDomain();
      await put(4, domain);
      await put(3, domain, true);
      await store.holdQueued(account, (await keysOf({ domain })).slice(0, 2), clock.now());
      const seen: number[] = [];
      for (let cursor: string | null = null; ;) {
        const page = await store.listQueue(account, { domain }, queueParts, { limit: 2, cursor });
        seen.push(...page.rows.map(({ key }) => key));
        cursor = page.next;
        if (cursor === null) break;
      }
      expect(seen).toHaveLength(7);
      expect(new Set(seen).size).toBe(7);
    });

    test("filters: patterns, provider, code, status, an address, the domain beside one that begins like it", async () => {
      const domain = freshDomain();
      await deferred(2, domain);
      await put(2, `${domain}.more`);
      const none = ["7*", "42?"].map((code) => list({ domain, code }));
      expect((await Promise.all(none)).flat()).toEqual([]);
      expect(await list({ domain, code: "45*", provider: "goo*", enhanced: "4.7.*" })).toHaveLength(2);
      expect(await list({ domain: `${domain}*` })).toHaveLength(4);
      expect(await list({ domain })).toHaveLength(2);
      expect(await list({ domain, pool: "default" })).toHaveLength(2);
      expect(await list({ domain, pool: "other" })).toEqual([]);
      expect(await list({ to: `r1@${domain}` })).toHaveLength(1);
      expect(await list({ domain, status: "deferred", tag: "orders", fromLike: "info@*" })).toHaveLength(2);
      expect(await list({ domain, status: "queued" })).toEqual([]);
    });

    test("counts by each of the groupings", async () => {
      const domain = freshDomain();
      await deferred(2, domain);
      await put(1, domain);
      await store.holdQueued(account, (await keysOf({ domain, status: "queued" })).slice(0, 1), clock.now());
      const shown = async (by: QueueGrouping) =>
        (await counted(by, { domain })).map(({ value, recipients, held }) => [value, recipients, held]);
      expect(await shown("domain")).toEqual([
        [domain, 2, 0],
        [domain, 1, 1],
      ]);
      expect(await shown("pool")).toEqual([
        ["default", 2, 0],
        ["default", 1, 1],
      ]);
      expect(await shown("provider")).toEqual([
        ["google", 2, 0],
        [null, 1, 1],
      ]);
      expect((await shown("error"))[0]).toEqual(["451 4.7.1", 2, 0]);
      expect((await shown("status")).map(([value]) => value)).toEqual(["deferred", "held"]);
    });

    test("a retry makes deferred recipients due now and leaves what its sender scheduled for later", async () => {
      const domain = freshDomain();
      await deferred(2, domain);
      await put(1, domain, false, clock.now() + 10 * minute);
      const result = await store.retryQueued(account, await keysOf({ domain }), clock.now());
      expect(result).toEqual({
        changed: 2,
        scheduledQueues: [{ queueName: queueOf(domain), dueAt: clock.now() }],
      });
      const claim = { owner, queueName: queueOf(domain), limit: 10, now: clock.now() };
      expect((await store.claimDue(claim)).jobs).toHaveLength(2);
    });

    test("what the operator holds is claimed by nothing until its release, and is due by its old time then", async () => {
      const domain = freshDomain();
      await deferred(1, domain);
      await put(1, domain);
      const at = clock.now();
      const keys = await keysOf({ domain });
      expect(await store.holdQueued(account, keys, at)).toBe(2);
      expect(await store.holdQueued(account, keys, at)).toBe(0);
      await clock.advance(10 * minute);
      const claim = { owner, queueName: queueOf(domain), limit: 10, now: clock.now() };
      expect((await store.claimDue(claim)).jobs).toEqual([]);
      expect((await list({ domain })).map(({ status, heldBy }) => [status, heldBy])).toEqual([
        ["held", "operator"],
        ["held", "operator"],
      ]);
      expect(await store.accountsOnHold()).toEqual([]);
      expect((await store.releaseHeld(account, clock.now(), 10)).released).toBe(0);
      const released = await store.releaseQueued(account, keys, clock.now());
      expect(released).toMatchObject({ changed: 2, scheduledQueues: [{ dueAt: at }] });
      const { jobs } = await store.claimDue({ ...claim, limit: 10 });
      expect(jobs.map(({ message }) => message.queuedAt - at)).toEqual([10 * minute, 9 * minute]);
    });

    test("a held recipient that is released before its time waits for that", async () => {
      const domain = freshDomain();
      await deferred(1, domain);
      const [before] = await list({ domain });
      const keys = await keysOf({ domain });
      await store.holdQueued(account, keys, clock.now());
      await clock.advance(1000);
      await store.releaseQueued(account, keys, clock.now());
      expect((await list({ domain }))[0]).toMatchObject({ nextAttemptAt: before?.nextAttemptAt });
    });

    test("a delete cancels what waits and what is held, and touches nothing that is being sent", async () => {
      const domain = freshDomain();
      await put(2, domain);
      await put(1, domain, true);
      const keys = await keysOf({ domain });
      await store.holdQueued(account, keys.slice(0, 1), clock.now());
      expect(await store.deleteQueued(account, keys, clock.now())).toBe(2);
      expect(await statesOf(domain)).toEqual(["sending"]);
    });

    test("a failed recipient has bounced, with its event, once; another account's row id changes nothing", async () => {
      const domain = freshDomain();
      await put(1, domain);
      const [job] = await store.queuedJobs(account, await keysOf({ domain }));
      expect(job).toMatchObject({ to: `r0@${domain}`, attempt: 0, message: { from: "info@shop.example" } });
      const at = clock.now();
      const event = newEvent({
        accountKey: account,
        receivedAt: at,
        type: "message.bounced",
        messageKey: job?.message.key ?? 0,
      });
      const one = {
        recipientKey: job?.key ?? 0,
        accountKey: account,
        at,
        smtpCode: 450,
        smtpStatus: "4.3.0",
        smtpResponse: "[local] failed",
        event,
      };
      expect(await store.failQueued([{ ...one, accountKey: account + 1 }])).toBe(0);
      expect(await store.failQueued([one])).toBe(1);
      expect(await store.failQueued([one])).toBe(0);
      const record = await store.message(account, job?.message.id ?? "");
      expect(record?.recipients[0]).toMatchObject({ state: "bounced", smtpResponse: "[local] failed" });
      expect(await store.queuedJobs(account + 1, [one.recipientKey])).toEqual([]);
    });
  });
}

// What any Store must do, whatever engine is behind it: only the interface is used. An engine's own test
// calls storeContract with a way to open an empty store. Over 300 lines because the interface is: a section a
// noun of it.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import type { NewApiKey } from "../../src/model/api-key.ts";
import type { SenderDomain } from "../../src/model/domain.ts";
import type { Page } from "../../src/model/page.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import { ContentGone } from "../../src/store/store.ts";
import type { Store } from "../../src/store/store.ts";
import type { ManualClock } from "../support/clock.ts";
import {
  accept,
  inChunks,
  mint,
  minute,
  newEndpoint,
  newEvent,
  newMessage,
  newSuppression,
  owner,
  readAll,
  settlementOf,
  took,
} from "./fixtures.ts";
import { asAdded } from "../support/domains.ts";

export interface OpenedStore {
  store: Store;
  clock: ManualClock;
  close(): Promise<void>;
}

export function storeContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`the store's contract, ${name}`, () => {
    let opened: OpenedStore;
    let store: Store;
    let clock: ManualClock;
    let account: number;
    /** A domain that no other test uses. */
    let count = 0;
    const freshDomain = (): string => `d${++count}.test`;

    beforeAll(async () => {
      opened = await open();
      ({ store, clock } = opened);
      const first = await store.accountByName("default");
      account = first?.key ?? 0;
    });
    afterAll(() => opened.close());

    const one = async (to = `ann@${freshDomain()}`): Promise<Job> => {
      const [job] = await accept(
        store,
        newMessage({ accountKey: account, to: [to], at: clock.now(), lease: true }),
      );
      if (!job) throw new Error("no job");
      return job;
    };
    const stateOf = async (job: Job): Promise<string | undefined> =>
      (await store.message(account, job.message.id))?.recipients[0]?.state;

    describe("access", () => {
      const newKey = (): NewApiKey => ({
        rates: {},
        dailyQuota: null,
        id: mint("key", clock.now()),
        accountKey: account,
        name: "shop",
        test: false,
        scope: "send",
        hash: crypto.getRandomValues(new Uint8Array(32)),
        hint: "abcd",
        allowIps: ["192.0.2.0/24"],
        status: "active",
        createdAt: clock.now(),
        expiresAt: null,
      });

      test("the account default is there from the first start, by name, key and id", async () => {
        const found = await store.accountByName("default");
        expect(found).toMatchObject({
          name: "default",
          status: "active",
          id: expect.stringMatching(/^acct_/),
        });
        expect(await store.accountByKey(found?.key ?? 0)).toEqual(found);
        expect(await store.accountById(found?.id ?? "")).toEqual(found);
        expect(await store.accountByName("nobody")).toBeNull();
      });

      test("a key is found by its hash as it was made", async () => {
        const { hash, ...wanted } = newKey();
        const made = await store.createApiKey({ ...wanted, hash });
        expect(made).not.toHaveProperty("hash");
        expect(await store.apiKeyByHash(hash)).toEqual(made);
        expect(await store.apiKeyByHash(new Uint8Array(32))).toBeNull();
      });

      test("a revoked key never becomes active again", async () => {
        const made = await store.createApiKey(newKey());
        expect(await store.setApiKeyStatus(account, made.id, "disabled", 5)).toMatchObject({
          status: "disabled",
          revokedAt: null,
        });
        expect(await store.setApiKeyStatus(account, made.id, "revoked", 6)).toMatchObject({
          status: "revoked",
          revokedAt: 6,
        });
        expect(await store.setApiKeyStatus(account, made.id, "active", 7)).toMatchObject({
          status: "revoked",
          revokedAt: 6,
        });
        expect(await store.setApiKeyStatus(account + 1, made.id, "active", 7)).toBeNull();
      });

      test("a credential belongs to an account and to live or test", async () => {
        const hash = crypto.getRandomValues(new Uint8Array(32));
        const { key } = await store.createSmtpCredential({
          id: mint("cred", 1),
          accountKey: account,
          name: "printer",
          test: true,
          hash,
          hint: "wxyz",
          status: "active",
          createdAt: 1,
        });
        expect(await store.smtpCredentialByHash(account, true, hash)).toMatchObject({
          key,
          name: "printer",
          test: true,
        });
        expect(await store.smtpCredentialByHash(account, false, hash)).toBeNull();
        expect(await store.smtpCredentialByHash(account + 1, true, hash)).toBeNull();
      });

      test("uses are noted and never go back", async () => {
        const wanted = newKey();
        const made = await store.createApiKey(wanted);
        await store.noteUse({ apiKeys: [made.key], smtpCredentials: [], at: 900 });
        await store.noteUse({ apiKeys: [made.key], smtpCredentials: [], at: 800 });
        expect(await store.apiKeyByHash(wanted.hash)).toMatchObject({ lastUsedAt: 900 });
      });
    });

    describe("domains", () => {
      const newDomain = (name: string, wishes: Partial<SenderDomain> = {}): Omit<SenderDomain, "key"> => ({
        id: mint("dom", clock.now()),
        accountKey: account,
        name,
        status: "pending",
        returnPathDomain: `rp.${name}`,
        records: [],
        dkimKeys: [
          { selector: "s1", algorithm: "rsa-sha256", privatePem: "pem", publicKey: "p", status: "active" },
        ],
        createdAt: 1,
        updatedAt: 1,
        verifiedAt: null,
        checkedAt: null,
        failingSince: null,
        ...asAdded,
        ...wishes,
      });

      test("a domain stands once in an account, and is found by name", async () => {
        const name = freshDomain();
        const made = await store.createDomain(newDomain(name));
        expect(await store.createDomain(newDomain(name))).toBeNull();
        expect(await store.domainByName(account, name)).toEqual(made);
        expect(await store.deleteDomain(account, name)).toBe(true);
        expect(await store.deleteDomain(account, name)).toBe(false);
        expect(await store.domainByName(account, name)).toBeNull();
      });

      test("what should be looked at again: never checked, what waits for the DNS and others by their own age, suspended never", async () => {
        const names = [
          "never",
          "old-pending",
          "new-pending",
          "old-verified",
          "new-verified",
          "suspended",
          "rotating",
        ];
        const rows = [null, 100, 300, 10, 30, 1, 100];
        const states = [
          "pending",
          "pending",
          "pending",
          "verified",
          "verified",
          "suspended",
          "verified",
        ] as const;
        const dkimKeys = [
          { selector: "s2", algorithm: "rsa-sha256", privatePem: "p", publicKey: "p", status: "pending" },
        ] as SenderDomain["dkimKeys"];
        for (const [i, label] of names.entries()) {
          await store.createDomain(
            newDomain(`${label}.check.test`, {
              status: states[i] ?? "pending",
              checkedAt: rows[i] ?? null,
              ...(label === "rotating" ? { dkimKeys } : {}),
            }),
          );
        }
        const due = await store.domainsToCheck(200, 20, 100);
        const seen = due.map((domain) => domain.name).filter((domain) => domain.endsWith(".check.test"));
        expect(seen.sort()).toEqual([
          "never.check.test",
          "old-pending.check.test",
          "old-verified.check.test",
          "rotating.check.test",
        ]);
      });

      test("a domain is saved whole", async () => {
        const made = await store.createDomain(newDomain(freshDomain()));
        if (!made) throw new Error("not made");
        const record = {
          purpose: "spf",
          type: "TXT",
          name: "x",
          value: "v",
          required: true,
          status: "ok",
          found: ["v"],
          issue: null,
        } as const;
        const saved = await store.saveDomain({
          ...made,
          status: "verified",
          records: [{ ...record, found: ["v"] }],
          updatedAt: 9,
          verifiedAt: 9,
          checkedAt: 9,
          returnPathDomain: "other.test",
          trackClicks: true,
          trackingDomain: "t.test",
          allowSubdomains: false,
        });
        expect(saved).toBe(true);
        expect(await store.domainByName(account, made.name)).toMatchObject({
          status: "verified",
          records: [record],
          checkedAt: 9,
          createdAt: 1,
          returnPathDomain: "other.test",
          trackOpens: false,
          trackClicks: true,
          trackingDomain: "t.test",
          allowSubdomains: false,
          revision: 1,
        });
      });

      test("a change that was made of an older state, or of a domain that is gone, writes nothing", async () => {
        const made = await store.createDomain(newDomain(freshDomain()));
        if (!made) throw new Error("not made");
        expect(await store.saveDomain({ ...made, status: "verified" })).toBe(true);
        expect(await store.saveDomain({ ...made, status: "failed" })).toBe(false);
        expect(await store.domainByName(account, made.name)).toMatchObject({ status: "verified" });
        await store.deleteDomain(account, made.name);
        expect(await store.saveDomain({ ...made, revision: 1 })).toBe(false);
        expect(await store.domainByName(account, made.name)).toBeNull();
      });
    });

    describe("acceptance", () => {
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
        expect(jobs.map(({ to, attempt, lane, leaseUntil }) => ({ to, attempt, lane, leaseUntil }))).toEqual([
          { to: "a@l.test", attempt: 1, lane: "l.test", leaseUntil: at + 10 * minute },
          { to: "b@l.test", attempt: 1, lane: "l.test", leaseUntil: at + 10 * minute },
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
        await store.addSuppressions(
          [newSuppression(account, "Bad@sup.test", { expiresAt: at + minute })],
          at,
        );
        const refused = await store.acceptMessage(
          newMessage({ accountKey: account, to: ["good@sup.test", "bad@SUP.test"], at }),
        );
        expect(refused).toMatchObject({
          kind: "suppressed",
          entries: [{ email: "Bad@sup.test", reason: "manual" }],
        });
        const { rows } = await store.listMessages(
          account,
          { to: "good@sup.test" },
          { limit: 5, cursor: null },
        );
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
          names.map((name) =>
            newMessage({ accountKey: account, to: [`${name}@batch.test`], at, lease: true }),
          );
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
        const lane = freshDomain();
        const more = (seconds: number) =>
          newMessage({
            accountKey: account,
            to: [`x@${lane}`],
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

    describe("content", () => {
      test.each([
        ["small", 1000, "inline"],
        ["64 KB", 65_536, "inline"],
        ["a byte more", 65_537, "spool"],
        ["3 MB", 3_000_000, "spool"],
      ])("%s is read back byte for byte, from any offset", async (_label, size, kind) => {
        const bytes = Buffer.alloc(size, "0123456789abcdef");
        const content = await store.putContent(inChunks(bytes, 60_001));
        expect(content.kind).toBe(kind);
        const input = newMessage({ accountKey: account, at: clock.now(), content });
        await accept(store, input);
        const ref = (await store.message(account, input.message.id))?.content;
        if (!ref) throw new Error("no content");
        expect(ref.sizeBytes).toBe(size);
        expect((await readAll(store.openContent(ref))).equals(bytes)).toBe(true);
        expect((await readAll(store.openContent(ref, size - 10))).equals(bytes.subarray(size - 10))).toBe(
          true,
        );
        expect(await readAll(store.openContent(ref, size))).toHaveLength(0);
      });

      test("content that was let go is gone", async () => {
        const content = await store.putContent(inChunks(Buffer.alloc(100_000), 10_000));
        if (content.kind !== "spool") throw new Error("not spooled");
        await store.dropContent(content);
        await store.dropContent(content);
        await expect(readAll(store.openContent(content))).rejects.toBeInstanceOf(ContentGone);
        await expect(
          readAll(store.openContent({ kind: "inline", id: 999_999_999, sizeBytes: 1 })),
        ).rejects.toBeInstanceOf(ContentGone);
      });

      test("what the sender's stream throws is thrown on, and nothing is kept of it", async () => {
        async function* broken(): AsyncIterable<Uint8Array> {
          yield new Uint8Array(200_000);
          throw new TypeError("the client went away");
        }
        await expect(store.putContent(broken())).rejects.toThrow(new TypeError("the client went away"));
      });
    });

    describe("queue", () => {
      test("a lane gives what is due, oldest first, with the attempt already counted", async () => {
        const lane = freshDomain();
        const at = clock.now();
        for (const [name, delay] of [
          ["c", 3],
          ["a", 1],
          ["b", 2],
          ["later", 5000],
        ] as const) {
          await accept(store, newMessage({ accountKey: account, to: [`${name}@${lane}`], at: at + delay }));
        }
        const claim = { owner, lane, limit: 2, now: at + 10, leaseUntil: at + minute };
        const first = await store.claimDue(claim);
        expect(first.jobs.map(({ to, attempt }) => [to, attempt])).toEqual([
          [`a@${lane}`, 1],
          [`b@${lane}`, 1],
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
        expect(second.jobs.map(({ to }) => to)).toEqual([`c@${lane}`]);
        expect(second.nextDueAt).toBe(at + 5000);
        expect((await store.claimDue(claim)).jobs).toEqual([]);
      });

      test("two claims at once never share a recipient", async () => {
        const lane = freshDomain();
        const at = clock.now();
        const to = Array.from({ length: 20 }, (_, i) => `r${i}@${lane}`);
        await accept(store, newMessage({ accountKey: account, to, at }));
        const claims = await Promise.all(
          ["one", "two"].map((name) =>
            store.claimDue({ owner: name, lane, limit: 15, now: at, leaseUntil: at + minute }),
          ),
        );
        const keys = claims.flatMap(({ jobs }) => jobs.map(({ key }) => key));
        expect(keys).toHaveLength(20);
        expect(new Set(keys).size).toBe(20);
      });

      test("lanes come in order, each once, with its earliest time; a leased recipient is in none", async () => {
        const at = clock.now();
        for (const [to, delay] of [
          ["x@lane-b.test", 9],
          ["y@lane-b.test", 4],
          ["x@lane-a.test", 7],
          ["x@lane-c.test", 1],
        ] as const) {
          await accept(store, newMessage({ accountKey: account, to: [to], at: at + delay }));
        }
        await accept(store, newMessage({ accountKey: account, to: ["z@lane-a1.test"], at, lease: true }));
        expect(await store.lanes("lane-", 2)).toEqual([
          { lane: "lane-a.test", dueAt: at + 7 },
          { lane: "lane-b.test", dueAt: at + 4 },
        ]);
        expect((await store.lanes("lane-b.test", 1))[0]).toEqual({ lane: "lane-c.test", dueAt: at + 1 });
        const all = await store.lanes(null, 10_000);
        expect(all.length).toBe(new Set(all.map(({ lane }) => lane)).size);
      });

      test("what was not tried goes back with its attempt uncounted", async () => {
        const lane = freshDomain();
        const at = clock.now();
        await accept(store, newMessage({ accountKey: account, to: [`a@${lane}`], at }));
        const claim = { owner, lane, limit: 1, now: at, leaseUntil: at + minute };
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

      test("leases of another boot and expired ones are taken back, the attempt counted", async () => {
        const lane = freshDomain();
        const at = clock.now();
        await accept(
          store,
          newMessage({ accountKey: account, to: [`a@${lane}`, `b@${lane}`, `c@${lane}`], at }),
        );
        const lease = async (who: string, until: number) =>
          (await store.claimDue({ owner: who, lane, limit: 1, now: at, leaseUntil: until })).jobs[0];
        await lease("dead", at + 60 * minute);
        await lease("boot-2", at + 1);
        const held = await lease("boot-2", at + 60 * minute);
        expect(await store.renewLeases("boot-3", at + 90 * minute)).toBe(0);
        expect(await store.takeBackLeases("boot-2", at + 2, "~")).toBeGreaterThanOrEqual(2);
        const { jobs } = await store.claimDue({
          owner: "boot-2",
          lane,
          limit: 9,
          now: at + 2,
          leaseUntil: at + minute,
        });
        expect(jobs.map(({ to, attempt }) => [to, attempt])).toEqual([
          [`a@${lane}`, 2],
          [`b@${lane}`, 2],
        ]);
        expect(held?.to).toBe(`c@${lane}`);
        expect(await store.renewLeases("boot-2", at + 90 * minute)).toBe(3);
      });

      test("an attempt that the end of the program cut off is listed as interrupted, and as ambiguous where mail leaves", async () => {
        const at = clock.now();
        const accepted = async (lane: string, sendAt: number | null = null) => {
          const input = newMessage({ accountKey: account, to: [`a@${lane}`], at, sendAt, lane });
          await accept(store, input);
          return { id: input.message.id, lane };
        };
        const lease = (lane: string, now: number) =>
          store.claimDue({ owner: "boot-a", lane, limit: 1, now, leaseUntil: now + minute });
        const [sent, waiting] = [await accepted(freshDomain()), await accepted(freshDomain())];
        const local = await accepted("local lane");
        for (const { lane } of [sent, local]) expect((await lease(lane, at + 7)).jobs).toHaveLength(1);
        expect(await store.takeBackLeases("boot-b", at + 900, "local lane")).toBeGreaterThanOrEqual(2);
        const [attempt, ...more] = await store.attempts(account, sent.id);
        expect(more).toEqual([]);
        expect(attempt).toEqual({
          id: expect.stringMatching(/^att_/),
          recipient: `a@${sent.lane}`,
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

      test("a message for later is scheduled, then queued by time alone, and can be canceled once", async () => {
        const lane = freshDomain();
        const at = clock.now();
        const input = newMessage({ accountKey: account, to: [`a@${lane}`], at, sendAt: at + 10 * minute });
        await accept(store, input);
        const show = async () => (await store.message(account, input.message.id))?.recipients[0];
        expect(await show()).toMatchObject({ state: "scheduled", nextAttemptAt: at + 10 * minute });
        expect((await store.claimDue({ owner, lane, limit: 1, now: at, leaseUntil: at })).jobs).toEqual([]);
        const before = await store.queueCounts();
        clock.jump(10 * minute);
        expect(await show()).toMatchObject({ state: "queued" });
        expect((await store.queueCounts()).scheduled).toBe(before.scheduled - 1);
        expect(await store.cancelMessage(account, input.message.id, at)).toMatchObject({ canceled: 1 });
        expect(await store.cancelMessage(account, input.message.id, at)).toMatchObject({ canceled: 0 });
        expect(await store.cancelMessage(account, mint("msg", at), at)).toBeNull();
        expect(await show()).toMatchObject({ state: "canceled", nextAttemptAt: null });
        expect(
          (await store.claimDue({ owner, lane, limit: 1, now: at + 99 * minute, leaseUntil: at })).jobs,
        ).toEqual([]);
      });

      test("a recipient that is being sent is not canceled", async () => {
        const job = await one();
        expect(await store.cancelMessage(account, job.message.id, clock.now())).toMatchObject({
          canceled: 0,
        });
        expect(await stateOf(job)).toBe("sending");
      });

      test("counts and the oldest due time follow every step", async () => {
        const lane = freshDomain();
        const at = clock.now();
        const before = await store.queueCounts();
        await accept(store, newMessage({ accountKey: account, to: [`a@${lane}`], at: 5 }));
        expect(await store.queueCounts()).toMatchObject({ queued: before.queued + 1, oldestDueAt: 5 });
        const { jobs } = await store.claimDue({ owner, lane, limit: 1, now: at, leaseUntil: at + minute });
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

    describe("settlement", () => {
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
        const claim = { owner, lane: job.lane, limit: 1, now: at + minute - 1, leaseUntil: at + 9 * minute };
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

      test("a late deferral of a lost lease leaves the new holder's lease; a late delivery is final", async () => {
        const at = clock.now();
        const job = await one();
        await store.takeBackLeases("boot-next", at, "~");
        const claim = { owner: "boot-next", lane: job.lane, limit: 1, now: at, leaseUntil: at + 9 * minute };
        expect((await store.claimDue(claim)).jobs).toHaveLength(1);
        expect(await store.settle(settlementOf(job, at, { outcome: "deferred" }))).toBe(true);
        expect(await stateOf(job)).toBe("sending");
        expect((await store.claimDue({ ...claim, now: at + 60 * minute })).jobs).toEqual([]);
        expect(await store.settle(settlementOf(job, at))).toBe(true);
        expect(await stateOf(job)).toBe("delivered");
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

    describe("lists", () => {
      const walk = async <T>(
        list: (cursor: string | null) => Promise<Page<T>>,
        between?: () => Promise<void>,
      ): Promise<T[]> => {
        const rows: T[] = [];
        let cursor: string | null = null;
        for (;;) {
          const page: Page<T> = await list(cursor);
          rows.push(...page.rows);
          if (!page.hasMore) return rows;
          cursor = page.next;
          await between?.();
        }
      };

      test("messages come newest first; a walk while others arrive shows each once", async () => {
        const to = `walk@${freshDomain()}`;
        const send = (subject: string) =>
          accept(store, newMessage({ accountKey: account, to: [to], at: clock.now(), subject }));
        for (let i = 0; i < 7; i++) await send(`walk ${i}`);
        const grow = async (): Promise<void> => void (await send("walk later"));
        const byTime = await walk(
          (cursor) => store.listMessages(account, { subject: "WALK" }, { limit: 3, cursor }),
          grow,
        );
        const byAddress = await walk(
          (cursor) => store.listMessages(account, { to }, { limit: 3, cursor }),
          grow,
        );
        const early = (rows: { subject: string }[]) =>
          rows.map(({ subject }) => subject).filter((subject) => subject !== "walk later");
        const expected = [6, 5, 4, 3, 2, 1, 0].map((i) => `walk ${i}`);
        expect(early(byTime)).toEqual(expected);
        expect(early(byAddress)).toEqual(expected);
      });

      test("each filter of messages keeps the others out", async () => {
        const domain = freshDomain();
        const at = clock.now();
        const sent = await one(`in@${domain}`);
        await store.settle(settlementOf(sent, at));
        await accept(
          store,
          newMessage({
            accountKey: account,
            to: [`x@${domain}`],
            at: at + 50,
            source: "smtp",
            tags: ["rare"],
            subject: "50% off",
          }),
        );
        const found = async (filter: Parameters<Store["listMessages"]>[1]) =>
          (
            await store.listMessages(account, { toDomain: domain, ...filter }, { limit: 9, cursor: null })
          ).rows.map((row) => row.recipients[0]?.to.split("@")[0]);
        expect(await found({})).toEqual(["x", "in"]);
        expect(await found({ status: "delivered" })).toEqual(["in"]);
        expect(await found({ status: "queued" })).toEqual(["x"]);
        expect(await found({ source: "smtp" })).toEqual(["x"]);
        expect(await found({ tag: "rare" })).toEqual(["x"]);
        expect(await found({ subject: "0%" })).toEqual(["x"]);
        expect(await found({ from: "INFO@shop.example" })).toEqual(["x", "in"]);
        expect(await found({ ipPool: "other" })).toEqual([]);
        expect(await found({ createdAfter: at + 50 })).toEqual(["x"]);
        expect(await found({ createdBefore: at + 50 })).toEqual(["in"]);
        expect(await found({ to: `in@${domain}`, status: "delivered" })).toEqual(["in"]);
      });

      test("status is the common state, else whether anything is still to come", async () => {
        const at = clock.now();
        const domain = freshDomain();
        const input = newMessage({
          accountKey: account,
          to: [`a@${domain}`, `b@${domain}`],
          at,
          lease: true,
        });
        const [a, b] = await accept(store, input);
        if (!a || !b) throw new Error("two jobs");
        const has = async (status: "sending" | "processing" | "partially_delivered") =>
          (await store.listMessages(account, { toDomain: domain, status }, { limit: 1, cursor: null })).rows
            .length === 1;
        expect(await has("sending")).toBe(true);
        await store.settle(settlementOf(a, at));
        expect(await has("processing")).toBe(true);
        await store.settle(settlementOf(b, at, { outcome: "bounced" }));
        expect(await has("partially_delivered")).toBe(true);
      });

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
        expect(await types({ to })).toEqual([
          "message.deferred",
          "message.delivered",
          "message.unsubscribed",
        ]);
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

    describe("suppressions", () => {
      test("a stronger reason replaces a weaker one, the first spelling stays, and none ends earlier", async () => {
        const at = clock.now();
        const domain = freshDomain();
        const put = (
          reason: "manual" | "complaint" | "hard_bounce" | "unsubscribe",
          spelling: string,
          expiresAt: number | null = null,
        ) => store.addSuppressions([newSuppression(account, spelling, { reason, expiresAt })], at);
        const email = `Some.One@${domain}`;
        expect(await put("unsubscribe", email, at + minute)).toMatchObject({
          added: 1,
          rows: [{ reason: "unsubscribe" }],
        });
        expect(await put("manual", email.toUpperCase(), at + 1)).toMatchObject({
          unchanged: 1,
          rows: [{ reason: "unsubscribe", email }],
        });
        expect(await put("manual", email, null)).toMatchObject({
          updated: 1,
          rows: [{ reason: "unsubscribe", expiresAt: null }],
        });
        expect(await put("complaint", email.toLowerCase(), at + 1)).toMatchObject({
          updated: 1,
          rows: [{ reason: "complaint", email, expiresAt: null }],
        });
        expect(await put("hard_bounce", email)).toMatchObject({ unchanged: 1 });
        expect(await store.removeSuppression(account, email.toLowerCase())).toBe(true);
        expect(await store.removeSuppression(account, email.toLowerCase())).toBe(false);
      });

      test("one that has expired is none, and is added as new", async () => {
        const at = clock.now();
        const email = `old@${freshDomain()}`;
        await store.addSuppressions(
          [newSuppression(account, email, { reason: "complaint", expiresAt: at - 1 })],
          at - minute,
        );
        expect(await store.suppression(account, email, at)).toBeNull();
        expect(await store.suppressed(account, [email, "nobody@x.test"], at)).toEqual([]);
        expect(await store.addSuppressions([newSuppression(account, email)], at)).toMatchObject({
          added: 1,
          rows: [{ reason: "manual", createdAt: at }],
        });
        expect(await store.suppressed(account, [email, "nobody@x.test"], at)).toHaveLength(1);
      });

      test("the list is filtered, paged, and one account's own", async () => {
        const at = clock.now();
        const domain = freshDomain();
        const emails = ["ab", "aa", "b_", "b%"].map((local) => `${local}@${domain}`);
        await store.addSuppressions(
          emails.map((email, i) => newSuppression(account, email, { reason: i ? "manual" : "complaint" })),
          at,
        );
        const list = (
          filter: Parameters<Store["listSuppressions"]>[1],
          limit = 50,
          cursor: string | null = null,
        ) => store.listSuppressions(account, { domain, ...filter }, { limit, cursor });
        expect((await list({})).rows.map(({ email }) => email)).toEqual([...emails].sort());
        expect((await list({ emailPrefix: "A" })).rows).toHaveLength(2);
        expect((await list({ emailPrefix: "b_" })).rows.map(({ email }) => email)).toEqual([`b_@${domain}`]);
        expect((await list({ reason: "complaint" })).rows.map(({ email }) => email)).toEqual([emails[0]]);
        expect((await list({ createdAfter: at + 1 })).rows).toEqual([]);
        const page = await list({}, 3);
        expect(page.hasMore).toBe(true);
        expect((await list({}, 3, page.next)).rows).toHaveLength(1);
        expect((await store.listSuppressions(account + 1, {}, { limit: 5, cursor: null })).rows).toEqual([]);
      });
    });

    describe("webhooks", () => {
      const record = async (typeBit = 1) => {
        const event = newEvent({ accountKey: account, receivedAt: clock.now(), typeBit });
        await store.recordEvent(event);
        return event;
      };
      const claimAll = (endpointKey: number, now = clock.now(), leaseUntil = now + minute, limit = 32) =>
        store.claimDeliveries({ accountKey: account, endpointKey, limit, now, leaseUntil });

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
            attempt: 1,
            body: event.body,
          },
        ]);
        expect((await claimAll(bounces.key)).deliveries).toEqual([]);
        expect((await store.endpointsDue()).map(({ endpointKey }) => endpointKey)).not.toContain(bounces.key);
        await store.deleteEndpoint(account, all.id);
        await store.deleteEndpoint(account, bounces.id);
      });

      test("first attempts go in event order before retries, a retry at its time, an expired lease again", async () => {
        const at = clock.now();
        const endpoint = await store.createEndpoint(newEndpoint(account, at));
        const events = [await record(), await record(), await record()];
        const [first] = (await claimAll(endpoint.key, at, at + minute, 1)).deliveries;
        if (!first) throw new Error("nothing claimed");
        await store.settleDeliveries([
          { ...took, ...first, at, status: 500, result: { kind: "retry", dueAt: at + 5 } },
        ]);
        expect(await store.endpointsDue()).toContainEqual({
          endpointKey: endpoint.key,
          accountKey: account,
          dueAt: 0,
        });
        const next = await claimAll(endpoint.key, at + 5, at + 20);
        expect(next.deliveries.map(({ eventId, attempt }) => [eventId, attempt])).toEqual([
          [events[1]?.id, 1],
          [events[2]?.id, 1],
          [events[0]?.id, 2],
        ]);
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
        expect((await store.endpointsDue()).map(({ endpointKey }) => endpointKey)).not.toContain(
          endpoint.key,
        );
        await store.deleteEndpoint(account, endpoint.id);
      });

      test("results show at the endpoint and at the event", async () => {
        const at = clock.now();
        const endpoint = await store.createEndpoint(newEndpoint(account, at));
        const event = await record();
        const claimed = async () => {
          const [delivery] = (await claimAll(endpoint.key, clock.now() + minute, clock.now() + minute))
            .deliveries;
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
        await store.settleDeliveries([
          { ...took, ...late, at: 7, status: 204, result: { kind: "delivered" } },
        ]);
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

      test("a paused endpoint's events wait; resuming sends them or drops them", async () => {
        const endpoint = await store.createEndpoint(newEndpoint(account, clock.now(), { active: false }));
        await record();
        expect((await store.endpointsDue()).map(({ endpointKey }) => endpointKey)).not.toContain(
          endpoint.key,
        );
        expect((await claimAll(endpoint.key)).deliveries).toEqual([]);
        expect(
          await store.updateEndpoint(account, endpoint.id, { active: true, updatedAt: 9 }),
        ).toMatchObject({ active: true, updatedAt: 9 });
        expect(await store.endpointsDue()).toContainEqual({
          endpointKey: endpoint.key,
          accountKey: account,
          dueAt: 0,
        });
        await store.updateEndpoint(account, endpoint.id, { updatedAt: 10 }, { discardBacklog: true });
        expect((await claimAll(endpoint.key)).deliveries).toEqual([]);
        expect(await store.deleteEndpoint(account, endpoint.id)).toBe(true);
        expect(await store.deleteEndpoint(account, endpoint.id)).toBe(false);
        expect(await store.endpoint(account, endpoint.id)).toBeNull();
        expect(await store.updateEndpoint(account, endpoint.id, { updatedAt: 11 })).toBeNull();
      });
    });

    describe("the store itself", () => {
      test("a secret is made once and stays", async () => {
        const [first, second] = await Promise.all([store.secret("verp"), store.secret("verp")]);
        expect(first.byteLength).toBe(32);
        expect(Buffer.from(second).equals(first)).toBe(true);
        expect(Buffer.from(await store.secret("verp")).equals(first)).toBe(true);
        expect(Buffer.from(await store.secret("other")).equals(first)).toBe(false);
      });

      test("listeners hear of commits after them, and whether events were among them", async () => {
        const heard: boolean[] = [];
        const stop = store.onCommit(({ events }) => heard.push(events));
        await store.noteUse({ apiKeys: [], smtpCredentials: [], at: 1 });
        await store.recordEvent(newEvent({ accountKey: account, receivedAt: clock.now() }));
        stop();
        await store.recordEvent(newEvent({ accountKey: account, receivedAt: clock.now() }));
        expect(heard).toEqual([false, true]);
      });

      test("a call that fails by its own fault takes no other call with it", async () => {
        const id = mint("evt", clock.now());
        const events = [id, id, mint("evt", clock.now())].map((each) =>
          newEvent({ accountKey: account, receivedAt: clock.now(), id: each }),
        );
        const results = await Promise.allSettled(events.map((event) => store.recordEvent(event)));
        expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
        expect(
          (await store.listEvents(account, { eventId: events[2]?.id ?? "" }, { limit: 1, cursor: null }))
            .rows,
        ).toHaveLength(1);
      });
    });
  });
}

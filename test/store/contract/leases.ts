// Leases against a model of them: several boots of two nodes accept, claim, settle, end, are killed, and start, in any order.
// Only the interface is used: the store is handed in.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Job } from "../../../src/model/queued-recipient.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { accept, minute, newMessage, settlementOf } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

const kinds = [
  "begin",
  "accept",
  "claim",
  "settle",
  "settle",
  "release",
  "renew",
  "end",
  "wait",
  "start",
] as const;
const outcomes = ["delivered", "deferred", "bounced"] as const;
const step = fc.record({
  kind: fc.constantFrom(...kinds),
  pick: fc.nat(1000),
  boot: fc.nat(3),
  outcome: fc.constantFrom(...outcomes),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

interface ModelBoot {
  id: string;
  node: string;
  leaseUntil: number;
  ended: boolean;
}

/** What is known of a recipient; `owner` null: it waits, or is final. */
interface ModelMail {
  id: string;
  owner: string | null;
  attempts: number;
  final: string | null;
}

export function leaseContract(open: OpenStore): void {
  describe("leases", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    const { freshDomain } = beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    test("whatever boots do and however they end: no lease is lost, none is shared, and without one only a delivery counts", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), (steps) => history(steps)),
        { numRuns: 30 },
      );
    });

    const history = async (steps: Step[]): Promise<void> => {
      const queueName = freshDomain();
      const boots = new Map<string, ModelBoot>();
      /** By the id of the message: each has one recipient. */
      const mails = new Map<string, ModelMail>();
      /** Every job that any boot ever had in its hands, with its boot: what it says of it may come late. */
      const jobs: { owner: string; job: Job }[] = [];
      let count = 0;

      const begin = async (node: string): Promise<string> => {
        const boot = { id: `${queueName}-${++count}`, node, leaseUntil: clock.now() + minute, ended: false };
        await store.beginBoot(boot);
        boots.set(boot.id, boot);
        return boot.id;
      };
      /** The newest boots; one that never began may lease too, as by a fault it would. */
      const bootOf = (n: number): string => [...boots.keys()].at(-1 - n) ?? `${queueName}-never`;
      const isOver = (owner: string, mine: ModelBoot): boolean => {
        const boot = boots.get(owner);
        if (!boot) return true;
        return (
          boot.id !== mine.id && boot.node === mine.node && (boot.ended || boot.leaseUntil <= clock.now())
        );
      };
      const leased = (owner: string, job: Job): void => {
        jobs.push({ owner, job });
        const mail = mails.get(job.message.id);
        expect(mail).toMatchObject({ owner: null, final: null });
        if (!mail) return;
        expect(job.attempt).toBe(mail.attempts + 1);
        mail.attempts = job.attempt;
        mail.owner = owner;
      };
      const claim = async (owner: string, limit: number): Promise<Job[]> => {
        const waiting = [...mails.values()].filter((mail) => mail.owner === null && mail.final === null);
        const found = await store.claimDue({ owner, queueName, limit, now: clock.now() });
        expect(found.jobs).toHaveLength(Math.min(limit, waiting.length));
        for (const job of found.jobs) leased(owner, job);
        return found.jobs;
      };
      const takeBack = async (id: string): Promise<void> => {
        const mine = boots.get(id);
        if (!mine) return;
        const over = [...mails.values()].filter(({ owner }) => owner !== null && isOver(owner, mine));
        expect(await store.takeBackLeases(id, clock.now(), "~")).toBe(over.length);
        for (const mail of over) mail.owner = null;
      };
      const settle = async ({ owner, job }: { owner: string; job: Job }, outcome: Step["outcome"]) => {
        const mail = mails.get(job.message.id);
        if (!mail) return;
        const mine = mail.owner === owner && mail.attempts === job.attempt;
        const counts = mail.final === null && (mine || outcome === "delivered");
        const at = clock.now();
        const settled = await store.settle(settlementOf(job, at, { owner, outcome, nextAttemptAt: at }));
        expect(settled).toBe(counts);
        if (!counts) return;
        mail.owner = null;
        mail.attempts = job.attempt;
        if (outcome !== "deferred") mail.final = outcome;
      };

      for (const { kind, pick, boot, outcome } of steps) {
        const owner = bootOf(boot);
        const known = boots.get(owner);
        const before = jobs[pick % Math.max(1, jobs.length)];
        if (kind === "begin") await begin(pick % 2 === 0 ? "left" : "right");
        else if (kind === "wait") await clock.advance(minute / 2);
        else if (kind === "claim") await claim(owner, 1 + (pick % 3));
        else if (kind === "settle" && before) await settle(before, outcome);
        else if (kind === "renew" && known) {
          const leaseUntil = clock.now() + minute;
          expect(await store.renewBoot(owner, leaseUntil)).toBe(!known.ended);
          if (!known.ended) known.leaseUntil = leaseUntil;
        } else if (kind === "end" && known) {
          await store.endBoot(owner, clock.now());
          known.ended = true;
        } else if (kind === "start") await takeBack(await begin(pick % 2 === 0 ? "left" : "right"));
        else if (kind === "release" && before) {
          await store.release(before.owner, [before.job.key], clock.now());
          const mail = mails.get(before.job.message.id);
          if (mail?.owner === before.owner) Object.assign(mail, { owner: null, attempts: mail.attempts - 1 });
        } else if (kind === "accept") {
          const message = newMessage({ accountKey: account, to: [`r${pick}@${queueName}`], at: clock.now() });
          const leaseOwner = pick % 2 === 0 ? owner : null;
          const recipients = message.recipients.map((recipient) => ({ ...recipient, leaseOwner }));
          const { id } = message.message;
          mails.set(id, { id, owner: null, attempts: 0, final: null });
          for (const job of await accept(store, { ...message, recipients })) leased(owner, job);
        }
      }

      // All are killed, and their leases run out: the next starts have all that is unsent, and all of it arrives.
      await clock.advance(2 * minute);
      const last = [await begin("left"), await begin("right")];
      for (const id of last) await takeBack(id);
      expect([...mails.values()].filter(({ owner }) => owner !== null)).toEqual([]);
      const [left = ""] = last;
      for (const job of await claim(left, mails.size + 1)) await settle({ owner: left, job }, "delivered");
      for (const { id, final } of mails.values()) {
        const recipients = (await store.message(account, id))?.recipients;
        expect(recipients?.map(({ state }) => state)).toEqual([final]);
        const { rows } = await store.listEvents(account, { messageId: id }, { limit: 100, cursor: null });
        expect(rows.filter(({ type }) => type !== "message.deferred").map(({ type }) => type)).toEqual([
          `message.${final}`,
        ]);
      }
    };
  });
}

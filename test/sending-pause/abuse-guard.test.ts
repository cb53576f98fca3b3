// The abuse guard with the real store and its counters.
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { operationsAccount, type Account } from "../../src/model/account.ts";
import { counterMask, type CounterName } from "../../src/model/counters.ts";
import { mailFacts } from "../../src/model/facts.ts";
import { notifyAccountPaused } from "../../src/notifications/pause-notice.ts";
import { createAbuseGuard, type AbuseGuardDeps } from "../../src/sending-pause/abuse-guard.ts";
import { createSendingPause } from "../../src/sending-pause/sending-pause.ts";
import type { Store } from "../../src/store/store.ts";
import { newDirectory, newEvent, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";

const hourMs = 3_600_000;
const quarterMs = 900_000;
const raised = {
  delivered: ["delivered"],
  hard: ["bounced", "bouncedHard"],
  soft: ["bounced", "bouncedSoft"],
  complained: ["complained"],
} satisfies Record<string, CounterName[]>;
type Happened = Partial<Record<keyof typeof raised, number>>;

async function rig(shares: AbuseGuardDeps["shares"] = { hardBounceShare: 0.1, complaintShare: 0.003 }) {
  const clock = new ManualClock();
  const store = await openSqlite(newDirectory(), clock);
  onTestFinished(() => store.close());
  const told: { cause: string; subject: string; text: string }[] = [];
  /** Accounts whose figures were read. */
  const looked: number[] = [];
  const pauses = createSendingPause({ store, clock, log: silentLog });
  await pauses.start();
  const find = async (name = "default"): Promise<Account> => {
    const found = await store.accountByName(name);
    if (!found) throw new Error("no such account");
    return found;
  };
  const statsTotals: Store["statsTotals"] = (accountKey, range) => {
    looked.push(accountKey);
    return store.statsTotals(accountKey, range);
  };
  const notify = async (cause: string, subject: string, text: string) =>
    told.push({ cause, subject, text }) > 0;
  const guard = createAbuseGuard({
    store: { ...store, statsTotals },
    pauses,
    onPaused: (account, reason, at) => notifyAccountPaused({ notify }, account, reason, at),
    shares,
    clock,
    log: silentLog,
  });
  return {
    clock,
    store,
    told,
    looked,
    pauses,
    guard,
    find,
    /** So many recipients of the account come to that. */
    async happens(what: Happened, of: { account?: string; test?: boolean } = {}) {
      const { key: accountKey } = await find(of.account);
      const facts = mailFacts({
        accountKey,
        test: of.test ?? false,
        domain: "shop.example",
        pool: "default",
        tagsJson: "[]",
        recipientDomain: "a.test",
        ip: null,
        provider: null,
        classification: null,
      });
      for (const name of Object.keys(raised) as (keyof typeof raised)[]) {
        const event = () =>
          newEvent({ accountKey, receivedAt: clock.now(), counters: counterMask(raised[name]), facts });
        await Promise.all(Array.from({ length: what[name] ?? 0 }, () => store.recordEvent(event())));
      }
    },
    async isPaused() {
      await guard.check();
      return (await find()).pausedAt !== null;
    },
  };
}

test("hard bounces above their share pause the account, and the operator gets a mail with the reason and what to do", async () => {
  const { happens, isPaused, told, find, pauses, store, clock } = await rig();
  await happens({ delivered: 180, hard: 20 });
  expect(await isPaused(), "a tenth is not more than a tenth").toBe(false);
  await happens({ hard: 1 });
  expect(await isPaused()).toBe(true);
  const account = await find();
  const reason = "10.45 % of 201 recipients within a day bounced hard, more than 10 %";
  expect(account).toMatchObject({ pausedAt: clock.now(), pauseReason: reason });
  expect(pauses.isPaused(account.key)).toBe(true);
  expect(told).toMatchObject([
    {
      cause: `account_paused:${account.id}:${clock.now()}`,
      subject: "sending of the account default is paused",
    },
  ]);
  expect(told[0]?.text).toContain(reason);
  expect(told[0]?.text).toContain("svc accounts resume default");
  await happens({ hard: 9 });
  await isPaused();
  expect(told, "one mail a pause").toHaveLength(1);
  expect((await store.listAudit({}, { limit: 10, cursor: null })).rows).toMatchObject([
    { action: "accounts.pause", actorKind: "system", target: "default", detail: { reason } },
  ]);
});

test("complaints above their share pause the account", async () => {
  const { happens, isPaused, find } = await rig();
  await happens({ delivered: 1000, complained: 3 });
  expect(await isPaused()).toBe(false);
  await happens({ complained: 1 });
  expect(await isPaused()).toBe(true);
  expect((await find()).pauseReason).toBe(
    "0.4 % of 1000 recipients within a day complained, more than 0.3 %",
  );
});

test.each([
  ["bounces of too few recipients", { hard: 199 }],
  ["complaints of too few", { delivered: 999, complained: 999 }],
  ["soft bounces", { delivered: 100, soft: 900 }],
])("%s pause no account", async (_what, figures) => {
  const { happens, isPaused } = await rig();
  await happens(figures);
  expect(await isPaused()).toBe(false);
});

test("only the last day counts, and live mail only", async () => {
  const { happens, isPaused, clock } = await rig();
  await happens({ hard: 500 });
  await clock.advance(24.25 * hourMs);
  await happens({ delivered: 10 });
  expect(await isPaused()).toBe(false);
  await happens({ hard: 500 }, { test: true });
  expect(await isPaused()).toBe(false);
  await happens({ hard: 200 });
  expect(await isPaused()).toBe(true);
});

test("after a resume the same bounces do not pause the account again, and new ones do", async () => {
  const { happens, isPaused, clock, guard, find, pauses, told } = await rig();
  await clock.advance(7 * 60_000); // in the middle of a quarter of an hour, by which counters are kept
  await happens({ delivered: 10, hard: 500 });
  expect(await isPaused()).toBe(true);
  await clock.advance(1000);
  expect(await guard.resume(await find())).toBe(true);
  expect(await guard.resume(await find())).toBe(false);
  expect(pauses.isPaused((await find()).key)).toBe(false);
  await happens({ delivered: 150, hard: 40 });
  expect(await isPaused(), "190 since then are too few").toBe(false);
  await clock.advance(hourMs);
  await happens({ delivered: 10 });
  expect(await isPaused()).toBe(true);
  expect((await find()).pauseReason).toContain("20 % of 200 recipients");
  expect(new Set(told.map(({ cause }) => cause)).size, "a mail each pause").toBe(2);
  await guard.resume(await find());
  await clock.advance(25 * hourMs);
  await happens({ delivered: 300, hard: 100 });
  expect(await isPaused(), "a day later the whole day counts again").toBe(true);
});

test("counts before a resume do not count a day later either, in the quarter of an hour of the resume", async () => {
  const { happens, isPaused, clock, guard, find } = await rig();
  await clock.advance(quarterMs - (clock.now() % quarterMs) + 60_000);
  await happens({ delivered: 100, hard: 150 });
  expect(await isPaused()).toBe(true);
  await guard.resume(await find());
  for (let minute = 0; minute < 30; minute++) {
    await clock.advance(minute === 0 ? 24 * hourMs - 2 * 60_000 : 60_000);
    await happens({ delivered: 1 });
    expect(await isPaused(), `minute ${minute}`).toBe(false);
  }
});

test("accounts without a new event are not checked; the account of notices is never paused", async () => {
  const { happens, guard, looked, find } = await rig();
  await guard.check();
  expect(looked).toEqual([]);
  await happens({ hard: 500 }, { account: operationsAccount });
  await guard.check();
  expect((await find(operationsAccount)).pausedAt).toBeNull();
  await happens({ delivered: 1 });
  await guard.check();
  await guard.check();
  expect(looked).toEqual([(await find()).key]);
});

test("switched off, it pauses no account, and a paused account can still be resumed", async () => {
  const { happens, isPaused, pauses, guard, find } = await rig(null);
  await happens({ hard: 500 });
  expect(await isPaused()).toBe(false);
  await pauses.pause((await find()).key, "before it was switched off");
  expect(await guard.resume(await find())).toBe(true);
});

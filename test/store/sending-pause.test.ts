import { afterAll, beforeAll, expect, test } from "vitest";
import type { Account } from "../../src/model/account.ts";
import type { MessageRecord } from "../../src/model/message.ts";
import type { Store } from "../../src/store/store.ts";
import { ManualClock } from "../support/clock.ts";
import {
  accept,
  beginBoot,
  minute,
  newDirectory,
  newEvent,
  newMessage,
  openSqlite,
  owner,
  settlementOf,
} from "./fixtures.ts";

const clock = new ManualClock();
const dataDir = newDirectory();
let store: Store;
let mine: number;
let other: number;
beforeAll(async () => {
  store = await openSqlite(dataDir, clock);
  mine = keyOf(await store.accountByName("default"));
  other = keyOf(await store.accountByName("operations"));
});
afterAll(() => store.close());

function keyOf(account: Account | null): number {
  if (!account) throw new Error("no such account");
  return account.key;
}

async function put(accountKey: number, queueName: string, wishes: object = {}): Promise<string> {
  const message = newMessage({ accountKey, to: [`x@${queueName}`], at: clock.now(), ...wishes });
  await accept(store, message);
  return message.message.id;
}
/** The account is paused, but for the moment of `work`. */
async function unpaused<T>(work: () => Promise<T>): Promise<T> {
  await store.resumeAccount(mine, null);
  const result = await work();
  await store.pauseAccount(mine, clock.now(), "too many bounces");
  return result;
}
const show = async (id: string): Promise<MessageRecord> => {
  const found = await store.message(mine, id);
  if (!found) throw new Error("no such message");
  return found;
};
const claim = (queueName: string, limit = 100, who = owner) =>
  store.claimDue({ owner: who, queueName, limit, now: clock.now() });

/** Claims until the scheduled queue has nothing more that is due; answers whose mail came. */
async function drain(queueName: string): Promise<number[]> {
  const accounts: number[] = [];
  for (;;) {
    const { jobs, nextDueAt } = await claim(queueName);
    accounts.push(...jobs.map(({ message }) => message.accountKey));
    if (nextDueAt === null || nextDueAt > clock.now()) return accounts;
  }
}
async function release(limit = 1000): Promise<number> {
  return (await store.releaseHeld(mine, clock.now(), limit)).released;
}

test("a thousand due of a paused account are held beside another's mail of the same scheduled queue, which goes on", async () => {
  await Promise.all(Array.from({ length: 1000 }, () => put(mine, "busy.test")));
  const held = await put(mine, "busy.test");
  await put(other, "busy.test");
  expect(await store.pauseAccount(mine, clock.now(), "too many bounces")).toBe(true);
  expect(await store.pauseAccount(mine, clock.now(), "again")).toBe(false);
  const first = await claim("busy.test");
  expect([first.jobs, first.nextDueAt]).toEqual([[], clock.now()]); // 500 are moved a claim at most
  expect(await drain("busy.test")).toEqual([other]);
  expect(await store.queueCounts()).toMatchObject({ held: 1001, sending: 1, queued: 0 });
  expect((await store.scheduledQueues(null, 10)).map(({ queueName }) => queueName)).not.toContain(
    "busy.test",
  );
  expect((await show(held)).recipients).toMatchObject([
    { state: "queued", attempts: 0, nextAttemptAt: null },
  ]);
  expect(await store.accountsOnHold()).toEqual([mine]);
  expect((await store.pausedAccounts()).map(({ key, pauseReason }) => [key, pauseReason])).toEqual([
    [mine, "too many bounces"],
  ]);
  expect(await store.accountByKey(mine)).toMatchObject({
    pausedAt: clock.now(),
    pauseReason: "too many bounces",
  });
});

test("a start takes back what was being sent, and no hold", async () => {
  await beginBoot(store, owner);
  await store.close();
  store = await openSqlite(dataDir, clock);
  await beginBoot(store, "boot-2");
  expect(await store.takeBackLeases("boot-2", clock.now(), "~")).toBe(1);
  expect(await store.queueCounts()).toMatchObject({ held: 1001, queued: 1, sending: 0 });
  expect(await drain("busy.test")).toEqual([other]);
});

test("what is held can be canceled", async () => {
  const id = await unpaused(() => put(mine, "cancel.test"));
  await claim("cancel.test");
  const before = (await store.queueCounts()).held;
  expect(await store.cancelMessage(mine, id, clock.now())).toMatchObject({
    canceled: 1,
    message: { recipients: [{ state: "canceled" }] },
  });
  expect((await store.queueCounts()).held).toBe(before - 1);
  expect((await store.cancelMessage(mine, id, clock.now()))?.canceled).toBe(0);
});

test("what is scheduled or deferred waits for its time, and is held then", async () => {
  const later = { sendAt: clock.now() + minute };
  const scheduled = await unpaused(() => put(mine, "later.test", later));
  const tried = newMessage({ accountKey: mine, to: ["y@later.test"], at: clock.now(), lease: true });
  const [job] = await unpaused(() => accept(store, tried)); // under way when the pause began
  if (!job) throw new Error("not leased");
  await store.settle(
    settlementOf(job, clock.now(), { outcome: "deferred", nextAttemptAt: clock.now() + minute }),
  );
  expect((await show(scheduled)).recipients).toMatchObject([{ state: "scheduled" }]);
  const before = (await store.queueCounts()).held;
  await clock.advance(minute);
  expect(await drain("later.test")).toEqual([]);
  expect((await store.queueCounts()).held).toBe(before + 2);
  expect((await show(scheduled)).recipients).toMatchObject([{ state: "queued" }]);
  expect((await show(tried.message.id)).recipients).toMatchObject([{ state: "deferred", attempts: 1 }]);
});

test("what was claimed and not begun goes back, and is held", async () => {
  await put(other, "claimed.test");
  await store.resumeAccount(mine, null);
  const id = await put(mine, "claimed.test");
  const { jobs } = await claim("claimed.test");
  const job = jobs.find(({ message }) => message.id === id);
  await store.pauseAccount(mine, clock.now(), "again");
  await store.release(owner, [job?.key ?? 0], clock.now());
  expect(await drain("claimed.test")).toEqual([]);
  expect((await show(id)).recipients).toMatchObject([{ state: "queued", attempts: 0 }]);
});

test("a report that comes back about held mail bounces it, and the hold ends", async () => {
  const message = newMessage({ accountKey: mine, to: ["z@report.test"], at: clock.now(), lease: true });
  const [job] = await unpaused(() => accept(store, message));
  if (!job) throw new Error("not leased");
  await store.settle(settlementOf(job, clock.now(), { outcome: "deferred", nextAttemptAt: clock.now() }));
  await drain("report.test");
  const before = (await store.queueCounts()).held;
  const event = newEvent({ accountKey: mine, receivedAt: clock.now(), messageKey: job.message.key });
  const report = {
    kind: "bounced" as const,
    recipientKey: job.key,
    messageKey: job.message.key,
    at: clock.now(),
    smtpCode: 550,
    smtpStatus: "5.1.1",
    smtpResponse: "no such user",
    event,
    suppression: null,
  };
  expect(await store.settleReports([report])).toEqual(["recorded"]);
  expect((await store.queueCounts()).held).toBe(before - 1);
  expect((await show(message.message.id)).recipients).toMatchObject([{ state: "bounced" }]);
});

test("a resume releases nothing by itself; released in pieces, all of it comes in its order, and its age does not count the hold", async () => {
  const { held } = await store.queueCounts();
  expect(await release(), "while it is paused").toBe(0);
  await clock.advance(60 * minute);
  expect(await store.resumeAccount(mine, null)).toBe(true);
  expect(await store.resumeAccount(mine, null)).toBe(false);
  expect((await store.queueCounts()).held).toBe(held);
  const piece = await store.releaseHeld(mine, clock.now(), 400);
  expect(piece.released).toBe(400);
  expect(piece.scheduledQueues.map(({ queueName }) => queueName)).toEqual(["busy.test"]);
  const { jobs } = await claim("busy.test", 50);
  expect(jobs.map(({ key }) => key)).toEqual(jobs.map(({ key }) => key).toSorted((a, b) => a - b));
  const [first] = jobs;
  const accepted = first && (await show(first.message.id)).createdAt;
  expect(first?.message.queuedAt).toBe(
    (accepted ?? 0) + clock.now() - (piece.scheduledQueues[0]?.dueAt ?? 0),
  );
  await store.pauseAccount(mine, clock.now(), "again");
  expect(await release()).toBe(0);
  await store.resumeAccount(mine, null);
  let released = 400;
  for (let n = await release(300); n > 0; n = await release(300)) released += n;
  expect(released).toBe(held);
  expect(await store.accountsOnHold()).toEqual([]);
  expect((await store.queueCounts()).held).toBe(0);
});

// What one account may fill of the queue and of the disk, as the writer counts it: at acceptance, at every way out of the
// queue, after a call that was taken back, and after a restart.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { NewMessage } from "../../src/model/acceptance.ts";
import { createShareLimit } from "../../src/store/queue-limit.ts";
import type { Store } from "../../src/store/store.ts";
import { createTally } from "../../src/store/batch-counters.ts";
import { ManualClock } from "../support/clock.ts";
import { accept, mint, newDirectory, newMessage, openSqlite, settlementOf } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

const share = { recipients: null, bytes: null };
let dataDir: string;
let clock: ManualClock;
let store: Store;
beforeEach(async () => {
  dataDir = newDirectory();
  clock = new ManualClock();
  store = await openSqlite(dataDir, clock);
});
afterEach(async () => {
  await store.close();
  removeFolder(dataDir);
});

const accountOf = async (name: string): Promise<number> => (await store.accountByName(name))?.key ?? 0;
const makeAccount = async (name: string): Promise<number> => {
  const made = await store.createAccount({ id: mint("acct", clock.now()), name, createdAt: clock.now() });
  return made?.key ?? 0;
};
const mail = (
  accountKey: number,
  more: Partial<NewMessage> & { to?: string[]; queueName?: string } = {},
): NewMessage => {
  const { to, queueName, ...rest } = more;
  const wishes = {
    accountKey,
    at: clock.now(),
    share,
    maxQueue: 100,
    queueName: queueName ?? `${accountKey}.default/a.test`,
  };
  return { ...newMessage({ ...wishes, ...(to ? { to } : {}) }), ...rest };
};
/** How many more single mails are taken, at most 200. */
const room = async (accountKey: number, more: Parameters<typeof mail>[1] = {}): Promise<number> => {
  const results = await Promise.all(
    Array.from({ length: 200 }, () => store.acceptMessage(mail(accountKey, more))),
  );
  return results.filter(({ kind }) => kind === "accepted").length;
};

test("one account alone has all of the queue, whatever its own mail of notices", async () => {
  expect(await room(await accountOf("default"))).toBe(100);
});

test("where several send, requests at once take at most half of what the others leave", async () => {
  const [a, b] = [await accountOf("default"), await makeAccount("b")];
  expect(await room(b)).toBe(50);
  expect(await store.acceptMessage(mail(b))).toEqual({ kind: "share_full", of: "recipients", most: 50 });
  expect(await room(a)).toBe(25);
  expect(await room(await makeAccount("c"))).toBe(12);
});

test("the operator's number stands in place of the half, and a message bound by no share is not refused", async () => {
  const b = await makeAccount("b");
  expect(await room(b, { share: { recipients: 70, bytes: null } })).toBe(70);
  expect(await room(b)).toBe(0);
  expect((await store.acceptMessage(mail(b, { share: null }))).kind).toBe("accepted");
});

test("a batch is judged with its own messages counted, and refused whole", async () => {
  const b = await makeAccount("b");
  const batch = (n: number) =>
    store.acceptMessages(
      Array.from({ length: n }, () => mail(b)),
      null,
    );
  expect((await batch(51)).kind).toBe("refused");
  expect((await batch(50)).kind).toBe("accepted");
  expect(await room(b)).toBe(0);
});

test("scheduled mail and mail of test keys count as any other, and every way out of the queue frees its place", async () => {
  const b = await makeAccount("b");
  await makeAccount("c");
  const sendAt = clock.now() + 3_600_000;
  const limits = { maxQueue: 100 };
  const scheduled = mail(b, { ...limits, to: Array.from({ length: 30 }, (_, n) => `r${n}@a.test`), sendAt });
  await store.acceptMessage(scheduled);
  const tested = mail(b, { queueName: "~sandbox" });
  await store.acceptMessage(tested);
  expect(await room(b)).toBe(19);
  await store.cancelMessage(b, scheduled.message.id, clock.now());
  await clock.advance(1000);
  expect(await room(b)).toBe(30);
  await clock.advance(1000);
  const { jobs } = await store.claimDue({
    owner: "boot-1",
    queueName: `${b}.default/a.test`,
    limit: 20,
    now: clock.now(),
  });
  for (const job of jobs) await store.settle(settlementOf(job, clock.now()));
  expect(jobs).toHaveLength(20);
  expect(await room(b)).toBe(20);
});

test("a restart counts each account's own again: waiting, leased, held and in the sandbox", async () => {
  const b = await makeAccount("b");
  await accept(store, { ...newMessage({ accountKey: b, at: clock.now(), lease: true }), maxQueue: 0 });
  await store.acceptMessage(mail(b, { queueName: "~sandbox" }));
  await store.acceptMessage(mail(b, { to: ["x@a.test", "y@a.test"] }));
  await store.acceptMessage(mail(b, { queueName: `${b}.default/held.test` }));
  await store.pauseAccount(b, clock.now(), "a test");
  const claim = { owner: "boot-1", limit: 9, now: clock.now() };
  expect((await store.claimDue({ ...claim, queueName: `${b}.default/held.test` })).jobs).toEqual([]);
  await store.close();
  store = await openSqlite(dataDir, clock);
  await store.resumeAccount(b, null);
  expect(await room(b)).toBe(45);
});

test("of a message to several each recipient counts for its part of the content, and is freed with it", async () => {
  const b = await makeAccount("b");
  const bytes = { share: { recipients: null, bytes: 1000 }, maxQueue: 0 };
  const large = mail(b, {
    ...bytes,
    to: ["x@a.test", "y@a.test"],
    content: { kind: "inline", bytes: Buffer.alloc(1500) },
  });
  expect((await store.acceptMessage(large)).kind).toBe("accepted");
  const refused = { kind: "share_full", of: "bytes", most: 1000 };
  expect(await store.acceptMessage(mail(b, bytes))).toEqual(refused);
  await store.close();
  store = await openSqlite(dataDir, clock);
  expect(await store.acceptMessage(mail(b, bytes)), "after a restart").toEqual(refused);
  const { jobs } = await store.claimDue({
    owner: "boot-1",
    queueName: `${b}.default/a.test`,
    limit: 1,
    now: clock.now(),
  });
  for (const job of jobs) await store.settle(settlementOf(job, clock.now()));
  await clock.advance(1000);
  expect((await store.acceptMessage(mail(b, bytes))).kind, "750 bytes are left").toBe("accepted");
});

test("an account may have as much unsent content as is free, so that others find room", () => {
  const tally = createTally([[7, { recipients: 1, bytes: 500 }]]);
  const limit = createShareLimit(tally, () => 2);
  const ask = (accountKey: number, free: number, at: number) =>
    limit({ accountKey, share, maxQueue: 0, room: free, at });
  expect(ask(7, 501, 0)).toBeNull();
  expect(ask(7, 500, 0)).toEqual({ kind: "share_full", of: "bytes", most: 500 });
  expect(ask(8, 1, 0)).toBeNull();
  expect(ask(7, 510, 2000), "until a twentieth is free").not.toBeNull();
  expect(ask(7, 600, 2000)).toBeNull();
});

test("what a transaction counted is taken back with it, up to a mark or whole", () => {
  const tally = createTally([[1, { recipients: 2, bytes: 20 }]]);
  tally.begin();
  tally.change(1, -1, -10);
  const mark = tally.mark();
  tally.change(2, 5, 50);
  tally.change(1, 1, 10);
  tally.undo(mark);
  expect([tally.unsent, tally.usageOf(1), tally.usageOf(2)]).toEqual([
    1,
    { recipients: 1, bytes: 10 },
    { recipients: 0, bytes: 0 },
  ]);
  tally.begin();
  tally.undo(tally.mark());
  expect(tally.unsent).toBe(1);
});

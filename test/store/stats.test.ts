// What is particular to counting in the store: counts stand or fall with what they count, wait until they are folded,
// and stay small however many things there are to count.
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { counterMask, type Totals } from "../../src/model/counters.ts";
import type { NewEvent } from "../../src/model/event.ts";
import { mailFacts } from "../../src/model/facts.ts";
import { createBatchRunner } from "../../src/store/sqlite/engine/batch.ts";
import { packMessage } from "../../src/store/message-packing.ts";
import { createWriter } from "../../src/store/sqlite/writer.ts";
import { databaseName } from "../../src/store/sqlite/engine/open.ts";
import type { Store } from "../../src/store/store.ts";
import { ManualClock } from "../support/clock.ts";
import { accept, minute, newDirectory, newEvent, newMessage, openSqlite, settlementOf } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

const hour = 60 * minute;
const day = 24 * hour;
let dataDir: string;
let clock: ManualClock;
let store: Store;
let account: number;

beforeEach(async () => {
  dataDir = newDirectory();
  clock = new ManualClock(Date.parse("2026-11-27T09:00:00Z"));
  store = await openSqlite(dataDir, clock);
  account = (await store.accountByName("default"))?.key ?? 0;
});
afterEach(async () => {
  await store.close();
  removeFolder(dataDir);
});

/** Only what was counted. */
function counted(totals: Totals): Partial<Totals> {
  return Object.fromEntries(Object.entries(totals).filter(([, n]) => n !== 0));
}

const dayTotals = async (accountKey = account): Promise<Partial<Totals>> =>
  counted(
    await store.statsTotals(accountKey, { from: clock.now() - day, to: clock.now() + day, test: false }),
  );

function facts(over: Partial<Parameters<typeof mailFacts>[0]> = {}): string {
  return mailFacts({
    accountKey: account,
    test: false,
    domain: "shop.example",
    pool: "default",
    tagsJson: '["orders"]',
    recipientDomain: "a.test",
    ip: "192.0.2.7",
    provider: "mx.a.test",
    classification: null,
    ...over,
  });
}

function countedEvent(over: Partial<NewEvent> = {}): NewEvent {
  const counters = counterMask(["delivered"]);
  return newEvent({ accountKey: account, receivedAt: clock.now(), counters, facts: facts(), ...over });
}

test("an acceptance counts its recipients, and an outcome its event, within the same commit", async () => {
  const [job] = await accept(store, newMessage({ accountKey: account, at: clock.now(), lease: true }));
  await accept(store, newMessage({ accountKey: account, at: clock.now(), to: ["b@b.test", "c@c.test"] }));
  expect(await dayTotals()).toEqual({ accepted: 3 });
  if (job) await store.settle(settlementOf(job, clock.now(), { event: countedEvent() }));
  expect(await dayTotals()).toEqual({ accepted: 3, delivered: 1 });
  // a second outcome of the same recipient writes nothing, and counts nothing
  if (job) await store.settle(settlementOf(job, clock.now(), { event: countedEvent() }));
  expect(await dayTotals()).toEqual({ accepted: 3, delivered: 1 });
  expect(await dayTotals(account + 1)).toEqual({});
});

test("what is counted is on disk before it is folded: a start finds it", async () => {
  await store.recordEvent(countedEvent());
  await store.close();
  const waits = new Sqlite(join(dataDir, databaseName), { readonly: true });
  expect(waits.prepare("SELECT count(*) FROM stats_waiting").pluck().get()).toBe(1);
  expect(waits.prepare("SELECT count(*) FROM stats_days").pluck().get()).toBe(0);
  waits.close();
  store = await openSqlite(dataDir, clock);
  expect(await dayTotals()).toEqual({ delivered: 1 });
  expect(await dayTotals()).toEqual({ delivered: 1 });
});

test("a call that is undone alone leaves no count, and those beside it keep theirs", async () => {
  const twice = countedEvent({ id: "evt_twice" });
  await store.recordEvent(twice);
  const results = await Promise.allSettled([
    store.recordEvent(countedEvent()),
    store.recordEvent(twice), // its id is taken: it fails after nothing else did
    store.settleReports([]),
    store.recordEvent(countedEvent()),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  expect(await dayTotals()).toEqual({ delivered: 3 });
});

test("where the counts cannot be written nothing is, and the next batch does not bring them along", async () => {
  await store.close();
  const path = join(dataDir, databaseName);
  const runner = createBatchRunner(path, clock, createWriter);
  const { packed, blobs } = packMessage(newMessage({ accountKey: account, at: clock.now() }));
  const lengths = blobs.map(({ byteLength }) => byteLength);
  const call = { command: "acceptMessage", arg: packed, at: 0, lengths } as const;
  const event = { command: "recordEvent", arg: countedEvent(), at: 0, lengths: [] } as const;
  runner.pragmas();
  const other = new Sqlite(path);
  other.exec("ALTER TABLE stats_waiting RENAME TO away");
  expect(runner.run({ calls: [call], bytes: Buffer.concat(blobs), withinMs: 1000 }).kind).toBe("refused");
  other.exec("ALTER TABLE away RENAME TO stats_waiting");
  expect(other.prepare("SELECT count(*) FROM messages").pluck().get()).toBe(0);
  other.close();
  expect(runner.run({ calls: [event], bytes: new Uint8Array(0), withinMs: 1000 }).kind).toBe("committed");
  runner.close();
  store = await openSqlite(dataDir, clock);
  expect(await dayTotals()).toEqual({ delivered: 1 });
});

test("a request that is rehearsed, kept and replayed counts once", async () => {
  const request = {
    accountKey: account,
    test: false,
    key: "k",
    fingerprint: Buffer.alloc(32),
    at: clock.now(),
  };
  for (let i = 0; i < 2; i++)
    await store.withIdempotency(
      request,
      (writing) => writing.recordEvent(countedEvent()),
      () => ({ status: 200, body: "{}", audit: null }),
    );
  expect(await dayTotals()).toEqual({ delivered: 1 });
});

// What is particular to retention on SQLite: what the walks read, and the space that comes back.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Purged } from "../../src/model/retention.ts";
import type { Store } from "../../src/store/store.ts";
import { pageBytes } from "../../src/store/sqlite/engine/pages.ts";
import { ManualClock } from "../support/clock.ts";
import {
  accept,
  inChunks,
  minute,
  newDirectory,
  newEndpoint,
  newEvent,
  newMessage,
  openSqlite,
  readAll,
  settlementOf,
} from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

const day = 24 * 60 * minute;
let dataDir: string;
let clock: ManualClock;
let store: Store;
let account: number;
let t0: number;

beforeEach(async () => {
  dataDir = newDirectory();
  clock = new ManualClock();
  store = await openSqlite(dataDir, clock);
  account = (await store.accountByName("default"))?.key ?? 0;
  t0 = clock.now();
});
afterEach(async () => {
  await store.close();
  removeFolder(dataDir);
});

const purge = (now: number, wishes: { content?: number; limit?: number } = {}): Promise<Purged> =>
  store.purge({
    now,
    contentBefore: now - (wishes.content ?? 3 * day),
    messagesBefore: now - 90 * day,
    eventsBefore: now - 30 * day,
    auditBefore: now - 90 * day,
    limit: wishes.limit ?? 1000,
  });

async function purgeAll(now: number, wishes: { content?: number; limit?: number } = {}): Promise<void> {
  while ((await purge(now, wishes)).more) continue;
}

async function finished(count: number, at: number, bytes: Uint8Array): Promise<void> {
  const content = { kind: "inline", bytes } as const;
  const one = async (): Promise<void> => {
    const message = newMessage({ accountKey: account, at, lease: true, content });
    const [job] = await accept(store, message);
    if (job) await store.settle(settlementOf(job, at));
  };
  await Promise.all(Array.from({ length: count }, one));
}

/** Reads with a connection of the test's own. */
function ask<T>(sql: string): T {
  const db = new Sqlite(join(dataDir, "svc.db"), { readonly: true });
  const value = db.prepare(sql).pluck().get() as T;
  db.close();
  return value;
}

const spoolFiles = (): string[] =>
  readdirSync(join(dataDir, "spool"), { recursive: true, encoding: "utf8" }).filter(
    (name) => name.length > 3,
  );

test("what is too young is not looked at, so that a purge costs what it removes and not what there is", async () => {
  await finished(200, t0, Buffer.from("young"));
  await purgeAll(t0 + day);
  expect(ask("SELECT count(*) FROM retention_later")).toBe(0);
  expect(ask("SELECT count(*) FROM retention_walks")).toBe(0);
});

test("what was put off is in the list once, and comes out with its row", async () => {
  const message = newMessage({ accountKey: account, at: t0, lease: true });
  const [job] = await accept(store, message);
  if (!job) throw new Error("no job");
  for (const days of [4, 8, 12, 100, 200]) await purgeAll(t0 + days * day);
  expect(ask("SELECT group_concat(kind) FROM retention_later")).toBe("content,messages");
  await store.settle(settlementOf(job, t0 + 200 * day));
  for (const days of [300, 400]) await purgeAll(t0 + days * day);
  expect(ask("SELECT count(*) FROM retention_later")).toBe(0);
  expect(ask("SELECT count(*) FROM messages")).toBe(0);
});

test("a piece looks at no more of what was put off than its limit allows", async () => {
  const send = () => accept(store, newMessage({ accountKey: account, at: t0, lease: true }));
  await Promise.all(Array.from({ length: 100 }, send));
  await purgeAll(t0 + 4 * day);
  expect(ask("SELECT count(*) FROM retention_later WHERE kind = 'content'")).toBe(100);
  const again = t0 + 8 * day;
  expect((await purge(again, { limit: 100 })).more).toBe(true);
  // A quarter of the limit, at five a message.
  expect(
    ask(`SELECT count(*) FROM retention_later WHERE kind = 'content' AND since <= ${again - 3 * day}`),
  ).toBe(95);
});

test("spool files go after the commit that forgets them; one that cannot go is an orphan of the next start", async () => {
  const put = async () => {
    const content = await store.putContent(inChunks(Buffer.alloc(100_000), 50_000));
    const [job] = await accept(store, newMessage({ accountKey: account, at: t0, lease: true, content }));
    if (job) await store.settle(settlementOf(job, t0));
    return content.kind === "spool" ? content.name : "";
  };
  const first = await put();
  const waiting = newMessage({
    accountKey: account,
    at: t0,
    content: await store.putContent(inChunks(Buffer.alloc(100_000), 50_000)),
  });
  await accept(store, waiting);
  expect(spoolFiles().some((name) => name.endsWith(first))).toBe(true);
  expect(await purge(t0 + 3 * day)).toMatchObject({ content: 1, files: 1 });
  expect(spoolFiles()).toHaveLength(1);
  const { content } = (await store.message(account, waiting.message.id)) ?? {};
  if (!content) throw new Error("no content");
  expect(await readAll(store.openContent(content))).toHaveLength(100_000);
});

test("an event that is still to be queued for endpoints stays, however old it is", async () => {
  for (let n = 0; n < 7; n++) await store.createEndpoint(newEndpoint(account, t0, { active: false }));
  await store.recordEvent(newEvent({ accountKey: account, receivedAt: t0 }));
  const events = () => ask("SELECT count(*) FROM events");
  await purgeAll(t0 + 400 * day);
  expect(events()).toBe(1);
  for (const { id } of await store.listEndpoints(account)) await store.deleteEndpoint(account, id);
  await purgeAll(t0 + 900 * day);
  expect(events()).toBe(1);
  for (let piece = await store.fanOut(account, null); piece;) piece = await store.fanOut(account, piece);
  await purgeAll(t0 + 1400 * day);
  expect(events()).toBe(0);
});

test("pages that stood empty for ten minutes are given back: the file shrinks", async () => {
  await finished(400, t0, Buffer.alloc(50_000, "x"));
  await store.close();
  store = await openSqlite(dataDir, clock);
  const size = (): number => statSync(join(dataDir, "svc.db")).size;
  const full = size();
  expect(full).toBeGreaterThan(20_000_000);

  const late = t0 + 3 * day;
  await purgeAll(late);
  expect(Number(ask("PRAGMA freelist_count")) * pageBytes).toBeGreaterThan(18_000_000);
  await finished(200, late, Buffer.alloc(50_000, "x")); // fills half of them again
  await purgeAll(late + 9 * minute);
  expect(size()).toBe(full);
  for (const minutes of [10, 20]) await purgeAll(late + minutes * minute);
  expect(ask("PRAGMA freelist_count")).toBe(256);
  expect(size()).toBeLessThan(full * 0.7);
  expect(ask("PRAGMA integrity_check")).toBe("ok");
});

test("a purge in the middle of load leaves every acknowledged message whole", async () => {
  await finished(1500, t0, Buffer.alloc(9000, "old"));
  const late = t0 + 90 * day;
  let purging = true;
  const acknowledged: string[] = [];
  const sender = async (): Promise<void> => {
    while (purging) {
      const message = newMessage({ accountKey: account, at: late, text: "Subject: new\r\n\r\nnew\r\n" });
      await accept(store, message);
      acknowledged.push(message.message.id);
    }
  };
  const senders = Array.from({ length: 8 }, sender);
  await purgeAll(late, { limit: 400 });
  purging = false;
  await Promise.all(senders);

  expect(acknowledged.length).toBeGreaterThan(50);
  expect(ask("SELECT count(*) FROM messages")).toBe(acknowledged.length);
  for (const id of acknowledged) {
    const { content } = (await store.message(account, id)) ?? {};
    if (!content) throw new Error(`${id} lost its content`);
    expect((await readAll(store.openContent(content))).toString()).toBe("Subject: new\r\n\r\nnew\r\n");
  }
  const { queued } = await store.queueCounts();
  expect(queued).toBe(acknowledged.length);
  expect(ask("PRAGMA integrity_check")).toBe("ok");
});

test("what is old enough is counted until the first row that is too young; what a walk has passed is not counted again", async () => {
  await finished(5, t0, Buffer.from("x"));
  await finished(3, t0 + 5 * day, Buffer.from("x"));
  const before = (at: number) => ({
    contentBefore: at,
    messagesBefore: at - 90 * day,
    eventsBefore: at - 30 * day,
    auditBefore: at - 90 * day,
  });
  const none = { rows: 0, more: false };
  expect(await store.expired(before(t0 - 1))).toEqual({
    content: none,
    messages: none,
    events: none,
    audit: none,
  });
  expect((await store.expired(before(t0 + day))).content).toEqual({ rows: 5, more: false });
  await purgeAll(t0 + 4 * day);
  expect((await store.expired(before(t0 + day))).content).toEqual(none);
  expect((await store.expired(before(t0 + 6 * day))).content).toEqual({ rows: 3, more: false });
});

test("a run that is asked for returns free space at once, and says how much", async () => {
  await finished(400, t0, Buffer.alloc(20_000, "x"));
  const before = statSync(join(dataDir, "svc.db")).size;
  const request = {
    now: t0 + 4 * day,
    contentBefore: t0 + day,
    messagesBefore: 0,
    eventsBefore: 0,
    auditBefore: 0,
    limit: 2000,
  };
  let [returned, more] = [0, true];
  while (more) {
    const purged = await store.purge({ ...request, returnAll: true });
    returned += purged.returnedBytes;
    ({ more } = purged);
  }
  expect(returned).toBeGreaterThan(5_000_000);
  expect(returned % 8192).toBe(0);
  expect(statSync(join(dataDir, "svc.db")).size).toBeLessThan(Math.max(before, 8_000_000) - 4_000_000);
});

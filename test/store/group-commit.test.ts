import { mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { packMessage } from "../../src/store/message-packing.ts";
import { createBatchRunner } from "../../src/store/sqlite/engine/batch.ts";
import type { Batch, Call } from "../../src/store/sqlite/engine/batch.ts";
import { createGroupCommit } from "../../src/store/sqlite/engine/group-commit.ts";
import type { GroupCommit } from "../../src/store/sqlite/engine/group-commit.ts";
import { checkpointAtBytes } from "../../src/store/sqlite/engine/wal.ts";
import { migrate } from "../../src/store/sqlite/migrations.ts";
import { databaseName, openReading, openWriting, prepareFiles } from "../../src/store/sqlite/engine/open.ts";
import { ownerOf, writerThread } from "../../src/store/sqlite/sqlite-store.ts";
import { remote, type Remote } from "../../src/store/sqlite/remote.ts";
import type { Commands } from "../../src/store/sqlite/nouns.ts";
import { createWriter } from "../../src/store/sqlite/writer.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { ManualClock } from "../support/clock.ts";
import { accept, newEvent, newMessage, newSuppression, openSqlite } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

let dataDir: string;
let path: string;
let open: GroupCommit | null;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "svc-commit-"));
  path = join(dataDir, databaseName);
  open = null;
});
afterEach(async () => {
  await open?.drain();
  await open?.close();
  removeFolder(dataDir);
});

function makeDatabase(): void {
  prepareFiles(dataDir);
  const db = openWriting(path);
  migrate(db, path);
  db.close();
}

const start = (clock: Clock = systemClock): GroupCommit =>
  (open = createGroupCommit(
    { clock, log: silentLog, ownerOf, startWriter: writerThread(path) },
    { onWritten: vi.fn(), onCommit: vi.fn(), onLost: vi.fn(), onRefusal: vi.fn() },
  ));
const commands = (): Remote<Commands> => remote<Commands>(start().call);

function suppress(name: string): Call {
  const arg = { entries: [newSuppression(1, `${name}@x.test`)], at: 1 };
  return { command: "addSuppressions", arg, at: 0, lengths: [] };
}
const batchOf = (calls: Call[]): Batch => ({ calls, bytes: new Uint8Array(0), withinMs: 1000 });
/** An event whose id stands already: its own fault, met in the middle of a batch. */
const event = newEvent({ accountKey: 1, receivedAt: 1, id: "evt_twice" });
const record: Call = { command: "recordEvent", arg: event, at: 0, lengths: [] };

test("a call that fails leaves nothing of itself, and everything of the others, in the one commit", () => {
  makeDatabase();
  const runner = createBatchRunner(path, systemClock, createWriter);
  const result = runner.run(batchOf([suppress("a"), record, suppress("b"), record, suppress("c")]));
  expect(result).toMatchObject({
    kind: "committed",
    failures: [[3, expect.stringContaining("UNIQUE")]],
    commit: { events: true, deliveries: false },
  });
  const db = openReading(path, 1000);
  expect(db.prepare("SELECT canonical FROM suppressions").pluck().all()).toEqual([
    "a@x.test",
    "b@x.test",
    "c@x.test",
  ]);
  expect(db.prepare("SELECT count(*) FROM events").pluck().get()).toBe(1);
  db.close();
  runner.close();
});

test("a batch whose time is over before its calls are ends there: what was written is kept, the others are not begun", () => {
  makeDatabase();
  const runner = createBatchRunner(path, systemClock, createWriter);
  const result = runner.run({ ...batchOf([suppress("a"), suppress("b")]), withinMs: 0 });
  expect(result.kind === "committed" && result.results).toHaveLength(1);
  const db = openReading(path, 1000);
  expect(db.prepare("SELECT canonical FROM suppressions").pluck().all()).toEqual(["a@x.test"]);
  db.close();
  runner.close();
});

test("the queue's length leaves out what was undone", () => {
  makeDatabase();
  const runner = createBatchRunner(path, systemClock, createWriter);
  const messageCall = (id: string | null, maxQueue: number) => {
    const message = newMessage({ accountKey: 1, at: 1, maxQueue });
    if (id !== null) message.message.id = id;
    const { packed, blobs } = packMessage(message);
    return { packed, blobs };
  };
  const run = (messages: ReturnType<typeof messageCall>[]) => {
    let at = 0;
    const calls = messages.map(({ packed, blobs }): Call => {
      const lengths = blobs.map((blob) => blob.byteLength);
      const call: Call = { command: "acceptMessage", arg: packed, at, lengths };
      at += lengths.reduce((sum, length) => sum + length, 0);
      return call;
    });
    return runner.run({
      calls,
      bytes: new Uint8Array(Buffer.concat(messages.flatMap(({ blobs }) => blobs))),
      withinMs: 1000,
    });
  };
  expect(run([messageCall("msg_1", 0), messageCall("msg_1", 0), messageCall(null, 0)])).toMatchObject({
    failures: [[1, expect.anything()]],
  });
  expect(run([messageCall(null, 3)])).toMatchObject({ results: [{ kind: "accepted" }] });
  expect(run([messageCall(null, 3)])).toMatchObject({ results: [{ kind: "queue_full" }] });
  runner.close();
});

test("a database that cannot be opened fails the calls it had; the thread is started again by the next one", async () => {
  const writer = start();
  const write = remote<Commands>(writer.call);
  await expect(writer.ready()).rejects.toThrow("unable to open database file");
  await expect(write.noteUse({ apiKeys: [], smtpCredentials: [], at: 1 })).rejects.toBeInstanceOf(
    StoreUnavailable,
  );
  makeDatabase();
  expect(await write.clearInbox({ accountKey: 1 })).toBe(0);
});

test("after a batch of two, a caller is joined by a second one or leaves when the wait is over", async () => {
  makeDatabase();
  const clock = new ManualClock();
  const write = remote<Commands>(start(clock).call);
  const add = (name: string) => {
    const entries = [newSuppression(1, `${name}@x.test`)];
    return write.addSuppressions({ entries, at: 1 });
  };
  const settled: string[] = [];
  await Promise.all([add("a"), add("b")]);
  const [third, fourth] = [add("c"), add("d")];
  await Promise.all([third, fourth]); // as many as before: nothing waits for the clock
  const alone = add("e").then(() => settled.push("e"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(settled).toEqual([]);
  await clock.advance(60_000); // half of a sync, however long that took
  await alone;
  await add("f"); // the last batch had one caller: no wait
});

test("more calls than a batch has are all answered, each its own answer, in order of arrival", async () => {
  makeDatabase();
  const write = commands();
  const order: number[] = [];
  const calls = Array.from({ length: 2500 }, async (_, i) => {
    const changes = await write.addSuppressions({
      entries: [newSuppression(1, `n${i}@x.test`)],
      at: i,
    });
    order.push(i);
    return Array.isArray(changes) ? changes[0]?.row.canonical : null;
  });
  expect(await Promise.all(calls)).toEqual(Array.from({ length: 2500 }, (_, i) => `n${i}@x.test`));
  expect(order).toEqual(Array.from({ length: 2500 }, (_, i) => i));
});

test("a call beyond four megabytes of its neighbours goes in a batch of its own, its bytes whole", async () => {
  makeDatabase();
  const write = commands();
  const hashes = Array.from({ length: 3 }, (_, i) => new Uint8Array(3_000_000).fill(i + 1));
  const create = (hash: Uint8Array, i: number) => {
    const key = {
      id: `key_${i}`,
      accountKey: 1,
      name: "n",
      test: false,
      scope: "send",
      hint: "h",
      allowIps: [],
      status: "active",
    } as const;
    return write.createApiKey(
      { ...key, allowIps: [], createdAt: 1, expiresAt: null, rates: {}, dailyQuota: null },
      [hash],
    );
  };
  const db = openWriting(path);
  db.prepare(
    "INSERT INTO accounts (key, id, name, status, created_at) VALUES (1, 'a', 'n', 'active', 1)",
  ).run();
  await Promise.all(hashes.map(create));
  const kept = db.prepare<[], { hash: Buffer }>("SELECT hash FROM api_keys ORDER BY key").all();
  expect(kept.map(({ hash }, i) => hash.equals(hashes[i] ?? new Uint8Array(0)))).toEqual([true, true, true]);
  db.close();
});

test("the log is copied into the database while the store runs, and is empty after it", async () => {
  const clock = new ManualClock();
  const store = await openSqlite(dataDir, clock);
  const sizeOf = (name: string): number =>
    statSync(join(dataDir, name), { throwIfNoEntry: false })?.size ?? 0;
  const text = "x".repeat(60_000);
  for (let written = 0; written < checkpointAtBytes; written += 10 * text.length) {
    await Promise.all(
      Array.from({ length: 10 }, () => accept(store, newMessage({ accountKey: 1, at: clock.now(), text }))),
    );
  }
  await expect.poll(() => sizeOf(databaseName)).toBeGreaterThan(checkpointAtBytes / 2);
  await store.close();
  expect(sizeOf(`${databaseName}-wal`)).toBe(0);
});

// The check of the whole store while it is used: it finds what is damaged, missing, cut short or left over, and finds a store
// that is written to meanwhile sound.
import { mkdirSync, readdirSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isSound, type StoreCheck } from "../../src/model/store-check.ts";
import type { Store } from "../../src/store/store.ts";
import { ManualClock } from "../support/clock.ts";
import { accept, inChunks, newDirectory, newMessage, openSqlite } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

let dir: string;
let dataDir: string;
let clock: ManualClock;
let store: Store;
let account: number;

beforeEach(async () => {
  dir = newDirectory();
  dataDir = join(dir, "data");
  clock = new ManualClock(Date.now());
  store = await openSqlite(dataDir, clock);
  account = (await store.accountByName("default"))?.key ?? 0;
});
afterEach(async () => {
  await store.close();
  removeFolder(dir);
});

const accepted = (content?: Awaited<ReturnType<Store["putContent"]>>) =>
  accept(store, newMessage({ accountKey: account, at: clock.now(), ...(content ? { content } : {}) }));
const large = () => store.putContent(inChunks(Buffer.alloc(100_000, "large "), 10_000));

async function check(): Promise<StoreCheck> {
  const directory = join(dir, "copy");
  mkdirSync(directory);
  const { signal } = new AbortController();
  const found = await store.check({ directory, onProgress: () => undefined, signal });
  removeFolder(directory);
  return found;
}

const fileOf = (name: string): string => join(dataDir, "spool", name.slice(0, 2), name);

/** Changes the database beside the store, as a fault of the disk would: nothing of it is seen as a write. */
function damage(change: (db: Sqlite.Database) => void): void {
  const db = new Sqlite(join(dataDir, "svc.db"));
  db.unsafeMode(true);
  db.pragma("foreign_keys = OFF");
  change(db);
  db.pragma("wal_checkpoint(PASSIVE)");
  db.close();
}

test("a store that is written to meanwhile is sound", async () => {
  await accepted(await large());
  let checking = true;
  const writing = (async () => {
    while (checking) await accepted();
  })();
  const found = await check();
  checking = false;
  await writing;
  expect(isSound(found)).toBe(true);
  expect(found).toMatchObject({
    faults: [],
    danglingRows: 0,
    files: { named: 1, missing: 0, cutShort: 0, unnamed: 0 },
  });
  expect(found.databaseBytes).toBeGreaterThan(100_000);
});

test("files that are missing, cut short or of no message are counted; a fresh one is of a message to come", async () => {
  const names = [];
  for (let n = 0; n < 3; n++) {
    const content = await large();
    if (content.kind !== "spool") throw new Error("expected a file");
    names.push(content.name);
    await accepted(content);
  }
  rmSync(fileOf(names[0] ?? ""));
  truncateSync(fileOf(names[1] ?? ""), 99_999);
  const folder = join(dataDir, "spool", "ab");
  mkdirSync(folder, { recursive: true });
  for (const [name, ageSeconds] of [
    ["ab".repeat(16), 7200],
    ["abcd".repeat(8), 60],
  ] as const) {
    writeFileSync(join(folder, name), "x");
    const at = clock.now() / 1000 - ageSeconds;
    utimesSync(join(folder, name), at, at);
  }
  const found = await check();
  expect(found.files).toEqual({ named: 3, missing: 1, cutShort: 1, unnamed: 1 });
  expect(isSound(found)).toBe(false);
});

test("an index that has not its rows, and a row that names none, are found", async () => {
  for (let n = 0; n < 20; n++) await accepted();
  damage((db) => {
    db.pragma("writable_schema = ON");
    db.exec(
      "UPDATE sqlite_schema SET sql = replace(sql, 'WHERE content_name IS NOT NULL', '') WHERE name = 'messages_spool'",
    );
    db.exec(
      `INSERT INTO endpoints (id, account_key, url, event_mask, active, secret, created_at, updated_at, consecutive_failures)
       VALUES ('x', 4711, 'https://a', 0, 1, 's', 0, 0, 0)`,
    );
  });
  // The writer has not seen it: its next commit does not mark what was changed beside it.
  await store.close();
  store = await openSqlite(dataDir, clock);
  const found = await check();
  expect(found.faults.length).toBeGreaterThan(0);
  expect(found.danglingRows).toBe(1);
  expect(isSound(found)).toBe(false);
});

test("one runs at a time, a backup included, and nothing of it stays", async () => {
  mkdirSync(join(dir, "other"));
  const first = check();
  const { signal } = new AbortController();
  const request = { directory: join(dir, "other"), onProgress: () => undefined, signal };
  await expect(store.copyInto({ ...request, content: "all" })).rejects.toThrow(
    "a backup or a check is running",
  );
  await first;
  expect(readdirSync(join(dir, "other"))).toEqual([]);
});

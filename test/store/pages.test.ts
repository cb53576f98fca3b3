// Databases of other page sizes: one that was made with smaller pages goes on with them.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { restoreStore } from "../../src/store/sqlite/restore.ts";
import { ManualClock } from "../support/clock.ts";
import { accept, newDirectory, newMessage, openSqlite } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

function folder(): string {
  const dir = newDirectory();
  onTestFinished(() => removeFolder(dir));
  return dir;
}

function makeDatabase(path: string, pageBytes: number): Sqlite.Database {
  const db = new Sqlite(path);
  db.pragma(`page_size = ${pageBytes}`);
  db.pragma("auto_vacuum = INCREMENTAL");
  db.pragma("journal_mode = WAL");
  return db;
}

test("a database of smaller pages is written, copied and restored as any other", async () => {
  const dir = folder();
  const [dataDir, target] = [join(dir, "data"), join(dir, "copy")];
  mkdirSync(target);
  mkdirSync(dataDir);
  const db = makeDatabase(join(dataDir, "svc.db"), 4096);
  db.exec("CREATE TABLE t (n); DROP TABLE t");
  db.close();
  const clock = new ManualClock();
  const store = await openSqlite(dataDir, clock);
  const account = (await store.accountByName("default"))?.key ?? 0;
  for (let n = 0; n < 20; n++)
    await accept(store, newMessage({ accountKey: account, at: clock.now(), text: "x".repeat(50_000) }));
  const { signal } = new AbortController();
  const copy = await store.copyInto({
    directory: target,
    content: "all",
    onProgress: () => undefined,
    signal,
  });
  await store.close();
  const sizeOf = (folderOf: string): unknown => {
    const closed = new Sqlite(join(folderOf, "svc.db"), { readonly: true });
    const size = closed.pragma("page_size", { simple: true });
    closed.close();
    return size;
  };
  expect(sizeOf(dataDir)).toBe(4096);
  expect(copy.counts).toMatchObject({ messages: 20, unsentRecipients: 20 });
  const into = join(dir, "new");
  restoreStore({
    counts: { files: 0, filesMissing: 0 },
    from: target,
    dataDir: into,
    now: clock.now(),
    createdAt: clock.now(),
    stamp: "20261127T090000Z",
    others: [],
  });
  const renewed = await openSqlite(into, clock);
  expect((await renewed.listMessages(account, {}, { limit: 50, cursor: null })).rows).toHaveLength(20);
  await renewed.close();
  expect(sizeOf(into)).toBe(4096);
});

// The write-ahead log's file: how it gets short again after a reader kept it from being restarted, and who writes to the
// database beside the writer: no connection does.
import { closeSync, mkdtempSync, openSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { createBatchRunner } from "../../src/store/sqlite/engine/batch.ts";
import { databaseName, openReading, openWriting, prepareFiles } from "../../src/store/sqlite/engine/open.ts";
import { copyLog } from "../../src/store/sqlite/engine/snapshot.ts";
import { createWalState, cutLogFile, keptBytes } from "../../src/store/sqlite/engine/wal.ts";
import { migrate } from "../../src/store/sqlite/migrations.ts";
import { createWriter } from "../../src/store/sqlite/writer.ts";
import { removeFolder } from "../support/folders.ts";
import { newSuppression } from "./fixtures.ts";

const pieceBytes = 4 * 1024 * 1024;
const noFile = 1_000_000;

let dir: string;
let path: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "svc-log-"));
  path = join(dir, databaseName);
  prepareFiles(dir);
  const db = openWriting(path);
  migrate(db, path);
  db.close();
});
afterEach(() => removeFolder(dir));

const sizeOfLog = (): number => statSync(`${path}-wal`).size;

function writer(held = () => false) {
  const runner = createBatchRunner(path, systemClock, createWriter, held);
  const write = (name: string): void => {
    const arg = { entries: [newSuppression(1, `${name}@x.test`)], at: 1 };
    const calls = [{ command: "addSuppressions", arg, at: 0, lengths: [] }];
    expect(runner.run({ calls, bytes: new Uint8Array(0), withinMs: 1000 }).kind).toBe("committed");
    runner.tidy();
  };
  return { write, close: () => runner.close() };
}

test("a file that has outgrown its log is cut a piece after each batch, down to what it keeps, and the log stays whole", () => {
  const db = openWriting(path);
  db.prepare("SELECT count(*) FROM suppressions").get(); // makes the log's file
  const { write, close } = writer();
  truncateSync(`${path}-wal`, keptBytes + 2 * pieceBytes + 1); // as a log leaves it that a backup let grow
  const sizes: number[] = [];
  for (const name of ["a", "b", "c", "d"]) {
    write(name);
    sizes.push(sizeOfLog() - keptBytes);
  }
  expect(sizes).toEqual([pieceBytes + 1, 1, 0, 0]);
  expect(db.prepare("SELECT count(*) FROM suppressions").pluck().get()).toBe(4);
  expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
  db.close();
  close();
});

test("a file that grew while a backup held the log is cut too, though a commit has restarted the log by itself", () => {
  let held = false;
  const { write, close } = writer(() => held);
  write("a"); // the file is short: nothing to cut
  held = true;
  write("b");
  truncateSync(`${path}-wal`, keptBytes + pieceBytes);
  held = false;
  write("c");
  expect(sizeOfLog()).toBe(keptBytes);
  close();
});

test("nothing is cut off while the log itself may reach that far", () => {
  const file = join(dir, "other");
  writeFileSync(`${file}-wal`, "");
  truncateSync(`${file}-wal`, 2 * keptBytes);
  expect(cutLogFile(file, { bytes: keptBytes, copiedBytes: keptBytes })).toBe(true);
  expect(statSync(`${file}-wal`).size).toBe(2 * keptBytes);
});

test("to open a second connection that may write writes nothing: the log and what others have cached stay", () => {
  const db = openWriting(path);
  db.exec("INSERT INTO accounts (id, name, status, created_at) VALUES ('a', 'n', 'active', 1)");
  const [state, version] = [createWalState(db)(), db.pragma("data_version", { simple: true })];
  openWriting(path).close();
  expect(createWalState(db)()).toEqual(state);
  expect(db.pragma("data_version", { simple: true })).toBe(version);
  db.close();
});

test("a log that a snapshot kept is copied into the database and synced before the writer restarts it", () => {
  const { write, close } = writer();
  write("a");
  const db = openReading(path, 1000);
  const state = createWalState(db);
  const file = openSync(dir, "r"); // any that can be synced; the database's own must not be closed here
  expect(state().copiedBytes).toBeLessThan(state().bytes);
  copyLog(path, file, () => false);
  expect(state().copiedBytes).toBe(state().bytes);
  closeSync(file);
  write("b");
  expect(() => copyLog(path, noFile, () => false)).toThrow("EBADF");
  db.close();
  close();
});

test("of a log that an earlier run left nothing is cut off, though the first batch finds the disk full", () => {
  const db = openWriting(path);
  const reader = openReading(path, 1000);
  reader.exec("BEGIN; SELECT count(*) FROM suppressions"); // the log can be neither copied nor emptied
  db.exec(`CREATE TABLE long (text BLOB); INSERT INTO long VALUES (zeroblob(${keptBytes + pieceBytes}))`);
  const before = sizeOfLog();
  const runner = createBatchRunner(path, systemClock, (own) => {
    own.pragma("busy_timeout = 0");
    own.pragma("max_page_count = 1"); // as many as there are
    const grow = (): void => void own.exec("INSERT INTO long VALUES (zeroblob(1000000))");
    return { ...createWriter(own), commands: { grow } };
  });
  const calls = [{ command: "grow", arg: null, at: 0, lengths: [] }];
  expect(runner.run({ calls, bytes: new Uint8Array(0), withinMs: 1000 })).toMatchObject({ why: "full" });
  runner.tidy();
  expect(sizeOfLog()).toBe(before);
  reader.close();
  db.close();
  runner.close();
});

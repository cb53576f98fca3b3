// A disk, or a file system of the network, that reads and writes less at once than it is asked to, as write(2) on a disk that
// is almost full: the copy has every byte, or fails.
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import type * as Fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { createChangedPages, createPageWatch } from "../../src/store/sqlite/engine/changed-pages.ts";
import { openCopy } from "../../src/store/sqlite/engine/copy.ts";
import { createHeldLog } from "../../src/store/sqlite/engine/held-log.ts";
import { makeFile, openWriting } from "../../src/store/sqlite/engine/open.ts";
import { copyDatabase } from "../../src/store/sqlite/engine/page-copy.ts";
import { createWalState, frameBytesOf } from "../../src/store/sqlite/engine/wal.ts";

const atOnce = 5000;

vi.mock("node:fs", async (original) => {
  const fs = await original<typeof Fs>();
  return {
    ...fs,
    writeSync: (fd: number, buffer: Buffer, offset: number, length: number, position: number) =>
      fs.writeSync(fd, buffer, offset, Math.min(length, atOnce), position),
    readSync: (fd: number, buffer: Buffer, offset: number, length: number, position: number) =>
      fs.readSync(fd, buffer, offset, Math.min(length, atOnce), position),
  };
});

test("a copy has every byte, of the file and of the log, where the disk takes and gives few at once", () => {
  const dir = mkdtempSync(join(tmpdir(), "svc-page-copy-"));
  const path = join(dir, "svc.db");
  makeFile(path);
  const db = openWriting(path);
  const fd = openSync(path, "r");
  onTestFinished(() => {
    db.close();
    closeSync(fd);
    rmSync(dir, { recursive: true });
  });
  db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)");
  const put = db.prepare("INSERT INTO t (id, v) VALUES (?, ?)");
  for (let id = 0; id < 100; id++) put.run(id, Buffer.alloc(70_000, id + 1));
  db.pragma("wal_checkpoint(TRUNCATE)");
  for (let id = 100; id < 130; id++) put.run(id, Buffer.alloc(70_000, id + 1));
  const changed = createChangedPages();
  changed.watch();
  const frameBytes = frameBytesOf(db);
  createPageWatch(path, changed.shared).look(createWalState(db)().bytes / frameBytes, frameBytes);

  const target = join(dir, "copy.db");
  makeFile(target);
  const source = { path, fd, changed: changed.shared, held: createHeldLog().shared };
  copyDatabase(source, target, () => undefined);
  const copy = openCopy(target);
  onTestFinished(() => void copy.close());
  const rows = copy.prepare("SELECT id, v FROM t ORDER BY id").all() as { id: number; v: Buffer }[];
  expect(rows.length).toBe(130);
  for (const { id, v } of rows) expect(v.equals(Buffer.alloc(70_000, id + 1))).toBe(true);
});

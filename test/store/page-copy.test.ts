// The copy of the database's file beside the writer: whatever is written, checkpointed and restarted between its steps, it is
// the database after one of the transactions, and all of it.
import { mkdtempSync, rmSync, statSync, closeSync, openSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import type { Database } from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { createBatchRunner, type PreparedWriter } from "../../src/store/sqlite/engine/batch.ts";
import {
  createChangedPages,
  createPageWatch,
  takeChangedPages,
} from "../../src/store/sqlite/engine/changed-pages.ts";
import { checkIntegrity, openCopy } from "../../src/store/sqlite/engine/copy.ts";
import { createHeldLog } from "../../src/store/sqlite/engine/held-log.ts";
import { makeFile, openWriting } from "../../src/store/sqlite/engine/open.ts";
import { copyDatabase } from "../../src/store/sqlite/engine/page-copy.ts";
import { createWalState, frameBytesOf } from "../../src/store/sqlite/engine/wal.ts";

/** The same numbers for the same seed (mulberry32). */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const rows = 9000;

interface World {
  path: string;
  db: Database;
  /** One transaction, noted for the copy, and whatever checkpoints come by chance, or none. */
  write(checkpoints?: boolean): void;
  /** The rows after transaction `number`. */
  rowsAfter(number: number): Map<number, string>;
  copy(between: (share: number) => void): Database;
  random(below: number): number;
}

function world(seed: number, pageBytes = 8192): World {
  const dir = mkdtempSync(join(tmpdir(), "svc-page-copy-"));
  const path = join(dir, "svc.db");
  makeFile(path);
  if (pageBytes !== 8192) {
    const older = new Sqlite(path); // a database keeps the size that it was made with
    older.pragma("auto_vacuum = INCREMENTAL");
    older.pragma(`page_size = ${pageBytes}`);
    older.exec("CREATE TABLE first (x)");
    older.close();
  }
  const db = openWriting(path);
  expect(db.pragma("page_size", { simple: true })).toBe(pageBytes);
  const random = randomOf(seed);
  const valueOf = (number: number, id: number): string =>
    `${number} ${id} `.repeat(150 + ((number * 31 + id) % 150));
  db.exec(
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL); CREATE INDEX t_v ON t (substr(v, 1, 20)); CREATE TABLE n (number INTEGER)",
  );
  const put = db.prepare("INSERT OR REPLACE INTO t (id, v) VALUES (?, ?)");
  const drop = db.prepare("DELETE FROM t WHERE id = ?");
  const history: Map<number, string | null>[] = [];
  const commit = (changes: Map<number, string | null>): void => {
    db.exec("BEGIN IMMEDIATE");
    for (const [id, v] of changes)
      if (v === null) drop.run(id);
      else put.run(id, v);
    db.prepare("UPDATE n SET number = ?").run(history.length);
    db.exec("COMMIT");
    history.push(changes);
  };
  db.exec("INSERT INTO n VALUES (0)");
  commit(new Map(Array.from({ length: rows }, (_, id) => [id, valueOf(0, id)])));
  db.pragma("wal_checkpoint(TRUNCATE)");

  const changed = createChangedPages();
  const held = createHeldLog();
  const watch = createPageWatch(path, changed.shared);
  const [state, frameBytes] = [createWalState(db), frameBytesOf(db)];
  const look = (): void => watch.look(state().bytes / frameBytes, frameBytes);
  const checkpoint = (): void => {
    const kind = random(12);
    if (kind < 3) db.pragma("wal_checkpoint(PASSIVE)");
    if (kind === 3 && !held.held()) db.pragma("wal_checkpoint(RESTART)");
    if (kind === 4 && !held.held()) db.pragma("wal_checkpoint(TRUNCATE)");
  };
  const fd = openSync(path, "r");
  onTestFinished(() => {
    db.close();
    closeSync(fd);
    rmSync(dir, { recursive: true });
  });
  return {
    path,
    db,
    random,
    write(checkpoints = true) {
      const number = history.length;
      const changes = new Map<number, string | null>();
      const [from, count] = [random(rows * 1.2), 1 + random(20)];
      const erases = random(4) === 0;
      for (let n = 0; n < count; n++) {
        const id = random(3) === 0 ? random(rows) : from + n;
        changes.set(id, erases ? null : valueOf(number, id));
      }
      commit(changes);
      if (random(5) === 0) db.pragma("incremental_vacuum(50)");
      look();
      if (checkpoints) checkpoint();
    },
    rowsAfter(number) {
      const model = new Map<number, string>();
      for (const changes of history.slice(0, number + 1))
        for (const [id, v] of changes)
          if (v === null) model.delete(id);
          else model.set(id, v);
      return model;
    },
    copy(between) {
      const target = join(dir, `copy-${random(1e9)}.db`);
      makeFile(target);
      changed.watch();
      look();
      copyDatabase({ path, fd, changed: changed.shared, held: held.shared }, target, between);
      changed.unwatch();
      expect(held.held()).toBe(false);
      const copy = openCopy(target);
      onTestFinished(() => void copy.close());
      checkIntegrity(copy, target);
      return copy;
    },
  };
}

const contentOf = (db: Database) => {
  const { number } = db.prepare("SELECT number FROM n").get() as { number: number };
  const found = db.prepare("SELECT id, v FROM t ORDER BY id").all() as { id: number; v: string }[];
  return { number, rows: new Map(found.map(({ id, v }) => [id, v])) };
};

function expectAMoment({ rowsAfter }: World, copy: Database): number {
  const { number, rows: found } = contentOf(copy);
  const model = rowsAfter(number);
  expect(found.size).toBe(model.size);
  for (const [id, v] of model)
    if (found.get(id) !== v) throw new Error(`row ${id} is not that of transaction ${number}`);
  return number;
}

test.each([
  [1, 8192],
  [2, 4096],
  [3, 8192],
  [4, 4096],
])(
  "it is the database after one transaction, whatever happens between its steps (seed %i, pages of %i)",
  (seed, pageBytes) => {
    const one = world(seed, pageBytes);
    const before = contentOf(one.db).number;
    let steps = 0;
    const copy = one.copy(() => {
      steps += 1;
      for (let n = one.random(30); n > 0; n--) one.write();
    });
    expect(steps).toBeGreaterThan(2);
    expect(contentOf(one.db).number).toBeGreaterThan(before);
    expect(expectAMoment(one, copy)).toBe(contentOf(one.db).number);
  },
);

test("a second copy of a database that was written between them has that, too", () => {
  const one = world(7);
  one.copy(() => one.write());
  for (let n = 0; n < 50; n++) one.write();
  one.db.pragma("wal_checkpoint(TRUNCATE)");
  expectAMoment(
    one,
    one.copy(() => one.write()),
  );
});

test("a second copy that begins before anything else is written has what only the log had", () => {
  const one = world(11);
  one.db.pragma("wal_checkpoint(TRUNCATE)");
  let wrote = false;
  one.copy(() => {
    if (!wrote) for (let n = 0; n < 30; n++) one.write(false);
    wrote = true;
  });
  let restarted = false;
  const copy = one.copy((share) => {
    if (share < 0.6 || restarted) return;
    restarted = true;
    one.db.pragma("wal_checkpoint(RESTART)");
    one.write(false);
  });
  expect(restarted).toBe(true);
  expectAMoment(one, copy);
});

test("a database that nothing is written to is copied as it is, from an empty log and from one that is copied in", () => {
  const one = world(8);
  expectAMoment(
    one,
    one.copy(() => undefined),
  );
  one.write();
  one.db.pragma("wal_checkpoint(PASSIVE)");
  expectAMoment(
    one,
    one.copy(() => undefined),
  );
});

test("one that shrinks while it is copied has a copy of its new length", () => {
  const one = world(9);
  let shrunk = false;
  const copy = one.copy(() => {
    if (shrunk) return;
    shrunk = true;
    one.db.exec("DELETE FROM t WHERE id > 1000");
    one.db.pragma("incremental_vacuum");
    one.write();
    one.db.pragma("wal_checkpoint(TRUNCATE)");
    one.write();
  });
  expect(copy.prepare("SELECT count(*) AS n FROM t WHERE id > 1000 AND id < 9000").get()).toMatchObject({
    n: expect.any(Number),
  });
  one.db.pragma("wal_checkpoint(TRUNCATE)");
  expect(statSync(one.path).size).toBe(Number(copy.pragma("page_count", { simple: true })) * 8192);
});

test("a copy whose changes could not be followed fails", () => {
  const one = world(10);
  const changed = createChangedPages();
  const watch = createPageWatch(join(one.path, "none"), changed.shared);
  changed.watch();
  watch.look(1, 4120);
  const target = `${one.path}.copy`;
  makeFile(target);
  const source = {
    path: one.path,
    fd: openSync(one.path, "r"),
    changed: changed.shared,
    held: createHeldLog().shared,
  };
  expect(() => copyDatabase(source, target, () => undefined)).toThrow("could not be followed");
});

test("a copy fails where another writer's thread goes on in the middle of it: one may have ended before it had looked", () => {
  const one = world(12);
  const changed = createChangedPages();
  const frameBytes = frameBytesOf(one.db);
  changed.watch();
  createPageWatch(one.path, changed.shared).look(0, frameBytes);
  expect(takeChangedPages(changed.shared)).toEqual([]);
  createPageWatch(one.path, changed.shared).look(0, frameBytes);
  expect(() => takeChangedPages(changed.shared)).toThrow("could not be followed");
});

test("a copy fails where the writer had a fault after a commit that nobody has looked at", () => {
  const one = world(13);
  const changed = createChangedPages();
  changed.watch();
  const faulty: PreparedWriter<null> = {
    commands: { write: () => one.db.inTransaction },
    state: { begin: () => undefined, mark: () => null, undo: () => undefined },
    flush: () => undefined,
    brought() {
      throw new Error("out of memory");
    },
  };
  const watch = createPageWatch(one.path, changed.shared);
  const runner = createBatchRunner(one.path, systemClock, () => faulty, { held: () => false, watch });
  runner.look();
  expect(takeChangedPages(changed.shared)).toBeInstanceOf(Array);
  const call = { command: "write", arg: null, at: 0, lengths: [] };
  const result = runner.run({ calls: [call], bytes: new Uint8Array(0), withinMs: 1000 });
  expect(result).toMatchObject({ kind: "refused", why: "failed" });
  runner.tidy();
  expect(() => takeChangedPages(changed.shared)).toThrow("could not be followed");
});

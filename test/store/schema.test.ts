import { rmSync } from "node:fs";
import { statSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { getTableConfig } from "drizzle-orm/sqlite-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SchemaTooNew } from "../../src/store/sqlite/engine/migrate.ts";
import { migrate, migrations } from "../../src/store/sqlite/migrations.ts";
import { openWriting, prepareFiles } from "../../src/store/sqlite/engine/open.ts";
import { tables } from "../../src/store/sqlite/schema.ts";
import { newDirectory } from "./fixtures.ts";

let dataDir: string;
beforeEach(() => (dataDir = newDirectory()));
afterEach(() => rmSync(dataDir, { recursive: true }));

function fresh() {
  const path = prepareFiles(dataDir);
  return { path, db: openWriting(path) };
}

interface Column {
  name: string;
  type: string;
  notnull: number;
  pk: number;
}

test("the table types say what the tables really are, and name them all", () => {
  const { db, path } = fresh();
  migrate(db, path);
  const names = db
    .prepare<[], { name: string }>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
    .all();
  expect(
    Object.values(tables)
      .map((table) => getTableConfig(table).name)
      .sort(),
  ).toEqual(names.map(({ name }) => name).sort());
  for (const table of Object.values(tables)) {
    const config = getTableConfig(table);
    const real = db.prepare<[], Column>(`PRAGMA table_info(${config.name})`).all();
    const keys = new Set(config.primaryKeys.flatMap(({ columns }) => columns.map(({ name }) => name)));
    const told = config.columns.map((column) => ({
      name: column.name,
      type: column.getSQLType().toUpperCase(),
      required: column.notNull,
      key: column.primary || keys.has(column.name),
    }));
    // an INTEGER PRIMARY KEY is never null, whatever PRAGMA table_info says
    const found = real.map(({ name, type, notnull, pk }) => ({
      name,
      type,
      required: notnull === 1 || pk > 0,
      key: pk > 0,
    }));
    const byName = (a: { name: string }, b: { name: string }): number => a.name.localeCompare(b.name);
    expect({ [config.name]: told.sort(byName) }).toEqual({ [config.name]: found.sort(byName) });
  }
  db.close();
});

test("every table is strict, and the space of deleted rows can be given back", () => {
  const { db, path } = fresh();
  migrate(db, path);
  const loose = db
    .prepare(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite_%'",
    )
    .all();
  expect(loose).toEqual([]);
  expect(db.pragma("auto_vacuum", { simple: true })).toBe(2);
  expect(db.pragma("synchronous", { simple: true })).toBe(2);
  db.close();
});

test("a database of a newer program is refused with both versions named, and left as it is", () => {
  const { db, path } = fresh();
  db.pragma("user_version = 99");
  expect(() => migrate(db, path)).toThrow(SchemaTooNew);
  expect(() => migrate(db, path)).toThrow(
    `schema version 99; this program knows versions up to ${migrations.length}`,
  );
  expect(db.pragma("user_version", { simple: true })).toBe(99);
  db.close();
});

test("a step on a database that holds something is preceded by a copy of it that only its owner can read", () => {
  const { db, path } = fresh();
  migrate(db, path);
  db.prepare(
    "INSERT INTO accounts (id, name, status, created_at) VALUES ('acct_1', 'kept', 'active', 1)",
  ).run();
  migrate(db, path, [...migrations, "ALTER TABLE accounts ADD COLUMN colour TEXT"]);
  const backup = `${path}.v${migrations.length}.bak`;
  expect(statSync(backup).mode & 0o777).toBe(0o600);
  const copy = new Sqlite(backup, { readonly: true });
  expect(copy.prepare("SELECT name FROM accounts").all()).toEqual([{ name: "kept" }]);
  expect(copy.pragma("user_version", { simple: true })).toBe(migrations.length);
  copy.close();
  expect(db.prepare("SELECT name, colour FROM accounts").all()).toEqual([{ name: "kept", colour: null }]);
  db.close();
});

test("a step that fails leaves the version before it, whole", () => {
  const { db, path } = fresh();
  migrate(db, path);
  const broken = [...migrations, "CREATE TABLE half (a); INSERT INTO nowhere VALUES (1)"];
  expect(() => migrate(db, path, broken)).toThrow("nowhere");
  expect(db.pragma("user_version", { simple: true })).toBe(migrations.length);
  expect(db.prepare("SELECT name FROM sqlite_schema WHERE name = 'half'").all()).toEqual([]);
  migrate(db, path);
  db.close();
});

test("the database file is its owner's alone", () => {
  const { db, path } = fresh();
  migrate(db, path);
  for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  db.close();
  expect(path).toBe(join(dataDir, "svc.db"));
});

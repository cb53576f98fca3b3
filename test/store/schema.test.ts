import { statSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { is, SQL } from "drizzle-orm";
import { getTableConfig, SQLiteSyncDialect, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { joinSteps, runMigrations, SchemaRefused } from "../../src/store/sqlite/engine/migrate.ts";
import { migrate, migrations, schemaFiles } from "../../src/store/sqlite/migrations.ts";
import { openWriting, prepareFiles } from "../../src/store/sqlite/engine/open.ts";
import { newDirectory } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

const tables: SQLiteTable[] = schemaFiles.flatMap((file) =>
  Object.values<unknown>(file).filter((value) => is(value, SQLiteTable)),
);

let dataDir: string;
beforeEach(() => (dataDir = newDirectory()));
afterEach(() => removeFolder(dataDir));

function fresh() {
  const path = prepareFiles(dataDir);
  return { path, db: openWriting(path) };
}

/** The schema with one version more. */
const withNext = (step: string) => joinSteps([migrations.steps, { [migrations.newest + 1]: step }]);

interface Column {
  name: string;
  type: string;
  notnull: number;
  pk: number;
  dflt_value: string | null;
}

const dialect = new SQLiteSyncDialect();
const byName = (a: { name: string }, b: { name: string }): number => a.name.localeCompare(b.name);
const textOf = (part: SQL): string => dialect.sqlToQuery(part).sql;

/** A default as SQLite keeps it. */
function defaultOf(column: SQLiteColumn): string | null {
  if (column.default === undefined) return null;
  const value: unknown = column.mapToDriverValue(column.default);
  return typeof value === "string" ? `'${value}'` : String(value);
}

function columnsOf(table: SQLiteTable) {
  const config = getTableConfig(table);
  const keys = new Set(config.primaryKeys.flatMap(({ columns }) => columns.map(({ name }) => name)));
  const declared = config.columns.map((column) => ({
    name: column.name,
    type: column.getSQLType().toUpperCase(),
    required: column.notNull,
    key: column.primary || keys.has(column.name),
    initially: defaultOf(column),
  }));
  return declared.toSorted(byName);
}

function indexesOf(table: SQLiteTable): string[] {
  const { name: of, indexes } = getTableConfig(table);
  const texts = indexes.map(({ config: { name, unique, columns, where } }) => {
    const parts = columns.map((column) => (is(column, SQL) ? textOf(column) : column.name)).join(", ");
    return `CREATE ${unique ? "UNIQUE " : ""}INDEX ${name} ON ${of} (${parts})${where ? ` WHERE ${textOf(where)}` : ""}`;
  });
  return texts.toSorted();
}

function uniquesOf(table: SQLiteTable): string[] {
  const { columns, uniqueConstraints } = getTableConfig(table);
  const single = columns.filter(({ isUnique }) => isUnique).map(({ name }) => name);
  const several = uniqueConstraints.map((constraint) =>
    constraint.columns.map(({ name }) => name).join(", "),
  );
  return [...single, ...several].toSorted();
}

function referencesOf(table: SQLiteTable): string[] {
  const texts = getTableConfig(table).foreignKeys.map((key) => {
    const { columns, foreignTable } = key.reference();
    const from = columns.map(({ name }) => name).join(", ");
    return `${from} -> ${getTableConfig(foreignTable).name}, ${key.onDelete ?? "no action"}`;
  });
  return texts.toSorted();
}

test("the table types say what the tables really are: every table, column and index, and no others", () => {
  const { db, path } = fresh();
  migrate(db, path);
  const names = db
    .prepare<[], { name: string }>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
    .all();
  expect(tables.map((table) => getTableConfig(table).name).sort()).toEqual(
    names.map(({ name }) => name).sort(),
  );
  for (const table of tables) {
    const { name: of } = getTableConfig(table);
    // an INTEGER PRIMARY KEY is never null, whatever PRAGMA table_info says
    const columns = db
      .prepare<[], Column>(`PRAGMA table_info(${of})`)
      .all()
      .map(({ name, type, notnull, pk, dflt_value }) => ({
        name,
        type,
        required: notnull === 1 || pk > 0,
        key: pk > 0,
        initially: dflt_value,
      }));
    const indexes = db
      .prepare<[string], string>(
        "SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?",
      )
      .pluck()
      .all(of);
    const uniques = db
      .prepare<[], string>(
        `SELECT (SELECT group_concat(name, ', ') FROM pragma_index_info(i.name)) FROM pragma_index_list('${of}') i WHERE origin = 'u'`,
      )
      .pluck()
      .all();
    const references = db
      .prepare<[], string>(
        `SELECT "from" || ' -> ' || "table" || ', ' || lower(on_delete) FROM pragma_foreign_key_list('${of}')`,
      )
      .pluck()
      .all();
    expect({
      [of]: [columnsOf(table), indexesOf(table), uniquesOf(table), referencesOf(table)],
    }).toEqual({
      [of]: [columns.toSorted(byName), indexes.toSorted(), uniques.toSorted(), references.toSorted()],
    });
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
  expect(() => migrate(db, path)).toThrow(SchemaRefused);
  expect(() => migrate(db, path)).toThrow(
    `schema version 99; this program knows versions up to ${migrations.newest}`,
  );
  expect(db.pragma("user_version", { simple: true })).toBe(99);
  db.close();
});

test("a schema has no gap in its versions", () => {
  expect(() => joinSteps([{ 5: "" }, { 7: "" }])).toThrow("gap");
  expect(joinSteps([{ 5: "a" }, { 6: "b" }, { 5: "c" }])).toEqual({
    first: 5,
    newest: 6,
    steps: { 5: "ac", 6: "b" },
  });
});

test("a step on a database with content is preceded by a copy of it that only its owner can read", () => {
  const { db, path } = fresh();
  migrate(db, path);
  db.prepare(
    "INSERT INTO accounts (id, name, status, created_at) VALUES ('acct_1', 'kept', 'active', 1)",
  ).run();
  runMigrations(db, path, withNext("ALTER TABLE accounts ADD COLUMN colour TEXT"));
  const backup = `${path}.v${migrations.newest}.bak`;
  expect(statSync(backup).mode & 0o777).toBe(0o600);
  const copy = new Sqlite(backup, { readonly: true });
  expect(copy.prepare("SELECT name FROM accounts").all()).toEqual([{ name: "kept" }]);
  expect(copy.pragma("user_version", { simple: true })).toBe(migrations.newest);
  copy.close();
  expect(db.prepare("SELECT name, colour FROM accounts").all()).toEqual([{ name: "kept", colour: null }]);
  db.close();
});

test("a database of an older version is brought to the newest step by step, and keeps its content", () => {
  const { db, path } = fresh();
  const first = "CREATE TABLE notes (key INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT";
  runMigrations(db, path, joinSteps([{ 3: first }]));
  db.prepare("INSERT INTO notes (body) VALUES ('kept')").run();
  const steps = joinSteps([
    { 3: first, 5: "CREATE INDEX notes_length ON notes (length)" },
    { 4: "ALTER TABLE notes ADD COLUMN length INTEGER; UPDATE notes SET length = length(body)" },
  ]);
  runMigrations(db, path, steps);
  runMigrations(db, path, steps); // nothing is left to do
  expect(db.prepare("SELECT body, length FROM notes INDEXED BY notes_length").all()).toEqual([
    { body: "kept", length: 4 },
  ]);
  expect(db.pragma("user_version", { simple: true })).toBe(5);
  const copy = new Sqlite(`${path}.v3.bak`, { readonly: true });
  expect(copy.prepare("SELECT * FROM notes").all()).toEqual([{ key: 1, body: "kept" }]);
  copy.close();
  db.close();
});

test("a counter that the database does not have gets its column: 0 of it were counted, and the other counts stay", () => {
  const { db, path } = fresh();
  migrate(db, path);
  db.exec("ALTER TABLE stats_days DROP COLUMN unsubscribed");
  db.exec(
    `INSERT INTO stats_days (day, account_key, test, kind, scope, scope_key, key, delivered) VALUES (1, 1, 0, 1, 0, '', '', 7)`,
  );
  migrate(db, path);
  expect(db.prepare("SELECT delivered, bounced, unsubscribed FROM stats_days").all()).toEqual([
    { delivered: 7, bounced: 0, unsubscribed: 0 },
  ]);
  db.close();
});

test("no key is the engine's to give out for ever: what is never given twice, the store numbers itself", () => {
  const { db, path } = fresh();
  migrate(db, path);
  expect(db.prepare("SELECT name FROM sqlite_schema WHERE name = 'sqlite_sequence'").all()).toEqual([]);
  db.close();
});

test("a step that fails leaves the version before it, whole", () => {
  const { db, path } = fresh();
  migrate(db, path);
  const broken = withNext("CREATE TABLE half (a); INSERT INTO nowhere VALUES (1)");
  expect(() => runMigrations(db, path, broken)).toThrow("nowhere");
  expect(db.pragma("user_version", { simple: true })).toBe(migrations.newest);
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

import type { Database } from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createAuditWrites } from "../../src/store/sqlite/audit.ts";
import { migrate } from "../../src/store/sqlite/migrations.ts";
import { openWriting, prepareFiles } from "../../src/store/sqlite/engine/open.ts";
import { createSequences } from "../../src/store/sqlite/sequences.ts";
import { newDirectory } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

let dataDir: string;
let db: Database;
beforeEach(() => {
  dataDir = newDirectory();
  const path = prepareFiles(dataDir);
  db = openWriting(path);
  migrate(db, path);
});
afterEach(() => {
  db.close();
  removeFolder(dataDir);
});

test("each sequence counts by itself, and goes on where it was when the connection is opened again", () => {
  const first = createSequences(db);
  expect([first.next("messages"), first.next("messages"), first.next("events")]).toEqual([1, 2, 1]);
  first.flush();
  const second = createSequences(db);
  expect([second.next("messages"), second.next("events"), second.next("recipients")]).toEqual([3, 2, 1]);
});

test("a number of a transaction that was rolled back is left out, also after the next one", () => {
  const sequences = createSequences(db);
  db.exec("BEGIN");
  sequences.next("messages");
  sequences.flush();
  db.exec("ROLLBACK");
  expect(sequences.next("messages")).toBe(2);
  sequences.flush();
  expect(createSequences(db).next("messages")).toBe(3);
});

test("the numbers of a dry run are given again, and those before it are kept", () => {
  const sequences = createSequences(db);
  sequences.next("messages");
  const mark = sequences.mark();
  expect([sequences.next("messages"), sequences.next("endpoints")]).toEqual([2, 1]);
  sequences.undo(mark);
  sequences.flush();
  expect(createSequences(db).next("messages")).toBe(2);
  expect([sequences.next("messages"), sequences.next("endpoints")]).toEqual([2, 1]);
});

test("an act whose number is taken is not left out of the audit log unseen", () => {
  const unspecific = {
    accountKey: null,
    sourceIp: null,
    requestId: null,
    target: null,
    times: 1,
    detail: {},
  };
  const act = { ...unspecific, at: 1, actorKind: "operator", actor: "root", action: "keys.create" } as const;
  const again = { ...createSequences(db), next: () => 7 };
  const audit = createAuditWrites(db, again);
  expect(audit.record(act)).toBe(true);
  expect(() => audit.record(act)).toThrow("audit.seq");
  const used = { ...act, action: "keys.used", sourceIp: "192.0.2.1" };
  const { record } = createAuditWrites(db, createSequences(db));
  expect([record(used), record(used)]).toEqual([true, false]);
});

test("a transaction that gave no number writes nothing", () => {
  const sequences = createSequences(db);
  sequences.next("events");
  sequences.flush();
  const before = db.prepare("SELECT total_changes() AS n").get();
  sequences.flush();
  expect(db.prepare("SELECT total_changes() AS n").get()).toEqual(before);
});

// How many tracking names the store keeps of an account.
import type { Database } from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SenderDomain } from "../../src/model/domain.ts";
import { createDomainWrites } from "../../src/store/sqlite/domains.ts";
import { openWriting, prepareFiles } from "../../src/store/sqlite/engine/open.ts";
import { migrate } from "../../src/store/sqlite/migrations.ts";
import {
  createTrackingNameList,
  createTrackingNameLookup,
  mostTrackingNames,
} from "../../src/store/sqlite/tracking-names.ts";
import { seenTracking } from "../support/domains.ts";
import { makeDomain } from "../submission/rig.ts";
import { newDirectory } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

let dataDir: string;
let db: Database;
let path: string;
beforeEach(() => {
  dataDir = newDirectory();
  path = prepareFiles(dataDir);
  db = openWriting(path);
});
afterEach(() => {
  db.close();
  removeFolder(dataDir);
});

function addAccounts(): void {
  const insert = db.prepare(
    "INSERT INTO accounts (key, id, name, status, created_at) VALUES (?, ?, ?, 'active', 0)",
  );
  for (const key of [1, 2]) insert.run(key, `acc_${key}`, `n${key}`);
}

/** Domains of accounts, each saved with its tracking name seen at a time. */
function domainsIn() {
  const { createDomain, saveDomain } = createDomainWrites(db);
  const made = (name: string, accountKey: number): SenderDomain => {
    const domain = makeDomain(name, { accountKey, id: `dom_${name}` });
    const key = createDomain(domain);
    if (typeof key !== "number") throw new Error("not made");
    return { ...domain, key };
  };
  const named = (domain: SenderDomain, name: string, updatedAt: number): SenderDomain => {
    const wanted = { trackingDomain: name, records: [seenTracking(name)], updatedAt };
    expect(saveDomain({ ...domain, ...wanted })).toBe(true);
    return { ...domain, revision: domain.revision + 1 };
  };
  return { made, named };
}

test("an account has so many names; the one that was not seen for longest is dropped, and no other account's", () => {
  migrate(db, path);
  addAccounts();
  const { made, named } = domainsIn();
  const isTrackingName = createTrackingNameLookup(db);
  named(made("b.test", 2), "t.b.test", 0);
  let domain = made("a.test", 1);
  db.transaction(() => {
    for (let n = 0; n < mostTrackingNames; n++) domain = named(domain, `n${n}.a.test`, 1_000 + n);
  })();
  domain = named(domain, "n0.a.test", 2 * mostTrackingNames);
  expect(isTrackingName("n1.a.test")).toBe(true);
  domain = named(domain, "last.a.test", 0); // a clock that was set back
  const found = ["t.b.test", "n0.a.test", "n1.a.test", "n2.a.test", "last.a.test"].filter(isTrackingName);
  expect(found).toEqual(["t.b.test", "n0.a.test", "n2.a.test", "last.a.test"]);
});

test("the newest names of each account are found by an index, whatever the number of all", () => {
  migrate(db, path);
  addAccounts();
  const { made, named } = domainsIn();
  const list = createTrackingNameList(db);
  expect(list({ ofAccount: 5, ofAll: 5 })).toEqual([]);
  let [a, b] = [made("a.test", 1), made("b.test", 2)];
  for (const n of [1, 2, 3]) a = named(a, `n${n}.a.test`, n);
  b = named(b, "n1.b.test", 1);
  a = named(a, "n1.a.test", 4);
  const names = (ofAccount: number, ofAll: number) => list({ ofAccount, ofAll }).map(({ name }) => name);
  expect(names(9, 9)).toEqual(["n1.a.test", "n1.b.test", "n3.a.test", "n2.a.test"]);
  expect(names(2, 9)).toEqual(["n1.a.test", "n1.b.test", "n3.a.test"]);
  expect(names(9, 2)).toEqual(["n1.a.test", "n1.b.test"]);
  // None was seen before another.
  db.exec("UPDATE tracking_names SET seen = 0");
  expect(names(9, 9)).toHaveLength(4);
  expect(names(2, 9)).toHaveLength(3);
});

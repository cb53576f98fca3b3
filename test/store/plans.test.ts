import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "better-sqlite3";
import { createLookups } from "../../src/store/lookups.ts";
import { migrate } from "../../src/store/migrations.ts";
import { openWriting, prepareFiles } from "../../src/store/open.ts";
import { createReader } from "../../src/store/reader.ts";
import type { EventFilter, MessageFilter } from "../../src/store/store.ts";
import { createWriter } from "../../src/store/writer.ts";
import { newDirectory } from "./fixtures.ts";

let dataDir: string;
let db: Database;

beforeAll(() => {
  dataDir = newDirectory();
  const path = prepareFiles(dataDir);
  db = openWriting(path);
  migrate(db, path);
});
afterAll(() => {
  db.close();
  rmSync(join(dataDir), { recursive: true });
});

/** The SQL that is prepared while `run` runs. */
function prepared(run: () => void): string[] {
  const spy = vi.spyOn(db, "prepare");
  run();
  const texts = spy.mock.calls.map(([sql]) => String(sql));
  spy.mockRestore();
  return texts.filter((sql) => /^\s*(SELECT|INSERT|UPDATE|DELETE)/i.test(sql));
}

/** Steps of a statement's plan that look at rows without a key, the walk of a JSON array excepted. */
function scansOf(sql: string): string[] {
  const plan = db.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql.replace(/@\w+|\?/g, "1")}`).all();
  return plan
    .map(({ detail }) => detail)
    .filter(
      (detail) =>
        detail.startsWith("SCAN") && !/json_each|VIRTUAL TABLE|CONSTANT ROW|\(subquery/.test(detail),
    );
}

function scansIn(texts: string[]): string[] {
  expect(texts.length).toBeGreaterThan(0);
  return texts.flatMap((sql) => scansOf(sql).map((detail) => `${detail}: ${sql.replace(/\s+/g, " ")}`));
}

test("a scan shows as one", () => {
  expect(scansOf("SELECT key FROM messages WHERE subject = ?")).toEqual(["SCAN messages"]);
  expect(scansOf("SELECT key FROM messages WHERE key = ?")).toEqual([]);
});

test("no statement of the writer looks at rows without a key, but for the count when it starts", () => {
  const found = scansIn(prepared(() => createWriter(db)));
  expect(found.filter((line) => !line.includes("SELECT count(*) AS n FROM recipients"))).toEqual([]);
});

test("no look-up of the loop looks at rows without a key; the hourly one of domains is bounded by its limit", () => {
  const found = scansIn(prepared(() => createLookups(db)));
  expect(
    found.filter(
      (line) =>
        !/^SCAN domains USING INDEX domains_checked: .* limit 1$|^SCAN domains USING INDEX domains_checked: .* limit \?$/.test(
          line,
        ),
    ),
  ).toEqual([]);
});

const messageFilters: MessageFilter[] = [
  {},
  { to: "a@b.test" },
  {
    status: "queued",
    from: "x",
    toDomain: "d",
    tag: "t",
    subject: "s",
    ipPool: "p",
    source: "api",
    createdAfter: 1,
    createdBefore: 2,
  },
  { to: "a@b.test", status: "processing", createdAfter: 1 },
];
const eventFilters: EventFilter[] = [
  {},
  { order: "desc" },
  { to: "a@b.test" },
  { eventId: "evt_1" },
  { types: ["message.delivered"], tag: "t", ipAddress: "192.0.2.1", occurredAfter: 1, occurredBefore: 2 },
  { deliveryStatus: "pending" },
  { deliveryStatus: "none" },
];

test("no list is made by looking at every row, whatever the filter and the page", () => {
  const reader = createReader(db, db);
  for (const after of [null, [1, 1]]) {
    for (const filter of messageFilters) {
      const page = { limit: 10, after };
      expect(scansIn(prepared(() => reader.listMessages({ accountKey: 1, filter, page, now: 1 })))).toEqual(
        [],
      );
    }
    for (const filter of eventFilters) {
      const page = { limit: 10, after };
      expect(scansIn(prepared(() => reader.listEvents({ accountKey: 1, filter, page })))).toEqual([]);
    }
  }
  const filter = { reason: "manual", domain: "d", emailPrefix: "p" } as const;
  const page = { limit: 10, after: ["a"] };
  expect(scansIn(prepared(() => reader.listSuppressions({ accountKey: 1, filter, page, now: 1 })))).toEqual(
    [],
  );
  const views = scansIn(prepared(() => createReader(db, db)));
  expect(
    views.every((line) =>
      /^SCAN recipients USING (COVERING )?INDEX recipients_(waiting|leased): SELECT .*count\(\*\)/.test(line),
    ),
  ).toBe(true);
});

test("the event and message lists of one recipient go by the address's index, and in order without a sort of the table", () => {
  const reader = createReader(db, db);
  const [sql] = prepared(() =>
    reader.listMessages({
      accountKey: 1,
      filter: { to: "a@b.test" },
      page: { limit: 1, after: null },
      now: 1,
    }),
  );
  const plan = db
    .prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${(sql ?? "").replace(/@\w+/g, "1")}`)
    .all();
  expect(plan.map(({ detail }) => detail)).toEqual([
    expect.stringContaining("recipients_address (account_key=? AND canonical=?)"),
    expect.stringContaining("INTEGER PRIMARY KEY"),
  ]);
});

import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "better-sqlite3";
import type { EventFilter } from "../../src/model/event.ts";
import type { MessageFilter } from "../../src/model/message.ts";
import { queueGroupings, queueParts, type QueueFilter } from "../../src/model/queue-entry.ts";
import { patternNames } from "../../src/model/patterns.ts";
import { packMessage } from "../../src/store/message-packing.ts";
import { createAuditWrites } from "../../src/store/sqlite/audit.ts";
import type { Spool } from "../../src/store/sqlite/spool.ts";
import { createLastPassed } from "../../src/store/sqlite/last-change.ts";
import { defaultPool } from "../../src/model/ip-pool.ts";
import { migrate } from "../../src/store/sqlite/migrations.ts";
import { openWriting, prepareFiles } from "../../src/store/sqlite/engine/open.ts";
import { createPurge } from "../../src/store/sqlite/retention.ts";
import { prepareLists, prepareLookups } from "../../src/store/sqlite/nouns.ts";
import { createSequences } from "../../src/store/sqlite/sequences.ts";
import { prepareAtStart } from "../../src/store/sqlite/start.ts";
import { createWriter } from "../../src/store/sqlite/writer.ts";
import { mint, newDirectory, newEndpoint, newMessage } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

const message = newMessage({ accountKey: 1, at: 1 });
const endpoint = newEndpoint(1, 1);
const noSpool = { sweep: () => 0 } as Partial<Spool> as Spool;
let dataDir: string;
let db: Database;

beforeAll(() => {
  dataDir = newDirectory();
  const path = prepareFiles(dataDir);
  db = openWriting(path);
  migrate(db, path);
  prepareAtStart(db, { now: 1, mint, spool: noSpool });
  const { commands } = createWriter(db);
  commands.createEndpoint(endpoint);
  const { packed, blobs } = packMessage(message);
  commands.acceptMessage(packed, blobs.map(Buffer.from));
});
afterAll(() => {
  db.close();
  removeFolder(join(dataDir));
});

/** The SQL that is prepared while `run` runs; `places` collects where, `file:line`. */
function prepared(run: () => void, places = new Set<string>()): string[] {
  const prepare = db.prepare.bind(db);
  const spy = vi.spyOn(db, "prepare").mockImplementation((sql: string) => {
    const place = /src\/store\/([\w/-]+\.ts:\d+):/.exec(new Error().stack ?? "")?.[1];
    if (place) places.add(place);
    return prepare(sql);
  });
  run();
  const texts = spy.mock.calls.map(([sql]) => String(sql));
  spy.mockRestore();
  return texts.filter((sql) => /^\s*(WITH|SELECT|INSERT|REPLACE|UPDATE|DELETE)/i.test(sql));
}

function planOf(sql: string): string[] {
  const plan = db.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql.replace(/@\w+|\?/g, "1")}`).all();
  return plan.map(({ detail }) => detail);
}

/** Steps of a statement's plan that look at rows without a key, the walk of a JSON array excepted. */
function scansOf(sql: string): string[] {
  return planOf(sql).filter(
    (detail) => detail.startsWith("SCAN") && !/json_each|VIRTUAL TABLE|CONSTANT ROW|\(subquery/.test(detail),
  );
}

/** What one account, endpoint, scheduled queue or process has may be most of a table: its index is no narrower than a scan. */
const wide = /^SEARCH .*\((account_key|endpoint_key|queueName|lease_owner)[=>]\?\)$/;
const growing =
  /^SEARCH (messages|m|recipients|r|attempts|a|audit|events|e|o|n|deliveries|d|suppressions|idempotency|i|inbox)\b/;

/** Steps that take all of a growing table that belongs to one of these, in a statement that no LIMIT ends. */
function unboundedIn(texts: string[]): string[] {
  return texts
    .filter((sql) => !/\bLIMIT\b/i.test(sql))
    .flatMap((sql) =>
      planOf(sql)
        .filter((detail) => wide.test(detail) && growing.test(detail))
        .map((detail) => `${detail}: ${sql.replace(/\s+/g, " ")}`),
    );
}

function scansIn(texts: string[]): string[] {
  expect(texts.length).toBeGreaterThan(0);
  return texts.flatMap((sql) => scansOf(sql).map((detail) => `${detail}: ${sql.replace(/\s+/g, " ")}`));
}

/** Accounts, the addresses of the machine that are theirs, boots, tracking keys, and what the operator paused or limited: there are few, and nothing asks for all of them per message. */
const few =
  /^SCAN (accounts|i|s|boots)\b.*: .*(FROM accounts|ip_assignments|boots)|^SCAN (queue_pauses|shaping_rules|tracking_keys): /;

test("a scan shows as one", () => {
  expect(scansOf("SELECT key FROM messages WHERE subject = ?")).toEqual(["SCAN messages"]);
  expect(scansOf("SELECT key FROM messages WHERE key = ?")).toEqual([]);
});

test("no statement of the writer looks at rows without a key, but for accounts, their addresses and boots", () => {
  const found = scansIn(prepared(writer));
  expect(
    found.filter((line) => !few.test(line) && !/^SCAN (stats_waiting|stats_sorted):/.test(line)),
  ).toEqual([]);
});

test("retention reads in the order of keys: no walk sorts, whatever has gathered", () => {
  const walks = prepared(() => createPurge(db, createAuditWrites(db, createSequences(db)))).filter((sql) =>
    /^SELECT.* LIMIT \?$/s.test(sql),
  );
  expect(walks).toHaveLength(4);
  const plans = walks.flatMap((sql) =>
    db.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql.replace(/\?/g, "1")}`).all(),
  );
  expect(plans.map(({ detail }) => detail).filter((detail) => !detail.startsWith("SEARCH"))).toEqual([]);
});

test("no look-up of the loop looks at rows without a key; the hourly one of domains is bounded by its limit", () => {
  const found = scansIn(prepared(lookups));
  expect(
    found.filter(
      (line) =>
        !few.test(line) &&
        !/^SCAN (domains USING INDEX [\w]+|ranked): .* limit (1|\?)$|^SCAN stats_(waiting|sorted): .* LIMIT 1$/.test(
          line,
        ),
    ),
  ).toEqual([]);
});

const patterns = Object.fromEntries(patternNames.map((name) => [name, "a*"]));
const messageFilters: MessageFilter[] = [
  patterns,
  { ...patterns, to: "a@b.test" },
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
    messageIdHeader: "<a@b>",
    remoteId: "4ABC",
  },
  { to: "a@b.test", status: "processing", createdAfter: 1 },
];
const eventFilters: EventFilter[] = [
  patterns,
  {},
  { order: "desc" },
  { to: "a@b.test" },
  { eventId: "evt_1" },
  { types: ["message.delivered"], tag: "t", ipAddress: "192.0.2.1", occurredAfter: 1, occurredBefore: 2 },
  { deliveryStatus: "pending" },
  { deliveryStatus: "none" },
  { messageId: message.message.id, to: "a@b.test", types: ["message.delivered"] },
  { webhookId: endpoint.id, deliveryStatus: "dead_lettered" },
];

const queueFilters: QueueFilter[] = [
  {},
  { domain: "d", pool: "p" },
  { domain: "d" },
  { pool: "p" },
  { status: "deferred", to: "a@b.test", tag: "t", provider: "google" },
  Object.fromEntries(patternNames.map((name) => [name, "a*"])),
];

/** Every list with every filter, from the start and from further on. */
function lists(): void {
  const reader = prepareLists(db);
  for (const after of [null, [1, 1]]) {
    const page = { limit: 10, after };
    for (const filter of messageFilters) reader.listMessages({ accountKey: 1, filter, page, now: 1 });
    for (const filter of eventFilters) reader.listEvents({ accountKey: 1, filter, page });
  }
  for (const after of [null, [0, "1.a/b", 1, "queued", 0, 1], [1, "", 1, "", 0, 1], [3, "", 0, "", 0, 1]]) {
    for (const queue of queueFilters) {
      const look = { accountKey: 1, filter: queue, parts: queueParts, now: 1 };
      reader.listQueue({ ...look, page: { limit: 10, after } });
      for (const by of queueGroupings) reader.countQueue({ ...look, by, after });
    }
  }
  reader.queuedJobs({ accountKey: 1, keys: [1] });
  reader.listAudit({ filter: {}, page: { limit: 10, after: [1, 1] } });
  const filter = { reason: "manual", domain: "d", emailPrefix: "p" } as const;
  reader.listSuppressions({ accountKey: 1, filter, page: { limit: 10, after: ["a"] }, now: 1 });
  reader.countSuppressions({ accountKey: 1, filter, after: "a", now: 1 });
}

/** Every look-up of the loop. */
function lookups(): void {
  prepareLookups(db);
  createLastPassed(db);
}

/** Every write, with those that put their statement together when they are called. */
function writer(): void {
  const { commands } = createWriter(db);
  commands.updateEndpoint({
    accountKey: 1,
    key: 1,
    change: { active: false, updatedAt: 1 },
    discardBacklog: false,
  });
  db.exec(
    "INSERT OR IGNORE INTO accounts (key, id, name, status, created_at) VALUES (1, 'acct_1', 'a', 'active', 0)",
  );
  const change = { description: "d" };
  commands.updatePool({ accountKey: 1, node: "here", name: defaultPool, change, at: 1 });
}

function atStart(): void {
  prepareAtStart(db, { now: 1, mint, spool: noSpool });
}

test("no list is made by looking at every row, whatever the filter and the page; counts walk the queue's indexes", () => {
  const counts = /^SCAN recipients USING (COVERING )?INDEX recipients_(waiting|leased): SELECT .*count\(\*\)/;
  // Steps of the statement's own, which has found them by an index: the accounts with tracking names, and their newest.
  const found = /^SCAN (owners|newest): .* FROM tracking_names /;
  expect(scansIn(prepared(lists)).filter((line) => !counts.test(line) && !found.test(line))).toEqual([]);
});

test("a start looks at no row without a key, but for boots", () => {
  const boots = /^SCAN boots: /;
  expect(scansIn(prepared(atStart)).filter((line) => !boots.test(line))).toEqual([]);
});

test("the event and message lists of one recipient go by the address's index, and in order without a sort of the table", () => {
  const reader = prepareLists(db);
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

test("without a LIMIT, only what is in flight, what waits in the sandbox, an emptied inbox and what a deleted endpoint left is taken whole", () => {
  const texts = [writer, lookups, lists, atStart].flatMap((run) => prepared(run));
  const whole =
    /INDEX (recipients|deliveries)_leased |INDEX recipients_waiting \(queueName>\?\): SELECT account_key|^SEARCH inbox .*: DELETE FROM inbox WHERE account_key = \?$|^SEARCH deliveries .*: DELETE FROM deliveries WHERE endpoint_key = \?$/;
  expect(unboundedIn(texts).filter((line) => !whole.test(line))).toEqual([]);
  expect(unboundedIn(["SELECT * FROM messages WHERE account_key = 1"])).toHaveLength(1);
});

const transactions = new Set(["sqlite/engine/batch.ts", "sqlite/engine/migrate.ts", "sqlite/engine/wal.ts"]);
/** They read and write whole databases, in a thread of their own or in a program of its own. */
const copies = new Set([
  "sqlite/backup-copy.ts",
  "sqlite/engine/copy.ts",
  "sqlite/engine/snapshot.ts",
  "sqlite/restore.ts",
  "sqlite/store-check.ts",
]);

test("every statement of the store is looked at here, those of transactions, migrations, backups and restores excepted", () => {
  const places = new Set<string>();
  for (const run of [writer, lookups, lists, atStart]) prepared(run, places);
  const folder = join(import.meta.dirname, "../../src/store");
  const written = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !transactions.has(name) && !copies.has(name))
    .flatMap((name) =>
      readFileSync(join(folder, name), "utf8")
        .split("\n")
        .flatMap((line, i) => (/^(?!\s*(\/\/|\*)).*\.prepare\b/.test(line) ? `${name}:${i + 1}` : [])),
    );
  expect(written.filter((place) => !places.has(place))).toEqual([]);
});

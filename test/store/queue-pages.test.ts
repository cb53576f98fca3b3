// A long queue, most of it due at the same moment, as a campaign is: each page costs what the first does.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "better-sqlite3";
import type { QueueFilter } from "../../src/model/queue-entry.ts";
import { openWriting, prepareFiles } from "../../src/store/sqlite/engine/open.ts";
import { migrate } from "../../src/store/sqlite/migrations.ts";
import { createQueueLists } from "../../src/store/sqlite/queue-lists.ts";
import { packMessage } from "../../src/store/message-packing.ts";
import type { Spool } from "../../src/store/sqlite/spool.ts";
import { prepareAtStart } from "../../src/store/sqlite/start.ts";
import { createWriter } from "../../src/store/sqlite/writer.ts";
import { mint, newDirectory, newMessage } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

const rows = 40_000;
let dataDir: string;
let db: Database;
let lists: ReturnType<typeof createQueueLists>;

beforeAll(() => {
  dataDir = newDirectory();
  const path = prepareFiles(dataDir);
  db = openWriting(path);
  migrate(db, path);
  prepareAtStart(db, { now: 1, mint, spool: { sweep: () => 0 } as Partial<Spool> as Spool });
  const { packed, blobs } = packMessage(newMessage({ accountKey: 2, at: 1 }));
  createWriter(db).commands.acceptMessage(packed, blobs.map(Buffer.from));
  const columns =
    "message_key, account_key, type, to_address, rcpt_to, canonical, domain, queue_name, state, due_at, attempts, last_event_at, updated_at";
  // Every hundredth in another queue, every thousandth due at another time.
  db.prepare(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
     INSERT INTO recipients (${columns})
     SELECT (SELECT max(key) FROM messages), 1, 'to', 'r@x.test', 'r@x.test', 'r@x.test', 'x.test', iif(i % 100 = 1, '1.default/a.test', '1.default/x.test'), 'queued', iif(i % 1000 = 2, i, 20000), 0, 0, 0 FROM n`,
  ).run();
  lists = createQueueLists(db);
});
afterAll(() => {
  db.close();
  removeFolder(dataDir);
});

const look = { accountKey: 1, parts: ["waiting"], now: 1 } as const;

function counted(filter: QueueFilter): number {
  let sum = 0;
  for (let after: (string | number)[] | null = null; ;) {
    const { groups, next } = lists.countQueue({ ...look, filter, by: "domain", after });
    for (const { recipients } of groups) sum += recipients;
    if (next === null) return sum;
    after = next;
  }
}

test("a count in pieces counts each recipient once", () => {
  expect(counted({})).toBe(rows);
  expect(counted({ domain: "x.test" })).toBe(0.99 * rows);
  expect(counted({ to: "another@x.test" })).toBe(0);
});

test("a page of the last rows costs what a page of the first does", () => {
  const after = (key: number): (string | number)[] => [0, "1.default/x.test", 20_000, "queued", 0, key];
  const msOf = (key: number): number => {
    const tries = Array.from({ length: 7 }, () => {
      const began = performance.now();
      lists.listQueue({ ...look, filter: {}, page: { limit: 1, after: after(key) } });
      return performance.now() - began;
    });
    return Math.min(...tries);
  };
  expect(msOf(rows - 100)).toBeLessThan(2 + 5 * msOf(10));
});

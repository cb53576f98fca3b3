// One person forgotten, over the operator's socket and with the real store.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import {
  accept,
  minute,
  newDirectory,
  newEndpoint,
  newMessage,
  newSuppression,
  openSqlite,
  owner,
  settlementOf,
} from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { list, startHttp, type Answer, type Harness } from "./harness.ts";

const clock = new ManualClock();
const dataDir = newDirectory();
const ann = "ann@a.test";
let store: Store;
let http: Harness;
let mine: number;
beforeAll(async () => {
  store = await openSqlite(dataDir, clock);
  http = await startHttp({ opened: { store, clock } });
  mine = http.account.key;
  await store.createEndpoint(newEndpoint(mine, clock.now()));
});
afterAll(() => http.stop());

const forget = (email: string = ann): Promise<Answer> =>
  http.ask({ admin: true, method: "POST", path: "/v1/recipients/forget", body: { email } });
const nothing = {
  recipients: 0,
  canceled: 0,
  messages: 0,
  content: 0,
  events: 0,
  inbox: 0,
  under_way: 0,
  content_kept: 0,
  content_kept_in: [],
  has_more: false,
};

/** A message to these, delivered to `delivered` of them. */
async function put(to: string[], delivered: string[] = [], wishes: object = {}): Promise<string> {
  const message = newMessage({ accountKey: mine, at: clock.now(), to, ...wishes });
  for (const one of message.recipients) if (delivered.includes(one.to)) one.leaseOwner = owner;
  for (const job of await accept(store, message))
    await store.settle(settlementOf(job, clock.now(), { catchInInbox: true, outcome: "delivered" }));
  return message.message.id;
}

/** Every text and blob of the database that holds the word, by table. */
function tracesOf(word: string): string[] {
  const db = new Sqlite(join(dataDir, "svc.db"), { readonly: true });
  const tables = db
    .prepare<[], { name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all();
  const found = tables.flatMap(({ name }) => {
    const rows = db.prepare<[], Record<string, unknown>>(`SELECT * FROM "${name}"`).all();
    const holding = rows.filter((row) =>
      Object.values(row).some((value) =>
        (Buffer.isBuffer(value) ? value.toString("latin1") : String(value)).toLowerCase().includes(word),
      ),
    );
    return holding.length > 0 ? [name] : [];
  });
  db.close();
  return found;
}

const body = `To: ${ann}\r\nSubject: x\r\n\r\nDear Ann\r\n`;

test("what is kept of a person goes whole, suppressions stay, and no other's is touched", async () => {
  await put([ann], [ann], { text: body });
  await put(["Ann@A.test"], [], { text: body }); // still queued, in another spelling
  await put([ann], [], { sendAt: clock.now() + 60 * minute, text: body });
  const others = await put(["bob@a.test"], ["bob@a.test"]);
  await store.addSuppressions([newSuppression(mine, ann)], clock.now());
  expect(tracesOf("ann@a.test").length).toBeGreaterThan(3);
  const { status, json } = await forget("ANN@a.test");
  expect([status, json]).toEqual([
    200,
    { ...nothing, email: ann, recipients: 3, canceled: 2, messages: 3, content: 3, events: 1, inbox: 1 },
  ]);
  expect(tracesOf("ann@a.test")).toEqual(["suppressions"]);
  expect(tracesOf("dear ann")).toEqual([]);
  expect((await store.message(mine, others))?.recipients).toMatchObject([{ state: "delivered" }]);
  expect(await store.queueCounts()).toMatchObject({ queued: 0, scheduled: 0 });
  expect((await forget()).json, "a second time finds nothing").toEqual({ ...nothing, email: ann });
  await store.removeSuppression(mine, ann);
});

test("a message to others stays for them: its content goes once no recipient waits for it, and is named while one does", async () => {
  const done = await put([ann, "bob@b.test"], [ann, "bob@b.test"], { text: body });
  const waiting = await put([ann, "eve@b.test"], [ann], { text: body });
  expect((await forget()).json).toMatchObject({
    recipients: 2,
    canceled: 0,
    messages: 0,
    content: 1,
    events: 2,
    content_kept: 1,
    content_kept_in: [waiting],
  });
  const record = await store.message(mine, done);
  expect([record?.recipients.map(({ to }) => to), record?.content]).toEqual([["bob@b.test"], null]);
  expect((await store.message(mine, waiting))?.recipients).toMatchObject([
    { to: "eve@b.test", state: "queued" },
  ]);
  const { jobs } = await store.claimDue({
    owner,
    queueName: "b.test",
    limit: 5,
    now: clock.now(),
  });
  expect(jobs.map(({ to }) => to)).toEqual(["eve@b.test"]);
});

test("what is being sent is left, and goes at the next asking; its outcome is recorded meanwhile", async () => {
  const message = newMessage({ accountKey: mine, at: clock.now(), to: ["sue@a.test"], lease: true });
  const [job] = await accept(store, message);
  if (!job) throw new Error("not leased");
  expect((await forget("sue@a.test")).json).toMatchObject({ recipients: 0, under_way: 1 });
  expect(await store.settle(settlementOf(job, clock.now()))).toBe(true);
  expect((await forget("sue@a.test")).json).toMatchObject({ recipients: 1, messages: 1, under_way: 0 });
});

test("held mail is canceled with the rest", async () => {
  await put(["hal@h.test"]);
  await store.pauseAccount(mine, clock.now(), "too many bounces");
  const claim = { owner, queueName: "h.test", limit: 5, now: clock.now() };
  await store.claimDue(claim);
  expect(await store.queueCounts()).toMatchObject({ held: 1 });
  expect((await forget("hal@h.test")).json).toMatchObject({ canceled: 1, messages: 1 });
  expect(await store.queueCounts()).toMatchObject({ held: 0 });
  await store.resumeAccount(mine, null);
});

test("content in a file goes with its message", async () => {
  const content = await store.putContent(
    (async function* () {
      yield Buffer.alloc(100_000, "x");
    })(),
  );
  await put(["big@a.test"], ["big@a.test"], { content });
  const files = () => readdirSync(join(dataDir, "spool"), { recursive: true, withFileTypes: true });
  expect(files().filter((entry) => entry.isFile())).toHaveLength(1);
  await forget("big@a.test");
  expect(files().filter((entry) => entry.isFile())).toEqual([]);
});

test("hundreds of messages go in one asking, and a webhook gets nothing more of them", async () => {
  await Promise.all(Array.from({ length: 333 }, () => put(["max@a.test"], ["max@a.test"])));
  const { json } = await forget("max@a.test");
  expect(json).toMatchObject({ messages: 333, events: 333, has_more: false });
  expect(tracesOf("max@a.test")).toEqual([]);
  const [endpoint] = await store.listEndpoints(mine);
  const { deliveries } = await store.claimDeliveries({
    owner,
    accountKey: mine,
    endpointKey: endpoint?.key ?? 0,
    limit: 1000,
    now: clock.now(),
  });
  expect(deliveries.filter((one) => one.body.includes("max@a.test"))).toEqual([]);
});

test("what an endpoint said of a person's event goes with the event", async () => {
  const [endpoint] = await store.listEndpoints(mine);
  if (!endpoint) throw new Error("there is no endpoint");
  const at = clock.now();
  const claim = async () =>
    (
      await store.claimDeliveries({
        owner,
        accountKey: endpoint.accountKey,
        endpointKey: endpoint.key,
        limit: 1000,
        now: at,
      })
    ).deliveries;
  await claim(); // what others left
  await put(["tried@a.test"], ["tried@a.test"]);
  const tried = await claim();
  expect(tried).toHaveLength(1);
  const answer = { durationMs: 1, error: null, status: 500, responseBody: "tried@a.test is unknown" };
  await store.settleDeliveries(
    tried.map((one) => ({ ...one, ...answer, at, result: { kind: "retry", dueAt: at + minute } })),
  );
  const told = async () => (await http.ask({ path: `/v1/webhooks/${endpoint.id}/deliveries` })).text;
  expect(await told()).toContain("tried@a.test is unknown");
  await forget("tried@a.test");
  expect(await told()).not.toMatch(/tried@a\.test|"event_id":null/);
});

test("another account's records of the same address stay", async () => {
  const other = (await store.accountByName("operations"))?.key ?? 0;
  const message = newMessage({ accountKey: other, at: clock.now(), to: ["joe@a.test"] });
  await accept(store, message);
  expect((await forget("joe@a.test")).json).toMatchObject({ recipients: 0 });
  expect((await store.message(other, message.message.id))?.recipients).toHaveLength(1);
});

test("what is not an address is refused; a key of any scope finds no such path", async () => {
  const refused = await forget("nobody");
  expect([refused.status, refused.json["field"]]).toEqual([422, "email"]);
  const ask = { method: "POST", path: "/v1/recipients/forget", body: { email: ann } };
  expect((await http.ask(ask)).status).toBe(404);
  const { json } = await http.ask({ admin: true, path: "/v1/events?to=ann@a.test" });
  expect(list(json["data"])).toEqual([]);
});

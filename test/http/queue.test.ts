// The operator's view of the queue and acts on it, over the socket and with the real store.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { accept, minute, newDirectory, newMessage, openSqlite, settlementOf } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { list, startHttp, type Harness } from "./harness.ts";

const clock = new ManualClock();
let store: Store;
let http: Harness;
let mine: number;
beforeAll(async () => {
  store = await openSqlite(newDirectory(), clock);
  http = await startHttp({ opened: { store, clock } });
  mine = http.account.key;
});
afterAll(() => http.stop());

const get = (path: string) => http.ask({ admin: true, path });
const post = (act: string, body: object) =>
  http.ask({ admin: true, method: "POST", path: `/v1/queue/${act}`, body });

/** `count` recipients of the domain, deferred for a minute. */
async function deferred(domain: string, count: number): Promise<void> {
  const to = Array.from({ length: count }, (_, n) => `r${n}@${domain}`);
  for (const one of to) {
    const wishes = { accountKey: mine, at: clock.now(), to: [one], queueName: `${mine}.default/${domain}` };
    for (const job of await accept(store, newMessage({ ...wishes, lease: true })))
      await store.settle(
        settlementOf(job, clock.now(), { outcome: "deferred", nextAttemptAt: clock.now() + minute }),
      );
  }
}
const total = async (domain: string) => (await get(`/v1/queue/count?domain=${domain}`)).json["recipients"];

test("what is in the queue is listed and counted, by domain unless another grouping is asked for", async () => {
  await deferred("a.test", 2);
  await deferred("b.test", 1);
  const { json } = await get("/v1/queue?domain=a.test&limit=1");
  expect(list(json["data"])[0]).toMatchObject({ email: "r0@a.test", status: "deferred", attempts: 1 });
  expect(json).toMatchObject({ has_more: true });
  expect((await get("/v1/queue/count")).json).toMatchObject({
    by: "domain",
    recipients: 3,
    groups: [
      { value: "a.test", recipients: 2 },
      { value: "b.test", recipients: 1 },
    ],
  });
  expect((await get("/v1/queue/count?by=status&limit=1")).json["groups"]).toMatchObject([
    { value: "deferred", recipients: 3, held: 0 },
  ]);
});

test("an act changes what its filter lets through and says how many; each is in the audit log with its filter", async () => {
  await deferred("c.test", 3);
  expect((await post("retry", { domain: "c.test" })).json).toEqual({
    recipients: 3,
    has_more: false,
    next_cursor: null,
  });
  expect((await post("hold", { domain: "c.test" })).json).toMatchObject({ recipients: 3 });
  const held = (await get("/v1/queue?domain=c.test&status=held")).json;
  expect(list(held["data"])).toHaveLength(3);
  expect((await post("release", { to: "r0@c.test" })).json).toMatchObject({ recipients: 1 });
  expect((await post("fail", { to: "r0@c.test" })).json).toMatchObject({ recipients: 1 });
  expect((await post("delete", { domain: "c.test" })).json).toMatchObject({ recipients: 2 });
  expect(await total("c.test")).toBe(0);
  const { json } = await get("/v1/audit?action=queue.*");
  expect(list(json["data"]).map(({ action }) => action)).toEqual([
    "queue.delete",
    "queue.fail",
    "queue.release",
    "queue.hold",
    "queue.retry",
  ]);
  expect(list(json["data"])[0]).toMatchObject({ detail: { domain: "c.test" } });
});

test("a failed recipient has bounced softly, is not suppressed, and its event says who ended it", async () => {
  await deferred("d.test", 1);
  await post("fail", { domain: "d.test" });
  const [event] = list((await get("/v1/events?to=r0@d.test&type=message.bounced")).json["data"]);
  expect(event?.["data"]).toMatchObject({
    bounce_type: "soft",
    smtp_response: "[local] the operator ended the delivery",
    suppressed: false,
  });
});

test("more than a piece is changed in several writes, and all of it", async () => {
  await deferred("e.test", 1);
  const to = Array.from({ length: 1200 }, (_, n) => `r${n}@e.test`);
  await accept(
    store,
    newMessage({ accountKey: mine, at: clock.now(), to, queueName: `${mine}.default/e.test` }),
  );
  expect((await post("fail", { domain: "e.test" })).json).toMatchObject({
    recipients: 1201,
    has_more: false,
  });
  expect(await total("e.test")).toBe(0);
});

test("a cursor of another filter, an unknown field and another's key are refused", async () => {
  await deferred("f.test", 2);
  const { json } = await get("/v1/queue?domain=f.test&limit=1");
  const other = { domain: "g.test", cursor: json["next_cursor"] };
  expect((await post("delete", other)).json["code"] ?? null).not.toBeNull();
  expect((await post("delete", { domian: "f.test" })).status).toBe(422);
  expect((await http.ask({ path: "/v1/queue" })).status).toBe(404);
  expect(await total("f.test")).toBe(2);
});

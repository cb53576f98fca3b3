// POST /v1/webhooks/{id}/replay over a real store: what is queued again, and what is not.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Endpoint } from "../../src/model/webhook.ts";
import type { Store } from "../../src/store/store.ts";
import { newEndpoint, newEvent, owner, took } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { type Answer } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

const minute = 60_000;
let http: Stored;
let store: Store;
let clock: ManualClock;
let account: number;
let kicks = 0;
let hook: Endpoint;

beforeAll(async () => {
  http = await startStored(() => ({
    webhooks: { retryNow: () => void kicks++ },
  }));
  ({ store, clock } = http);
  account = http.account.key;
});
afterAll(() => http.stop());
beforeEach(async () => {
  await clock.advance(24 * 60 * minute);
  hook = await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 1 }));
});

const record = async (type = "message.delivered", typeBit = 1, occurredAt = clock.now()): Promise<string> => {
  const event = newEvent({ accountKey: account, receivedAt: clock.now(), occurredAt, type, typeBit });
  await store.recordEvent(event);
  return event.id;
};
const claim = async (limit = 100) =>
  (
    await store.claimDeliveries({
      owner,
      accountKey: hook.accountKey,
      endpointKey: hook.key,
      limit,
      now: clock.now(),
    })
  ).deliveries;
/** The next `count` that wait come to this end. */
const end = async (count: number, kind: "delivered" | "dead_lettered"): Promise<void> => {
  for (const delivery of await claim(count))
    await store.settleDeliveries([
      { ...took, ...delivery, at: clock.now(), status: kind === "delivered" ? 200 : 500, result: { kind } },
    ]);
};
const replay = (body?: unknown, id = hook.id, key?: string): Promise<Answer> =>
  http.ask({
    method: "POST",
    path: `/v1/webhooks/${id}/replay`,
    ...(body === undefined ? {} : { body }),
    headers: key === undefined ? {} : { "idempotency-key": key },
  });
const line = async (): Promise<[string, number][]> =>
  (await claim()).map(({ eventId, attempt }) => [eventId, attempt]);

test("without a word it is what was dead-lettered, with all its attempts", async () => {
  const [dead, taken] = [await record(), await record()];
  await end(1, "dead_lettered");
  await end(1, "delivered");
  kicks = 0;
  const answer = await replay();
  expect([answer.status, answer.json, kicks]).toEqual([202, { queued: 1 }, 1]);
  expect(await line()).toEqual([[dead, 1]]);
  expect(taken).not.toBe(dead);
});

test("a stretch of time begins with since and ends before until, by when events occurred", async () => {
  const at = clock.now();
  const ids: string[] = [];
  for (const n of [0, 1, 2, 3]) ids.push(await record("message.delivered", 1, at + n * minute));
  await end(4, "dead_lettered");
  const stretch = {
    since: new Date(at + minute).toISOString(),
    until: new Date(at + 3 * minute).toISOString(),
  };
  expect((await replay(stretch)).json).toEqual({ queued: 2 });
  expect((await line()).map(([id]) => id)).toEqual(ids.slice(1, 3));
});

test("all is every event of its types, also what was never sent there; what is queued stays as it is", async () => {
  const from = { since: new Date(clock.now()).toISOString() };
  const taken = await record();
  await end(1, "delivered");
  const waiting = await record();
  const later = await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 1 }));
  expect((await replay({ ...from, status: "all" })).json).toEqual({ queued: 1 });
  expect((await line()).map(([id]) => id)).toEqual([waiting, taken]); // first attempts before what comes again
  expect((await replay({ ...from, status: "all" }, later.id)).json).toEqual({ queued: 2 });
  expect((await replay({ ...from, status: "all" }, later.id)).json).toEqual({ queued: 0 });
});

test("events that are named come whatever became of them; those of others and unknown ones do not", async () => {
  const [one, two] = [await record(), await record("ip.blacklisted", 128)];
  await end(1, "delivered");
  const wanted = { event_ids: [one, one, two, "evt_none"] };
  const [first, second] = [await replay(wanted, hook.id, "r"), await replay(wanted, hook.id, "r")];
  expect([first.json, second.json, second.headers["idempotency-replayed"]]).toEqual([
    { queued: 2 },
    { queued: 2 },
    "true",
  ]);
  expect((await line()).map(([id]) => id)).toEqual([one, two]);
});

test("a long history is walked to its end", async () => {
  const from = { since: new Date(clock.now()).toISOString(), status: "all" };
  await store.updateEndpoint(account, hook.id, { eventMask: 2, updatedAt: clock.now() });
  await Promise.all(Array.from({ length: 4100 }, () => record()));
  await store.updateEndpoint(account, hook.id, { eventMask: 1, updatedAt: clock.now() });
  expect((await replay(from)).json).toEqual({ queued: 4100 });
});

test.each([
  [{ event_ids: [] }, "event_ids"],
  [{ event_ids: ["evt_1"], status: "all" }, "event_ids"],
  [{ since: "yesterday" }, "since"],
  [{ status: "pending" }, "status"],
  [{ all: true }, "all"],
])("%j is refused", async (body, field) => {
  const { status, json } = await replay(body);
  expect([status, json["field"]]).toEqual([422, field]);
});

test("an endpoint that is not there is 404", async () => {
  expect((await replay(undefined, "whk_none")).status).toBe(404);
});

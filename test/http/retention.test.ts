// How long an event can be pulled: thirty days, and thirty days after its delivery was given up where that is later.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { newEndpoint, newEvent, owner, took } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { list, text } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

const day = 86_400_000;
let http: Stored;
let store: Store;
let clock: ManualClock;

beforeAll(async () => {
  http = await startStored(() => ({ webhooks: { retryNow: () => undefined } }));
  ({ store, clock } = http);
});
afterAll(() => http.stop());

const prune = async (): Promise<void> => {
  const now = clock.now();
  const kept = { now, contentBefore: 0, messagesBefore: 0, auditBefore: 0, limit: 1000 };
  while ((await store.purge({ ...kept, eventsBefore: now - 30 * day })).more) continue;
};
const pulled = async (path = "/v1/events"): Promise<string[]> => {
  const answer = await http.ask({ path });
  expect(answer.status).toBe(200);
  return list(answer.json["data"]).map((row) => text(row["event_id"]));
};

test("an event that is dead-lettered on day 29 is still pulled on day 58 with its attempts, and gone on day 60", async () => {
  const account = http.account.key;
  const hook = await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 2 }));
  const given = newEvent({ accountKey: account, receivedAt: clock.now(), typeBit: 2 });
  const taken = newEvent({ accountKey: account, receivedAt: clock.now() });
  await store.recordEvent(given);
  await store.recordEvent(taken);
  await clock.advance(29 * day);
  await prune();
  expect(await pulled()).toEqual([given.id, taken.id]);
  const now = clock.now();
  const claim = { owner, accountKey: hook.accountKey, endpointKey: hook.key, limit: 1, now };
  const { deliveries } = await store.claimDeliveries(claim);
  await store.settleDeliveries(
    deliveries.map((one) => ({ ...one, ...took, at: now, status: 500, result: { kind: "dead_lettered" } })),
  );

  await clock.advance(2 * day);
  await prune();
  expect(await pulled()).toEqual([given.id]); // the other one is over
  await clock.advance(27 * day); // day 58
  await prune();
  expect(await pulled()).toEqual([given.id]);
  expect(await pulled(`/v1/webhooks/${hook.id}/deliveries`)).toEqual([given.id]);
  const replay = { method: "POST", path: `/v1/webhooks/${hook.id}/replay`, body: { event_ids: [taken.id] } };
  expect((await http.ask(replay)).json).toEqual({ queued: 0 });
  await clock.advance(2 * day); // day 60
  await prune();
  expect(await pulled()).toEqual([]);
  expect(await pulled(`/v1/webhooks/${hook.id}/deliveries`)).toEqual([]);
});

test("an Idempotency-Key is the same request for 24 hours, and a new one after", async () => {
  const add = async (email: string) =>
    http.ask({
      method: "POST",
      path: "/v1/suppressions",
      body: { emails: [email] },
      headers: { "idempotency-key": "k-1" },
    });
  const first = await add("a@a.test");
  expect(first.status).toBe(201);
  await clock.advance(day);
  await prune();
  const replayed = await add("a@a.test");
  expect([replayed.status, replayed.text, replayed.headers["idempotency-replayed"]]).toEqual([
    201,
    first.text,
    "true",
  ]);
  expect((await add("b@a.test")).status).toBe(409);
  await clock.advance(1);
  await prune();
  const second = await add("b@a.test");
  expect([second.status, second.headers["idempotency-replayed"]]).toEqual([201, undefined]);
});

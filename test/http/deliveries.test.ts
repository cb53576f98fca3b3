// GET /v1/webhooks/{id}/deliveries over a real store: every attempt is a row, whatever became of its event afterwards.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { DeliveryResult, DueDelivery } from "../../src/model/webhook-delivery.ts";
import type { Endpoint } from "../../src/model/webhook.ts";
import type { Store } from "../../src/store/store.ts";
import { minute, newEndpoint, newEvent, owner } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { list, text, type Answer, type Json } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

let http: Stored;
let store: Store;
let clock: ManualClock;
let hook: Endpoint;

beforeAll(async () => {
  http = await startStored(() => ({
    webhooks: { retryNow: () => undefined },
  }));
  ({ store, clock } = http);
});
afterAll(() => http.stop());
beforeEach(async () => {
  hook = await store.createEndpoint(newEndpoint(http.account.key, clock.now()));
  await clock.advance(minute);
});

afterEach(() => store.deleteEndpoint(http.account.key, hook.id));

const record = async (): Promise<string> => {
  const event = newEvent({ accountKey: http.account.key, receivedAt: clock.now() });
  await store.recordEvent(event);
  return event.id;
};
const claim = async (limit = 1): Promise<DueDelivery[]> => {
  const now = clock.now();
  const claimed = await store.claimDeliveries({
    owner,
    accountKey: hook.accountKey,
    endpointKey: hook.key,
    limit,
    now,
  });
  return claimed.deliveries;
};
/** The next attempt of one event, which takes 40 ms. */
const attempt = async (
  kind: "delivered" | "retry" | "dead_lettered",
  came: Partial<DeliveryResult> = {},
): Promise<DueDelivery> => {
  const [delivery] = await claim();
  if (!delivery) throw new Error("nothing is due");
  await clock.advance(40);
  const at = clock.now();
  const result = kind === "retry" ? { kind, dueAt: at + 1000 } : { kind };
  const status = kind === "delivered" ? 200 : 500;
  const answer = { durationMs: 40, error: null, responseBody: kind === "delivered" ? null : "no", status };
  await store.settleDeliveries([{ ...delivery, at, ...answer, ...came, result }]);
  await clock.advance(1000);
  return delivery;
};
const shown = async (query = "", id = hook.id): Promise<Answer> =>
  http.ask({ path: `/v1/webhooks/${id}/deliveries${query}` });
const rows = async (query = ""): Promise<Json[]> => list((await shown(query)).json["data"]);
const brief = async (query = ""): Promise<unknown[]> =>
  (await rows(query)).map(({ attempt: number, status }) => [number, status]);

test("every attempt is a row with what came of it, the last one of an event first", async () => {
  const event = await record();
  const began = clock.now();
  await attempt("retry", { status: null, error: "no answer within 10000 ms", responseBody: null });
  await attempt("retry", { status: 503, responseBody: "<h1>Down</h1>" });
  await attempt("delivered");
  const at = (ms: number): string => new Date(began + ms).toISOString();
  const answer = await shown();
  expect(answer.json).toEqual({ data: expect.anything(), has_more: false, next_cursor: null });
  expect(await rows()).toEqual([
    {
      event_id: event,
      attempt: 3,
      status: "delivered",
      response_status: 200,
      response_body: null,
      error: null,
      duration_ms: 40,
      attempted_at: at(2080),
      next_attempt_at: null,
    },
    {
      event_id: event,
      attempt: 2,
      status: "failed",
      response_status: 503,
      response_body: "<h1>Down</h1>",
      error: null,
      duration_ms: 40,
      attempted_at: at(1040),
      next_attempt_at: at(2080),
    },
    {
      event_id: event,
      attempt: 1,
      status: "failed",
      response_status: null,
      response_body: null,
      error: "no answer within 10000 ms",
      duration_ms: 40,
      attempted_at: at(0),
      next_attempt_at: at(1040),
    },
  ]);
});

test("what waits and what is under way is not an attempt yet; the newest event is first", async () => {
  const [first, second] = [await record(), await record()];
  expect(await rows()).toEqual([]);
  await attempt("retry");
  await attempt("dead_lettered");
  await record();
  await claim();
  expect((await rows()).map(({ event_id: id, status }) => [id, status])).toEqual([
    [second, "dead_lettered"],
    [first, "failed"],
  ]);
});

test("status and event_id narrow it; a status that is none is 400, another's endpoint 404", async () => {
  const event = await record();
  await attempt("retry");
  await attempt("dead_lettered");
  await record();
  await attempt("delivered");
  expect(await brief("?status=failed")).toEqual([[1, "failed"]]);
  expect(await brief("?status=dead_lettered,delivered")).toEqual([
    [1, "delivered"],
    [2, "dead_lettered"],
  ]);
  expect(await brief("?status=failed&status=dead_lettered")).toEqual([
    [2, "dead_lettered"],
    [1, "failed"],
  ]);
  expect(await brief(`?event_id=${event}`)).toEqual([
    [2, "dead_lettered"],
    [1, "failed"],
  ]);
  expect(await brief(`?event_id=${event}&status=delivered`)).toEqual([]);
  expect(await brief("?event_id=evt_00000000000000000000000000")).toEqual([]);
  expect(await shown("?status=lost")).toMatchObject({ status: 400, json: { errors: [{ field: "status" }] } });
  expect(await shown("?cursor=x")).toMatchObject({ status: 400, json: { field: "cursor" } });
  expect((await shown("", "whk_00000000000000000000000000")).status).toBe(404);
});

test("pages meet without a gap, within an event too", async () => {
  for (let i = 0; i < 3; i++) {
    await record();
    await attempt("retry");
    await attempt("retry");
    await attempt(i === 1 ? "dead_lettered" : "delivered");
  }
  const whole = await rows();
  expect(whole).toHaveLength(9);
  for (const limit of [1, 2, 4]) {
    const walked: Json[] = [];
    let cursor = "";
    for (let more = true; more;) {
      const page = await shown(`?limit=${limit}${cursor}`);
      walked.push(...list(page.json["data"]));
      more = JSON.stringify(page.json["has_more"]) === "true";
      cursor = more ? `&cursor=${text(page.json["next_cursor"])}` : "";
    }
    expect(walked).toEqual(whole);
  }
});

test("a replayed event keeps the attempts it had, a success too", async () => {
  const event = await record();
  await attempt("retry");
  await attempt("delivered");
  const before = await rows();
  expect(
    (await http.ask({ method: "POST", path: `/v1/webhooks/${hook.id}/replay`, body: { event_ids: [event] } }))
      .json,
  ).toEqual({ queued: 1 });
  expect(await rows()).toEqual(before);
  await attempt("dead_lettered");
  expect(await brief()).toEqual([
    [1, "dead_lettered"],
    [2, "delivered"],
    [1, "failed"],
  ]);
});

test("a dropped backlog keeps the attempts that were made of it", async () => {
  await record();
  await attempt("retry");
  await record();
  await http.ask({ method: "PATCH", path: `/v1/webhooks/${hook.id}`, body: { backlog: "discard" } });
  expect(await brief()).toEqual([[1, "failed"]]);
});

test("attempts go with their event, and with their endpoint", async () => {
  await record();
  await attempt("retry");
  await attempt("dead_lettered");
  await record();
  await attempt("delivered");
  const day = 24 * 60 * minute;
  await clock.advance(60 * day);
  const late = await record();
  await attempt("retry");
  const request = { now: clock.now(), contentBefore: 0, messagesBefore: 0, auditBefore: 0, limit: 1000 };
  while ((await store.purge({ ...request, eventsBefore: clock.now() - day })).more) continue;
  expect((await rows()).map(({ event_id: id }) => id)).toEqual([late]);
  await store.deleteEndpoint(http.account.key, hook.id);
  expect((await shown()).status).toBe(404);
});

test("a success that comes after the lease is lost counts, a failure does not show twice", async () => {
  await record();
  const [first] = await claim();
  await clock.advance(2000);
  if (!first) throw new Error("nothing is due");
  await store.requeueDeliveries([first], clock.now(), { counted: true });
  const [second] = await claim();
  if (!second) throw new Error("nothing is due");
  const came = { at: clock.now(), durationMs: 1, error: null, responseBody: null };
  const dueAt = clock.now() + 5;
  await store.settleDeliveries([{ ...first, ...came, status: 500, result: { kind: "retry", dueAt } }]);
  expect(await rows()).toEqual([]);
  await store.settleDeliveries([{ ...first, ...came, status: 200, result: { kind: "delivered" } }]);
  await store.settleDeliveries([{ ...second, ...came, status: 500, result: { kind: "retry", dueAt } }]);
  expect(await brief()).toEqual([[2, "delivered"]]);
});

test("a page over a long backlog that waits looks at 20,000 rows, and says where to go on", async () => {
  const one = await record();
  await attempt("delivered");
  const events = Array.from({ length: 20_500 }, () =>
    newEvent({ accountKey: http.account.key, receivedAt: clock.now() }),
  );
  await Promise.all(events.map((event) => store.recordEvent(event)));
  const first = await shown();
  expect(first.json).toMatchObject({ data: [], has_more: true });
  const second = await shown(`?cursor=${text(first.json["next_cursor"])}`);
  expect(second.json).toMatchObject({ data: [{ event_id: one }], has_more: false });
});

test("what is put back was never tried: its number is the same again, and it waits where it waited", async () => {
  const event = await record();
  await attempt("retry");
  const retries = await claim();
  await record();
  const [first] = await claim();
  if (!first) throw new Error("nothing is due");
  await store.requeueDeliveries([...retries, first, { ...first, attempt: 7 }], clock.now());
  const events = list((await http.ask({ path: "/v1/events?order=desc&limit=2" })).json["data"]);
  const state = events.map(({ deliveries }) => list(deliveries)[0]);
  expect(state).toMatchObject([
    { status: "pending", attempts: 0, last_attempt_at: null },
    { status: "pending", attempts: 1, last_status: 500 },
  ]);
  expect(state[1]?.["last_attempt_at"]).not.toBeNull();
  expect((await claim(5)).map(({ eventId, attempt: number }) => [eventId, number])).toEqual([
    [first.eventId, 1],
    [event, 2],
  ]);
});

test("attempts go with the events of a person who is forgotten, and what was answered to them", async () => {
  const event = newEvent({
    accountKey: http.account.key,
    receivedAt: clock.now(),
    recipient: "ann@a.test",
  });
  await store.recordEvent(event);
  await attempt("retry", { responseBody: "no ann@a.test here" });
  expect(await brief()).toEqual([[1, "failed"]]);
  await store.forgetRecipient(http.account.key, "ann@a.test", 0);
  expect(await brief()).toEqual([]);
});

test("an endpoint is changed though an attempt at it ends each time that the change is about to be written", async () => {
  await record();
  let tries = 0;
  const kept = await store.withIdempotency(
    null,
    async (writing) => {
      const at = clock.now();
      const endpoint = await writing.updateEndpoint(http.account.key, hook.id, {
        active: false,
        updatedAt: at,
      });
      if (++tries > 10) throw new Error("it is tried again and again");
      const came = { at, status: 500, durationMs: 0, error: null, responseBody: null };
      const [delivery] = await claim();
      if (!delivery) throw new Error("nothing is due");
      await store.settleDeliveries([{ ...delivery, ...came, result: { kind: "retry", dueAt: at } }]);
      return endpoint;
    },
    () => ({ status: 200, body: "{}", audit: null }),
  );
  expect([kept.kind, tries]).toEqual(["done", 1]);
  expect(await store.endpoint(http.account.key, hook.id)).toMatchObject({
    active: false,
    consecutiveFailures: 1,
  });
});

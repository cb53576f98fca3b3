// Lists that are walked over HTTP by their cursor while rows are added: none missing, none twice.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { newEndpoint, newEvent, newMessage, owner, took } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { list, text, type Json } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

let http: Stored;
let store: Store;
let clock: ManualClock;
let account: number;

beforeAll(async () => {
  http = await startStored();
  ({ store, clock } = http);
  account = http.account.key;
});
afterAll(() => http.stop());

const times = <T>(count: number, make: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, make));

/** Every row that a walk shows, by `name`; `meanwhile` runs beside each request. */
async function walk(path: string, name: string, meanwhile: (page: number) => Promise<unknown>) {
  const seen: string[] = [];
  let next: Json | undefined;
  for (let page = 0; ; page++) {
    const cursor = next === undefined ? "" : `&cursor=${text(next)}`;
    const [answer] = await Promise.all([http.ask({ path: `${path}${cursor}` }), meanwhile(page)]);
    expect(answer.status).toBe(200);
    seen.push(...list(answer.json["data"]).map((row) => text(row[name])));
    next = answer.json["next_cursor"];
    if (JSON.stringify(answer.json["has_more"]) === "false") return { seen, cursor: next };
  }
}
const record = async (): Promise<string> => {
  const event = newEvent({ accountKey: account, receivedAt: clock.now() });
  await store.recordEvent(event);
  return event.id;
};

test("100,000 events while 10,000 more arrive: each once and in order, and the last cursor tails", async () => {
  const all: string[] = [];
  for (let i = 0; i < 5; i++) all.push(...(await times(20_000, record)));
  let left = 10_000;
  const { seen, cursor } = await walk("/v1/events?limit=1000", "event_id", async () => {
    if (left <= 0) return;
    left -= 100;
    all.push(...(await times(100, record)));
  });
  expect(left).toBe(0);
  expect(seen).toHaveLength(110_000);
  expect(seen).toEqual(all);
  const more = await times(3, record);
  const tail = await http.ask({ path: `/v1/events?cursor=${text(cursor)}` });
  expect(list(tail.json["data"]).map((row) => text(row["event_id"]))).toEqual(more);
  const again = await http.ask({ path: `/v1/events?cursor=${text(tail.json["next_cursor"])}` });
  expect(again.json).toMatchObject({ data: [], has_more: false, next_cursor: tail.json["next_cursor"] });
});

test("messages newest first while others are accepted: each that was there once", async () => {
  const accept = async (): Promise<string> => {
    const message = newMessage({ accountKey: account, at: clock.now() });
    await store.acceptMessage(message);
    return message.message.id;
  };
  const there: string[] = [];
  for (let i = 0; i < 10; i++) {
    there.push(...(await times(500, accept)));
    await clock.advance(1);
  }
  const { seen } = await walk("/v1/messages?limit=200", "id", () => times(50, accept));
  // What was accepted beside the first request may be on its page, before all others.
  expect(seen.slice(-there.length)).toEqual(there.toReversed());
  expect(seen.length - there.length).toBeLessThanOrEqual(50);
});

test("attempts at an endpoint while more are made: each that was there once", async () => {
  const hook = await store.createEndpoint(newEndpoint(account, clock.now()));
  const make = async (count: number): Promise<void> => {
    await times(count, record);
    const now = clock.now();
    const claim = {
      owner,
      accountKey: hook.accountKey,
      endpointKey: hook.key,
      limit: count,
      now,
    };
    const { deliveries } = await store.claimDeliveries(claim);
    await store.settleDeliveries(
      deliveries.map((delivery, index) => ({
        ...delivery,
        ...took,
        at: now + 5,
        status: index % 3 === 0 ? 500 : 200,
        result: index % 3 === 0 ? { kind: "retry", dueAt: now + 1e9 } : { kind: "delivered" },
      })),
    );
  };
  await make(3000);
  const path = `/v1/webhooks/${hook.id}/deliveries`;
  const quiet = await walk(`${path}?limit=200`, "event_id", () => Promise.resolve());
  expect(new Set(quiet.seen).size).toBe(3000);
  const { seen } = await walk(`${path}?limit=200`, "event_id", () => make(30));
  expect(seen.slice(-3000)).toEqual(quiet.seen);
  expect(seen.length - 3000).toBeLessThanOrEqual(30);
});

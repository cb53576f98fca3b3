// Which events an endpoint gets: those of the types that it names, or all, those of types that come later too.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventTypes } from "../../src/events/catalog.ts";
import type { Store } from "../../src/store/store.ts";
import { newDirectory, newEvent, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { startHttp, type Answer, type Harness } from "./harness.ts";

const high = { burst: 1e9, perSecond: 1e9 };
/** Of a type that this version does not have. */
const later = { type: "message.held", typeBit: 1 << 9 };
const url = "https://hooks.example/in";
let door: Harness;
let store: Store;
let clock: ManualClock;

beforeAll(async () => {
  clock = new ManualClock();
  store = await openSqlite(newDirectory(), clock);
  door = await startHttp({
    opened: { store, clock },
    config: { rates: { default: high, account: high } },
    webhooks: { checkUrl: async () => undefined },
  });
});
afterAll(() => door.stop());

const ask = (method: string, path: string, body: object): Promise<Answer> => door.ask({ method, path, body });
const made = async (body: object = {}): Promise<string> => {
  const { json } = await ask("POST", "/v1/webhooks", { url, ...body });
  return String(json["id"]);
};
/** The endpoints that an event goes to. */
const sentTo = async (of: { type: string; typeBit: number }): Promise<string[]> => {
  const accountKey = door.account.key;
  const { body, ...event } = newEvent({ accountKey, receivedAt: clock.now() });
  await store.recordEvent({ ...event, ...of, body: body.replace(event.type, of.type) });
  const { rows } = await store.listEvents(accountKey, { eventId: event.id }, { limit: 1, cursor: null });
  return (rows[0]?.deliveries ?? []).map(({ webhookId }) => webhookId);
};

test("an endpoint of all events gets those of a type that came after it", async () => {
  const [all, named] = [await made(), await made({ events: ["*"] })];
  const some = await made({ events: ["message.delivered"] });
  expect(await sentTo({ type: "message.delivered", typeBit: 1 })).toEqual([all, named, some]);
  expect(await sentTo(later)).toEqual([all, named]);
});

test("one that names every type of today does not", async () => {
  const each = await made({ events: eventTypes });
  expect((await door.ask({ path: `/v1/webhooks/${each}` })).json["events"]).toEqual(eventTypes);
  expect(await sentTo({ type: "ip.delisted", typeBit: 256 })).toContain(each);
  expect(await sentTo(later)).not.toContain(each);
});

test.each([
  ["left out", {}],
  ["named by *", { events: ["*"] }],
  ["named by * among others", { events: ["message.bounced", "*"] }],
])("all events are shown as *: %s", async (_, body) => {
  expect((await ask("POST", "/v1/webhooks", { url, ...body })).json["events"]).toEqual(["*"]);
});

test("an endpoint is changed from some events to all, and back", async () => {
  const id = await made({ events: ["message.bounced"] });
  const path = `/v1/webhooks/${id}`;
  expect((await ask("PATCH", path, { events: ["*"] })).json["events"]).toEqual(["*"]);
  expect(await sentTo(later)).toContain(id);
  expect((await ask("PATCH", path, { description: "x" })).json["events"]).toEqual(["*"]);
  expect((await ask("PATCH", path, { events: ["message.opened"] })).json["events"]).toEqual([
    "message.opened",
  ]);
  expect(await sentTo(later)).not.toContain(id);
});

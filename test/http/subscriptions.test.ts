// Which events an endpoint gets: those of the types that it names, or all, those of types that come later too.
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { eventCatalog, eventTypes } from "../../src/events/catalog.ts";
import { recipientEvent } from "../../src/events/entry.ts";
import { recorderOf, type Recorder } from "../../src/events/record.ts";
import type { NewEvent } from "../../src/model/event.ts";
import type { Store } from "../../src/store/store.ts";
import { jobOf } from "../events/jobs.ts";
import { mint } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { type Answer } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

/** The catalogue of a later version, with one type more. */
const laterCatalog = {
  ...eventCatalog,
  "message.added_later": recipientEvent({
    bit: 1 << 30,
    meaning: "A type that this version does not have.",
    counters: {},
    data: { reason: z.string() },
    sample: () => ({ reason: "none" }),
  }),
};
const all = { events: eventTypes, all_events: true };
const url = "https://hooks.example/in";
let http: Stored;
let store: Store;
let clock: ManualClock;

beforeAll(async () => {
  http = await startStored(() => ({
    webhooks: { checkUrl: async () => undefined },
  }));
  ({ store, clock } = http);
});
afterAll(() => http.stop());

const ask = (method: string, path: string, body: object): Promise<Answer> => http.ask({ method, path, body });
const made = async (body: object = {}): Promise<string> => {
  const { id } = (await ask("POST", "/v1/webhooks", { url, ...body })).json;
  if (typeof id !== "string") throw new Error("no endpoint was made");
  return id;
};
/** The endpoints that an event goes to. */
const sentTo = async (make: (recorder: Recorder<typeof laterCatalog>, account: number) => NewEvent) => {
  const accountKey = http.account.key;
  const event = make(recorderOf(laterCatalog, { clock, mint }), accountKey);
  await store.recordEvent({ ...event, messageKey: null });
  const { rows } = await store.listEvents(accountKey, { eventId: event.id }, { limit: 1, cursor: null });
  return (rows[0]?.deliveries ?? []).map(({ webhookId }) => webhookId);
};

const opened: Parameters<typeof sentTo>[0] = (recorder, accountKey) => {
  const visit = { ip_address: "192.0.2.1", user_agent: "x", first: true, machine: false };
  return recorder.ofRecipient("message.opened", jobOf({}, { accountKey }), clock.now(), visit);
};
const delisted: Parameters<typeof sentTo>[0] = (recorder, accountKey) => {
  const at = new Date(clock.now()).toISOString();
  return recorder.ofAddress("ip.delisted", accountKey, clock.now(), {
    ip_address: "192.0.2.1",
    blacklist_name: "x",
    blacklist_zone: "x.example",
    affected_pools: ["default"],
    listed_at: at,
    delisted_at: at,
    duration_seconds: 0,
  });
};
const addedLater: Parameters<typeof sentTo>[0] = (recorder, accountKey) =>
  recorder.ofRecipient("message.added_later", jobOf({}, { accountKey }), clock.now(), { reason: "none" });

test("an endpoint of all events gets those of a type that came after it", async () => {
  const [all, named] = [await made(), await made({ events: ["*"] })];
  const some = await made({ events: ["message.opened"] });
  expect(await sentTo(opened)).toEqual([all, named, some]);
  expect(await sentTo(addedLater)).toEqual([all, named]);
});

test("one that names every type of today does not", async () => {
  const each = await made({ events: eventTypes });
  expect((await http.ask({ path: `/v1/webhooks/${each}` })).json).toMatchObject({
    events: eventTypes,
    all_events: false,
  });
  expect(await sentTo(delisted)).toContain(each);
  expect(await sentTo(addedLater)).not.toContain(each);
});

test.each([
  ["left out", {}],
  ["named by *", { events: ["*"] }],
  ["named by * among others", { events: ["message.bounced", "*"] }],
])("an endpoint of all events is shown as such: %s", async (_, body) => {
  expect((await ask("POST", "/v1/webhooks", { url, ...body })).json).toMatchObject(all);
});

test("an endpoint is changed from some events to all, and back", async () => {
  const id = await made({ events: ["message.bounced"] });
  const path = `/v1/webhooks/${id}`;
  expect((await ask("PATCH", path, { events: ["*"] })).json).toMatchObject(all);
  expect(await sentTo(addedLater)).toContain(id);
  expect((await ask("PATCH", path, { description: "x" })).json).toMatchObject(all);
  expect((await ask("PATCH", path, { events: ["message.opened"] })).json).toMatchObject({
    events: ["message.opened"],
    all_events: false,
  });
  expect(await sentTo(addedLater)).not.toContain(id);
});

// Pauses of parts of the queue, over the operator's socket and with the real store.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { accept, newDirectory, newMessage, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { list, startHttp, type Harness } from "./harness.ts";

const clock = new ManualClock();
let store: Store;
let http: Harness;
beforeAll(async () => {
  store = await openSqlite(newDirectory(), clock);
  http = await startHttp({ opened: { store, clock } });
});
afterAll(() => http.stop());

const get = async (path: string) => (await http.ask({ admin: true, path })).json;
const post = (verb: string, body: object) =>
  http.ask({ admin: true, method: "POST", path: `/v1/queue/${verb}`, body });
const pauses = async () => list((await get("/v1/queue/pauses"))["data"]);

test("a pause is listed with its end, shows at what it stops, can be changed, and is ended", async () => {
  const { key } = http.account;
  const wishes = { accountKey: key, at: clock.now(), to: ["ann@a.test"], queueName: `${key}.default/a.test` };
  await accept(store, newMessage(wishes));
  const until = new Date(clock.now() + 60_000).toISOString();
  const made = await post("pause", { scope: "domain", name: "A.test", until });
  expect(made.json).toMatchObject({ scope: "domain", name: "a.test", until });
  const [entry] = list((await get("/v1/queue"))["data"]);
  expect(entry).toMatchObject({ paused_by: "domain", paused_until: until });
  await post("pause", { scope: "domain", name: "a.test" });
  expect(await pauses()).toMatchObject([{ name: "a.test", until: null }]);
  expect((await post("resume", { scope: "domain", name: "a.test" })).status).toBe(204);
  expect(await pauses()).toEqual([]);
  expect(list((await get("/v1/queue"))["data"])[0]).toMatchObject({ paused_by: null, paused_until: null });
  const acts = list((await get("/v1/audit?action=queue.*"))["data"]);
  expect(acts.map(({ action }) => action)).toEqual(["queue.resume", "queue.pause", "queue.pause"]);
  expect(acts[0]).toMatchObject({ detail: { scope: "domain", name: "a.test" } });
});

test("what is over is gone; a resume of what is not paused is 404", async () => {
  const until = new Date(clock.now() + 60_000).toISOString();
  await post("pause", { scope: "provider", name: "google", until });
  await clock.advance(60_000);
  expect(await pauses()).toEqual([]);
  await post("pause", { scope: "ip", name: "2001:DB8:0::1" });
  expect(await pauses()).toMatchObject([{ scope: "ip", name: "2001:db8::1" }]);
  expect((await store.queuePauses()).length).toBe(1);
  expect((await post("resume", { scope: "provider", name: "google" })).status).toBe(404);
});

test("an end in the past, a name that is none, and an unknown scope are refused", async () => {
  const past = new Date(clock.now() - 1).toISOString();
  for (const body of [
    { scope: "domain", name: "a.test", until: past },
    { scope: "domain", name: "a b" },
    { scope: "ip", name: "mx.a.test" },
    { scope: "planet", name: "earth" },
    { scope: "pool" },
  ])
    expect((await post("pause", body)).status).toBe(422);
});

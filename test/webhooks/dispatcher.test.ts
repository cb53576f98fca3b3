import { expect, test } from "vitest";
import { StoreUnavailable } from "../../src/store/store.ts";
import { settle } from "../support/clock.ts";
import { allBegun, bench } from "./posts.ts";
import { secret } from "./rig.ts";

const events = (started: { event: string }[]): string[] => started.map(({ event }) => event);

/** Endpoints that have answered so often that 32 attempts at once are made there. */
async function proven(keys: number[]) {
  const rig = bench();
  const { store, started, dispatcher } = rig;
  for (const key of keys) {
    if (key > 2)
      store.addEndpoint({ key, accountKey: key === 3 ? 2 : 3, url: "https://more.example/", secret });
    store.record(key, 30);
  }
  dispatcher.start();
  for (let answered = 0; answered < 30 * keys.length;) {
    await settle();
    for (; answered < started.length; answered++) started[answered]?.answer(200);
  }
  await settle();
  started.length = 0;
  store.results.length = 0;
  return rig;
}

test("starts first attempts in event order, 32 at once, and claims no more than it has a slot for", async () => {
  const { store, started, dispatcher } = await proven([1]);
  store.record(1, 40);
  dispatcher.kick();
  await settle();
  expect(events(started)).toEqual(Array.from({ length: 32 }, (_, i) => `evt_${i + 31}`));
  started[7]?.answer(200);
  started[3]?.answer(200);
  await settle();
  expect(events(started.slice(32))).toEqual(["evt_63", "evt_64"]);
  expect(store.rows.filter((row) => row.attempts > 0)).toHaveLength(30 + 34);
});

test("an endpoint that has not answered yet has two attempts at once, and one more for each answer", async () => {
  const { store, started, dispatcher } = bench();
  store.record(1, 100);
  dispatcher.start();
  await settle();
  expect(started).toHaveLength(2);
  started[0]?.answer(500);
  started[1]?.answer(200);
  await settle();
  expect(started).toHaveLength(2 + 4);
});

test("each attempt without an answer halves an endpoint's attempts, and its slot rests for half a second", async () => {
  const { clock, store, started, dispatcher } = await proven([1]);
  store.record(1, 4);
  dispatcher.kick();
  await settle();
  for (const post of started) post.answer(null);
  await settle();
  store.record(1, 100);
  dispatcher.kick();
  await clock.advance(499);
  expect(started).toHaveLength(4);
  await clock.advance(1);
  expect(started).toHaveLength(4 + 2);
  started[4]?.answer(200);
  await settle();
  expect(started).toHaveLength(4 + 2 + 2);
});

test("an endpoint that answers nothing leaves another's events alone", async () => {
  const { store, started, dispatcher } = await proven([1]);
  store.record(1, 1000);
  store.record(2, 100);
  dispatcher.kick();
  for (let done = 0; done < 100;) {
    await settle();
    const open = started.filter(({ endpoint }) => endpoint === 2).slice(done);
    expect(open.length).toBeGreaterThan(0);
    for (const post of open) post.answer(202);
    done += open.length;
  }
  await settle();
  expect(store.results).toHaveLength(100);
  expect(started.filter(({ endpoint }) => endpoint === 1)).toHaveLength(32);
});

test("a hundred endpoints that answer nothing take 1,024 slots at most beside one each, and a live one still gets through", async () => {
  const keys = Array.from({ length: 100 }, (_, i) => i + 4);
  const { clock, store, started, dispatcher } = await proven(keys);
  for (const key of keys) store.record(key, 40);
  dispatcher.kick();
  await clock.advance(60);
  await allBegun(started);
  expect(started.length).toBeGreaterThan(900);
  expect(started.length).toBeLessThan(1024 + 100);
  store.record(1, 1);
  dispatcher.kick();
  await clock.advance(60);
  await allBegun(started);
  expect(started.at(-1)?.endpoint).toBe(1);
});

test("the dead endpoints of one account take half of the slots at most while another account has events", async () => {
  const dead = Array.from({ length: 50 }, (_, i) => i + 4);
  const { clock, store, started, dispatcher } = await proven([3, ...dead]);
  store.record(3, 64);
  for (const key of dead) store.record(key, 40);
  dispatcher.kick();
  await clock.advance(60);
  await allBegun(started);
  const live = started.filter(({ endpoint }) => endpoint === 3).length;
  expect(live).toBe(32);
  expect(started.length - live).toBeGreaterThan(400);
  expect(started.length - live).toBeLessThan(512 + 50);
});

test("commits have it look at two hundred endpoints with events once in a hundred milliseconds", async () => {
  const { clock, store, started, dispatcher } = bench();
  for (let key = 3; key <= 202; key++) store.addEndpoint({ key, url: "https://more.example/", secret });
  for (let key = 3; key <= 202; key++) store.record(key, 40);
  let looks = 0;
  const { endpointsDue } = store;
  store.endpointsDue = () => {
    looks++;
    return endpointsDue.call(store);
  };
  dispatcher.start();
  await settle();
  for (let ms = 0; ms < 200; ms++) {
    dispatcher.kick();
    await clock.advance(1);
  }
  expect(looks).toBe(3);
  store.record(2, 1);
  dispatcher.kick();
  await clock.advance(100);
  expect(started.at(-1)?.endpoint).toBe(2);
});

test("retries wait for their time behind a single timer, and go after first attempts", async () => {
  const { clock, store, started, dispatcher } = await proven([1]);
  store.record(1, 33);
  dispatcher.kick();
  await settle();
  for (const [i, post] of started.slice(0, 32).entries()) post.answer(i < 9 ? 500 : 200);
  await settle();
  expect(clock.pending).toBe(1);
  await clock.advance(29_999);
  expect(started).toHaveLength(33);
  store.record(1, 2);
  await clock.advance(1);
  expect(events(started.slice(33, 35))).toEqual(["evt_64", "evt_65"]);
  expect(started.slice(35).map(({ attempt }) => attempt)).toEqual(Array.from({ length: 9 }, () => 2));
});

test("a wall clock that jumps forward brings retries early once, and never the same event twice at once", async () => {
  const { clock, store, started, dispatcher } = bench();
  store.record(1, 2);
  dispatcher.start();
  await settle();
  started[0]?.answer(500);
  await settle();
  clock.jump(2 * 3_600_000);
  await clock.advance(30_000);
  expect(events(started)).toEqual(["evt_1", "evt_2", "evt_1"]);
});

test("a wall clock that is set back two hours delays no retry and brings none early", async () => {
  const { clock, store, started, dispatcher } = bench();
  store.record(1, 1);
  dispatcher.start();
  await settle();
  started[0]?.answer(500);
  await settle();
  clock.jump(-7_200_000);
  await clock.advance(29_000);
  expect(started).toHaveLength(1);
  await clock.advance(2_000);
  expect(started).toHaveLength(2);
  started[1]?.answer(500);
  await clock.advance(119_000);
  expect(started).toHaveLength(2);
  await clock.advance(2_000);
  expect(started).toHaveLength(3);
});

test("a wall clock that jumps back delays no first attempt", async () => {
  const { clock, store, started, dispatcher } = bench();
  dispatcher.start();
  await clock.advance(1000);
  clock.jump(-86_400_000);
  store.record(1, 1);
  dispatcher.kick();
  await settle();
  expect(events(started)).toEqual(["evt_1"]);
});

test("a paused endpoint gets nothing; resumed, its events go out oldest first", async () => {
  const { clock, store, started, dispatcher } = bench();
  store.addEndpoint({ key: 1, url: "https://one.example/", secret, active: false });
  store.record(1, 3);
  dispatcher.start();
  await clock.advance(120_000);
  expect(started).toEqual([]);
  store.addEndpoint({ key: 1, url: "https://one.example/", secret });
  await clock.advance(30_000);
  started[0]?.answer(200);
  await settle();
  expect(events(started)).toEqual(["evt_1", "evt_2", "evt_3"]);
});

test("a deleted endpoint gets no retry, and a rotated secret signs the next attempt", async () => {
  const { clock, store, started, dispatcher } = bench();
  store.record(1, 1);
  store.record(2, 1);
  dispatcher.start();
  await settle();
  for (const post of started) post.answer(500);
  await settle();
  store.endpoints.delete(1);
  store.addEndpoint({ key: 2, url: "https://two.example/", secret: "n".repeat(64) });
  await clock.advance(30_000);
  expect(started.slice(2)).toMatchObject([{ endpoint: 2, attempt: 2, secret: "n".repeat(64) }]);
});

test("a 429, a 503 and a 410 keep to the schedule like any other failure", async () => {
  const { clock, store, started, dispatcher } = bench();
  store.record(1, 3);
  dispatcher.start();
  await settle();
  started[0]?.answer(429);
  started[1]?.answer(503);
  await settle();
  started[2]?.answer(410);
  await settle();
  expect(store.results.map(({ result }) => result)).toEqual(
    Array(3).fill({ kind: "retry", dueAt: clock.now() + 30_000 }),
  );
});

test("while the store refuses, results are kept, nothing is claimed, and dead letters are not reported", async () => {
  const { clock, store, started, letters, dispatcher } = bench();
  store.record(1, 2);
  for (const row of store.rows) row.attempts = 9;
  dispatcher.start();
  await settle();
  store.refusal = new StoreUnavailable("full", "no room");
  for (const post of started) post.answer(500);
  await clock.advance(5000);
  store.record(1, 1);
  dispatcher.kick();
  await settle();
  expect(letters).toEqual([]);
  expect(started).toHaveLength(2);
  store.refusal = null;
  await clock.advance(1000);
  expect(letters.map(({ eventId, attempts, lastStatus }) => [eventId, attempts, lastStatus])).toEqual([
    ["evt_1", 10, 500],
    ["evt_2", 10, 500],
  ]);
  expect(events(started)).toEqual(["evt_1", "evt_2", "evt_3"]);
});

test("what was skipped while the store refused is looked for, though a write that began before came through meanwhile", async () => {
  const { clock, store, started, dispatcher } = bench();
  const written = Promise.withResolvers<void>();
  const settleDeliveries = store.settleDeliveries.bind(store);
  store.settleDeliveries = (results) => written.promise.then(() => settleDeliveries(results));
  store.record(1, 2);
  dispatcher.start();
  await settle();
  started[0]?.answer(200);
  await settle();
  store.refusal = new StoreUnavailable("full", "no room");
  store.record(2, 1);
  dispatcher.kick();
  await settle();
  store.refusal = null;
  written.resolve();
  await settle();
  started[1]?.answer(200);
  await clock.advance(1000);
  expect(store.results).toHaveLength(2);
  expect(events(started)).toEqual(["evt_1", "evt_2", "evt_3"]);
});

test("a crash during the tenth attempt ends in a dead letter, not in an eleventh attempt", async () => {
  const { store, started, letters, dispatcher } = bench();
  store.record(1, 1);
  for (const row of store.rows) row.attempts = 10;
  dispatcher.start();
  await settle();
  expect(started).toEqual([]);
  expect(letters).toMatchObject([{ eventId: "evt_1", attempts: 10, lastStatus: null }]);
});

test("stop lets go of what does not end in time: no result is written and the next start takes it back", async () => {
  const { clock, store, started, dispatcher } = bench();
  store.record(1, 2);
  dispatcher.start();
  await settle();
  const stopped = dispatcher.stop();
  started[0]?.answer(200);
  await clock.advance(3000);
  started[1]?.answer(500);
  await stopped;
  expect(store.rows.map((row) => row.status)).toEqual(["delivered", "pending"]);
  expect(store.results).toHaveLength(1);
  expect(clock.pending).toBe(0);
});

test("stop ends although the store refuses to write", async () => {
  const { store, started, dispatcher } = bench();
  store.record(1, 1);
  dispatcher.start();
  await settle();
  store.refusal = new StoreUnavailable("failed", "gone");
  const stopped = dispatcher.stop();
  started[0]?.answer(200);
  await stopped;
  expect(store.results).toEqual([]);
});

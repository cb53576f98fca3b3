// An endpoint whose attempts all fail: what has begun keeps to its schedule, and the other events wait for one that succeeds.
import { expect, test } from "vitest";
import { settle } from "../support/clock.ts";
import { allBegun, bench } from "./posts.ts";
import { secret } from "./rig.ts";

type Rig = ReturnType<typeof bench>;

/** Every attempt is answered at once with what `status` is then. */
function answering(rig: Rig, status: { now: number | null }) {
  const tried: { event: string; attempt: number; at: number }[] = [];
  const push = rig.started.push.bind(rig.started);
  rig.started.push = (...posts) => {
    for (const { event, attempt } of posts) tried.push({ event, attempt, at: rig.clock.monotonic() });
    const length = push(...posts);
    for (const post of posts) queueMicrotask(() => post.answer(status.now));
    return length;
  };
  return tried;
}
const begun = (tried: { attempt: number }[]): number => tried.filter(({ attempt }) => attempt === 1).length;

/** A hundred events at an endpoint that answers 500 to all. */
async function failing(scheduleMs?: number[]) {
  const rig = bench(scheduleMs);
  const status: { now: number | null } = { now: 500 };
  const tried = answering(rig, status);
  rig.store.record(1, 100);
  rig.dispatcher.start();
  await allBegun(tried);
  return { ...rig, status, tried };
}

test("after ten failures in a row one event is tried at a time, after rests that grow to five seconds", async () => {
  const { clock, tried } = await failing();
  const first = begun(tried);
  expect(first).toBeGreaterThanOrEqual(10);
  expect(first).toBeLessThan(20);
  await clock.advance(29_000);
  const probes = tried.slice(first).map(({ at }) => at);
  const rests = probes.map((at, i) => at - (probes[i - 1] ?? 0));
  expect(rests.slice(0, 6)).toEqual([500, 500, 1000, 2000, 4000, 5000]);
  expect(new Set(rests.slice(5))).toEqual(new Set([5000]));
});

test("events that wait for a failing endpoint cost no claim, however many commits bring more", async () => {
  const { clock, store, tried, dispatcher } = await failing();
  await clock.advance(20_000);
  const [claims, had] = [store.claims.length, tried.length];
  for (let i = 0; i < 50; i++) {
    store.record(1, 10);
    dispatcher.kick();
    await settle();
  }
  expect([store.claims.length, tried.length]).toEqual([claims, had]);
  await clock.advance(5_000);
  expect(tried.length).toBe(had + 1);
});

test("what has begun at a failing endpoint is retried on its schedule, and is a dead letter after ten attempts", async () => {
  const minute = 60_000;
  const { clock, tried, letters } = await failing(Array.from({ length: 9 }, () => minute));
  await clock.advance(9 * minute + 30_000);
  const times = tried.filter(({ event }) => event === "evt_1").map(({ at }) => at);
  expect(times).toHaveLength(10);
  for (const [i, at] of times.entries()) {
    expect(at).toBeGreaterThanOrEqual(i * minute);
    expect(at - (times[i - 1] ?? 0)).toBeLessThan(minute + 10_000);
  }
  expect(letters[0]).toMatchObject({ eventId: "evt_1", attempts: 10 });
});

test("the first success lets what waited go out in order", async () => {
  const { clock, store, status, tried } = await failing();
  await clock.advance(20_000);
  const had = begun(tried);
  status.now = 200;
  await clock.advance(5_000);
  await allBegun(tried);
  const after = tried.filter(({ attempt }) => attempt === 1).slice(had);
  expect(after.map(({ event }) => event)).toEqual(
    Array.from({ length: 100 - had }, (_, i) => `evt_${had + i + 1}`),
  );
  expect(store.endpoints.get(1)?.consecutiveFailures).toBe(0);
});

test("an endpoint that is said to be repaired is tried at once", async () => {
  const { clock, status, tried, dispatcher } = await failing();
  await clock.advance(20_000);
  status.now = 200;
  dispatcher.retryNow(1);
  await allBegun(tried);
  expect(begun(tried)).toBe(100);
});

test("an endpoint that is said to be repaired is tried at once, though an attempt hangs there", async () => {
  const { store, started, dispatcher } = bench();
  store.addEndpoint({ key: 1, url: "https://one.example/", secret, consecutiveFailures: 12 });
  store.record(1, 5);
  dispatcher.start();
  await settle();
  dispatcher.retryNow(1);
  await settle();
  dispatcher.kick();
  await settle();
  expect(started.map(({ event }) => event)).toEqual(["evt_1", "evt_2"]);
});

test("an endpoint that is said to be repaired is tried as soon as one of two hanging attempts ends", async () => {
  const { clock, store, started, dispatcher } = bench();
  store.addEndpoint({ key: 1, url: "https://one.example/", secret, consecutiveFailures: 12 });
  store.record(1, 3);
  Object.assign(store.rows[2] ?? {}, { attempts: 1, dueAt: 1 });
  dispatcher.start();
  await settle();
  expect(started.map(({ event }) => event)).toEqual(["evt_1", "evt_3"]);
  dispatcher.retryNow(1);
  await settle();
  started[0]?.answer(null);
  await clock.advance(500);
  expect(started.map(({ event }) => event)).toEqual(["evt_1", "evt_3", "evt_2"]);
});

test.each([null, 500])(
  "retries keep to their schedule where no event waits for its first attempt, beside one that comes to %s",
  async (status) => {
    const { clock, store, started, dispatcher } = bench();
    store.addEndpoint({ key: 1, url: "https://one.example/", secret, consecutiveFailures: 12 });
    store.record(1, 2);
    const start = clock.now();
    store.rows.forEach((row, i) => Object.assign(row, { attempts: 1, dueAt: start + 10_000 + i * 2_000 }));
    dispatcher.start();
    await clock.advance(10_000);
    expect(started.map(({ event }) => event)).toEqual(["evt_1"]);
    if (status !== null) started[0]?.answer(status);
    await clock.advance(2_000);
    expect(started.map(({ event }) => event)).toEqual(["evt_1", "evt_2"]);
  },
);

test("an endpoint that was failing before a start gets one event, and nothing more until that ended", async () => {
  const { store, started, dispatcher } = bench();
  store.addEndpoint({ key: 1, url: "https://one.example/", secret, consecutiveFailures: 12 });
  store.record(1, 5);
  dispatcher.start();
  await settle();
  dispatcher.kick();
  await settle();
  expect(started.map(({ event }) => event)).toEqual(["evt_1"]);
  started[0]?.answer(200);
  await allBegun(started);
  expect(started.length).toBeGreaterThan(2);
});

test("a failing endpoint delays nobody else's events", async () => {
  const { store, tried, status, dispatcher } = await failing();
  status.now = 200;
  store.record(2, 3);
  dispatcher.kick();
  await allBegun(tried);
  expect(tried.slice(-3).map(({ event }) => event)).toEqual(["evt_101", "evt_102", "evt_103"]);
});

test("a hundred failing endpoints, each with its own rests and often said to be repaired, have the store looked at twenty times a second at most", async () => {
  const { clock, store, started, dispatcher } = bench();
  const endpointsDue = store.endpointsDue.bind(store);
  const looks: number[] = [];
  store.endpointsDue = () => {
    looks.push(clock.monotonic());
    return endpointsDue();
  };
  const keys = Array.from({ length: 100 }, (_, i) => 10 + i);
  for (const key of keys) {
    store.addEndpoint({ key, url: `https://e${key}.example/`, secret, consecutiveFailures: 12 });
    store.record(key, 20);
  }
  let answered = 0;
  const answerLater = (): void => {
    for (const { endpoint, answer } of started.slice(answered)) clock.after(endpoint * 7, () => answer(500));
    answered = started.length;
  };
  dispatcher.start();
  for (let i = 0; i < 3000; i++) {
    await clock.advance(5);
    answerLater();
    dispatcher.retryNow(10);
  }
  expect(started.length).toBeGreaterThan(200);
  const rests = looks.map((at, i) => at - (looks[i - 1] ?? -Infinity));
  expect(Math.min(...rests)).toBeGreaterThanOrEqual(50);
});
